"""Where a reproduction keeps everything, and what is there already.

Whatever is in the folder was written in one piece and depends on its name and the experiment alone, so it does not
matter who made it, or when.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bilevel.demonstrations.manifest import MANIFEST
from bilevel.experiments.reproduction.settings import Entrant, Experiment
from bilevel.files import write_atomically
from bilevel.policies.policy_files import POLICY
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text

EXPERIMENT = "experiment.json"
FINDINGS = "findings.jsonl"


@dataclass(frozen=True)
class Kept:
    """A folder, and the experiment that all in it belongs to."""

    folder: Path
    experiment: Experiment

    def demonstrations(self, task: str) -> Path:
        return self.folder / "demonstrations" / task

    def policy(self, task: str, learner: str, recipe: str, seed: int) -> Path:
        return self.folder / "policies" / task / f"{learner}-{recipe}-{seed}"

    def policy_of(self, entrant: Entrant, task: str, seed: int) -> Path | None:
        """What an entrant runs on, if that is learned."""
        if entrant.learner is None or entrant.recipe is None:
            return None
        return self.policy(task, entrant.learner, entrant.recipe, seed)

    def cost(self, task: str, learner: str, recipe: str, seed: int) -> Path:
        return self.folder / "costs" / task / f"{learner}-{recipe}-{seed}.json"

    def episodes(self, task: str, entrant: str, seed: int, objects: int) -> Path:
        return self.folder / "episodes" / task / f"{entrant}-{seed}" / f"{objects:02d}.jsonl"

    def memory(self, task: str, entrant: str) -> Path:
        return self.folder / "memory" / task / f"{entrant}.json"

    def scaling(self, task: str, solver: str, objects: int) -> Path:
        return self.folder / "scaling" / f"{task}-{solver}-{objects}.json"

    def film(self, task: str) -> Path:
        return self.folder / "films" / f"{task}.mp4"

    def timeline(self, task: str) -> Path:
        """Written after the film, so that what has a timeline has a film."""
        return self.film(task).with_suffix(".json")

    def checkpoints(self, task: str, learner: str, recipe: str) -> Path:
        return self.folder / "unfinished" / f"{task}-{learner}-{recipe}"

    @property
    def failures(self) -> Path:
        return self.folder / "failures"

    @property
    def claims(self) -> Path:
        return self.folder / "claims"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def findings(self) -> Path:
        return self.folder / FINDINGS

    # What is there

    def has_demonstrations(self, task: str) -> bool:
        manifest = read_json(self.demonstrations(task) / MANIFEST) or {}
        return manifest.get("complete") is True and manifest.get("episodes", 0) >= self.experiment.demonstrations

    def has_policy(self, task: str, learner: str, recipe: str, seed: int) -> bool:
        return (self.policy(task, learner, recipe, seed) / POLICY).exists()

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def files(self, *paths: Path) -> Iterator[Path]:
        """All files that are at or below these paths, but for those that are being written."""
        for path in paths:
            found = sorted(path.rglob("*")) if path.is_dir() else [path]
            yield from (file for file in found if file.is_file() and not file.name.startswith("."))


def open_folder(folder: Path, experiment: Experiment) -> Kept:
    """Begin a folder, or take up one; `BadInput` for one of another experiment, or with other things in it."""
    path = folder / EXPERIMENT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            ours = all(child.name.lstrip(".").startswith(EXPERIMENT) for child in folder.iterdir())
            if not ours and not path.exists():  # if it does now, another run was faster
                raise BadInput(f"{folder}: holds other files; choose a new folder as --output")
            _begin(path, json.dumps(asdict(experiment), indent=1) + "\n")
    except OSError as error:
        raise BadInput(f"{folder}: cannot be used as a folder: {error.strerror}") from None
    known = read_experiment(folder)
    if known != experiment:
        was, now = asdict(known), asdict(experiment)
        different = [name for name in was if was[name] != now[name]]
        others = ", ".join(f"{name.replace('_', ' ')} {was[name]}, not {now[name]}" for name in different)
        raise BadInput(f"{folder}: was begun with {others}; choose another --output")
    return Kept(folder, experiment)


def read_experiment(folder: Path) -> Experiment:
    """What the work in a folder has in common."""
    path = folder / EXPERIMENT
    if not path.exists():
        raise BadInput(f"{folder}: no reproduction: there is no {EXPERIMENT} in it; `bilevel reproduce` makes one")
    try:
        return Experiment(**json.loads(read_text(path)))
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"{path}: not what `bilevel reproduce` wrote there") from None


def _begin(path: Path, text: str) -> None:
    """Write a file in one piece, unless somebody else does just now: then theirs counts."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    write_atomically(part, text)
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        part.unlink()


def read_json(path: Path) -> dict[str, Any] | None:
    """An object in a file, or `None` where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

"""The folder of an experiment: where everything is kept.

Whatever is in it was written in one piece and depends on its name and the experiment alone, so it does not matter who
made it, or when.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bilevel.experiments.machines import machine
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.files import write_atomically
from bilevel.json_files import decode, encode, read_bytes
from bilevel.symbolic.domain import BadInput

EXPERIMENT = "experiment.json"
FINDINGS = "findings.jsonl"


@dataclass(frozen=True)
class ExperimentFolder:
    """A folder, and the experiment that all in it belongs to."""

    path: Path
    experiment: Experiment

    def note_run(self) -> None:
        """Note that a run was started on this machine."""
        write_atomically(self.path / "runs" / f"{uuid.uuid4().hex}.json", json.dumps({"machine": machine()}) + "\n")


def open_folder(path: Path, experiment: Experiment) -> ExperimentFolder:
    """Begin a folder, or take up one; `BadInput` for one of another experiment, or with other things in it."""
    file = path / EXPERIMENT
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            ours = all(child.name.lstrip(".").startswith(EXPERIMENT) for child in path.iterdir())
            if not ours and not file.exists():  # if it does now, another run was faster
                raise BadInput(f"{path}: holds other files; choose a new folder as --output")
            _write_once(file, encode(experiment, indent=1))
    except OSError as error:
        raise BadInput(f"{path}: cannot be used as a folder: {error.strerror}") from None
    known = read_experiment(path)
    if known != experiment:
        was, now = msgspec.structs.asdict(known), msgspec.structs.asdict(experiment)
        different = [name for name in was if was[name] != now[name]]
        others = ", ".join(f"{name.replace('_', ' ')} {was[name]}, not {now[name]}" for name in different)
        raise BadInput(f"{path}: was begun with {others}; choose another --output")
    return ExperimentFolder(path, experiment)


def read_experiment(folder: Path) -> Experiment:
    """Return what the work in a folder has in common."""
    path = folder / EXPERIMENT
    if not path.exists():
        raise BadInput(f"{folder}: no reproduction: there is no {EXPERIMENT} in it; `bilevel reproduce` makes one")
    return decode(read_bytes(path), Experiment, f"{path}: not what `bilevel reproduce` wrote there")


def _write_once(path: Path, text: str) -> None:
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
    """Return the object in a file, or `None` where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

"""Is a data set whole? If not, which file is broken, and why?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bilevel.demonstrations.dataset import read_episode
from bilevel.demonstrations.manifest import MANIFEST, BrokenManifest, Manifest, file_name, read_manifest
from bilevel.demonstrations.traces import Summary, summarise
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import find_task


@dataclass(frozen=True)
class Report:
    """What is wrong with a data set, a line each, and what is in it as far as it can be read."""

    problems: tuple[str, ...]
    manifest: Manifest | None
    summary: Summary
    megabytes: float


def check(folder: Path, watch: Callable[[int, int], None] = lambda done, total: None) -> Report:
    """Read every file of a data set. `BadInput` where there is none, or one of a format that is not known yet."""
    try:
        manifest = read_manifest(folder)
        task = find_task(manifest.recipe.task)
        _check_slots(folder, manifest)
    except BrokenManifest as error:
        return Report((str(error),), None, Summary(), 0.0)
    problems, size = [], 0
    summary = Summary()
    labels = task.labels(manifest.slots)
    for index in range(manifest.episodes):
        try:
            demonstration, data = read_episode(folder, manifest, index)
        except BadInput as error:
            problems.append(str(error))
        else:
            size += len(data)
            summary = summary + summarise(demonstration, labels, task.domain)
        watch(index + 1, manifest.episodes)
    if not manifest.complete:
        problems = _incomplete(folder, manifest, problems)
    return Report(tuple(problems), manifest, summary, size / 1e6)


def _check_slots(folder: Path, manifest: Manifest) -> None:
    """Whether its arguments make an environment, and that has these slots."""
    try:
        slots = find_task(manifest.recipe.task).make(**manifest.recipe.arguments).slots
    except BadInput as error:
        raise BrokenManifest(f"{folder / MANIFEST}: {error}") from None
    if slots != manifest.slots:
        raise BrokenManifest(f"{folder / MANIFEST}: 'slots' are not those of the task with these arguments")


def _incomplete(folder: Path, manifest: Manifest, problems: list[str]) -> list[str]:
    """One line for all that has not been collected yet, and those about files that are there."""
    names = [file_name(index) for index in range(manifest.episodes)]
    there = sum((folder / name).is_file() for name in names)
    advice = f"go on with: {manifest.command} --output {folder}"
    reason = f"{folder}: not complete, {there} of {manifest.episodes} episodes are there; {advice}"
    return [reason, *(problem for problem in problems if not problem.endswith(": missing"))]

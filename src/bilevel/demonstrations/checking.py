"""Is a data set whole? If not, which file is broken, and why?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bilevel.demonstrations.dataset import read_episode
from bilevel.demonstrations.manifest import DOMAIN, Manifest, file_name, read_manifest
from bilevel.demonstrations.traces import Summary, summarise
from bilevel.json_files import Damaged
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class Report:
    """What is wrong with a data set, a line each, and what is in it as far as it can be read."""

    problems: tuple[str, ...]
    task: str | None = None
    summary: Summary = field(default_factory=Summary)
    megabytes: float = 0.0


def check(folder: Path, task: Task | None = None, callback: Callable[[int, int], None] | None = None) -> Report:
    """Read every file of a data set, and label it anew if the task is given.

    Raise `BadInput` where there is no data set, or one of another format.
    """
    try:
        manifest = read_manifest(folder)
    except Damaged as error:
        return Report(problems=(str(error),))
    try:
        domain = task.domain if task else read_domain(folder / DOMAIN)
    except BadInput as error:
        return Report((str(error),), manifest.settings.task)
    problems, size = [], 0
    summary = Summary()
    for index in range(manifest.episodes):
        try:
            demonstration, data = read_episode(folder, manifest, index)
        except BadInput as error:
            problems.append(str(error))
        else:
            size += len(data)
            summary = summary + summarise(demonstration, domain, task)
        if callback:
            callback(index + 1, manifest.episodes)
    if not manifest.complete:
        problems = _incomplete(folder, manifest, problems)
    return Report(tuple(problems), manifest.settings.task, summary, size / 1e6)


def _incomplete(folder: Path, manifest: Manifest, problems: list[str]) -> list[str]:
    """Return one line for all that has not been collected yet, and those about files that are there."""
    names = [file_name(index) for index in range(manifest.episodes)]
    there = sum((folder / name).is_file() for name in names)
    advice = f"go on with: {manifest.command} --output {folder}"
    reason = f"{folder}: not complete, {there} of {manifest.episodes} episodes are there; {advice}"
    return [reason, *(problem for problem in problems if not problem.endswith(": missing"))]

"""What a report is made from: a folder of `bilevel reproduce`, or the findings of one in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from bilevel.experiments.paper import in_order
from bilevel.experiments.reproduction.folder import EXPERIMENT, FINDINGS, ExperimentFolder, read_experiment
from bilevel.experiments.reproduction.rows import Findings, Size, read_findings
from bilevel.experiments.reproduction.settings import VARIANTS
from bilevel.experiments.reproduction.summary import summarise
from bilevel.experiments.reproduction.timeline import Timeline, read_timeline
from bilevel.policies.failures import REASONS
from bilevel.symbolic.domain import BadInput

FILMS = "films"

Film = tuple[Timeline, bytes]


class NothingFound(BadInput):
    """There is nothing yet to report on."""


@dataclass(frozen=True)
class Source:
    """Findings, and the films that there are."""

    findings: Findings
    films: Sequence[Film]
    is_folder: bool  # a file has no films


def read_source(path: Path) -> Source:
    """Read findings and films; `BadInput` for anything that `bilevel reproduce` has not made."""
    findings = _of_work(path) if (path / EXPERIMENT).is_file() else _of_file(path)
    if not (findings.rows or findings.scaling):
        raise NothingFound(f"{path}: there are no results in it yet; `bilevel reproduce` makes them")
    for problem in _problems(findings):
        raise BadInput(f"{path}: {problem}; `bilevel reproduce` writes no such findings")
    return Source(findings, _films(path / FILMS), path.is_dir())


def _of_work(folder: Path) -> Findings:
    """Return what is there now: a run may be at work, or have been killed before it wrote its findings."""
    try:
        command = read_findings(folder / FINDINGS).about.command
    except BadInput:
        command = f"bilevel reproduce --output {folder}"
    return summarise(ExperimentFolder(folder, read_experiment(folder)), command)


def _of_file(path: Path) -> Findings:
    file = path / FINDINGS if path.is_dir() else path
    if not file.is_file():
        missing = f"no {FINDINGS} in this folder" if path.is_dir() else "no such file or folder"
        raise BadInput(f"{path}: {missing}; `bilevel reproduce --output DIR` makes a folder to report on")
    return read_findings(file)


def _films(folder: Path) -> list[Film]:
    """Return the films that are whole, with a timeline beside them, in the order of the tasks."""
    tasks = in_order(path.stem for path in folder.glob("*.mp4") if path.with_suffix(".json").is_file())
    return [_film(folder / f"{task}.mp4") for task in tasks]


def _film(path: Path) -> Film:
    try:
        return read_timeline(path.with_suffix(".json")), path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


# What findings must be, beside lines of the right form


def _problems(findings: Findings) -> Iterator[str]:
    """Yield what is wrong; the first is enough."""
    about = findings.about
    if not all(isinstance(part, Mapping) for part in (about.experiment, about.rules, *about.failures)):
        yield "the line that says how it was made is odd"
    seen: set[tuple[str, str, int]] = set()
    for row in findings.rows:
        where = f"{row.variant} on {row.task} with seed {row.seed}"
        training = (row.training.seconds, row.training.networks, row.training.peak_mebibytes) if row.training else ()
        if row.variant not in VARIANTS:
            yield f"unknown method '{row.variant}'"
        if not (all(map(_is_sound, row.sizes)) and _are_numbers(*training)):
            yield f"odd numbers in the line for {where}"
        if (row.task, row.variant, row.seed) in seen:
            yield f"two lines for {where}"
        seen.add((row.task, row.variant, row.seed))
    for one in findings.scaling:
        if one.seconds is None or not _are_numbers(one.objects, one.seconds, one.actions, one.peak_mebibytes):
            yield f"odd numbers in a large problem of '{one.task}'"


def _is_sound(size: Size) -> bool:
    """Whether its numbers can be true."""
    if not isinstance(size.reasons, Mapping) or not set(size.reasons) <= set(REASONS):
        return False
    costs = size.mean_steps, size.policy_microseconds, size.physics_microseconds, size.peak_mebibytes
    if not _are_numbers(size.objects, size.episodes, size.successes, *size.reasons.values(), *costs):
        return False
    return size.objects > 0 and size.successes + sum(size.reasons.values()) == size.episodes


def _are_numbers(*values: object) -> bool:
    """Whether what was measured are numbers, finite and not negative."""
    known = [value for value in values if value is not None]
    return all(isinstance(value, int | float) and isfinite(value) and value >= 0 for value in known)

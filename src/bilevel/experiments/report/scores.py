"""What findings come to: scores of methods on tasks, what they cost, why they failed, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bilevel.experiments.evaluation import wilson_interval
from bilevel.experiments.methods import METHODS
from bilevel.experiments.report.paper import TASKS, paper_rate
from bilevel.experiments.reproduction.rows import Findings, Row
from bilevel.experiments.reproduction.settings import ENTRANTS, USUAL, Entrant

REFERENCE = "expert"  # written by hand: a bound, not a rival


@dataclass(frozen=True)
class Score:
    """How many of some episodes were successes."""

    successes: int
    episodes: int
    by_seed: tuple[float, ...]  # the rate with each seed

    @property
    def rate(self) -> float:
        return self.successes / self.episodes

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.successes, self.episodes)

    @property
    def seed_range(self) -> tuple[float, float]:
        """The rates with the worst seed and with the best."""
        return min(self.by_seed), max(self.by_seed)


@dataclass(frozen=True)
class Cell:
    """A method on a task, or on all together, beside what the paper has."""

    entrant: Entrant
    task: str | None
    score: Score | None
    paper: float | None
    rank: int | None = None  # 1 or 2 among the learned and the planned, if it is one of these

    @property
    def rate(self) -> float:
        return self.score.rate if self.score else 0.0


def entrants_in(findings: Findings) -> list[Entrant]:
    """Return the methods that were measured, in the usual order."""
    measured = {row.entrant for row in findings.rows}
    return [entrant for name, entrant in ENTRANTS.items() if name in measured]


def tasks_in(findings: Findings) -> list[str]:
    """Return the tasks that were measured: the paper's in its order, then others."""
    measured = dict.fromkeys(row.task for row in findings.rows)
    return [*(task for task in TASKS if task in measured), *(task for task in measured if task not in TASKS)]


def tasks_shown(findings: Findings) -> list[str]:
    """Return the paper's tasks, measured or not, and any others that were measured."""
    return [*TASKS, *(task for task in tasks_in(findings) if task not in TASKS)]


def sizes_in(findings: Findings) -> list[int]:
    """Return the numbers of objects that were measured, in ascending order."""
    return sorted({size.objects for row in findings.rows for size in row.sizes})


def seeds_in(findings: Findings) -> list[int]:
    """Return the seeds that were measured."""
    return sorted({row.seed for row in findings.rows})


def rows_of(findings: Findings, entrant: Entrant, task: str | None = None) -> list[Row]:
    """Return the rows of a method on a task, or on all."""
    return [row for row in findings.rows if row.entrant == entrant.name and task in (None, row.task)]


def score(rows: Sequence[Row], objects: int | None = None) -> Score | None:
    """Return the score over all sizes, or over one; `None` without a single episode."""
    wins: Counter[int] = Counter()
    episodes: Counter[int] = Counter()
    for row in rows:
        for size in row.sizes:
            if objects in (None, size.objects):
                wins[row.seed] += size.successes
                episodes[row.seed] += size.episodes
    by_seed = tuple(wins[seed] / episodes[seed] for seed in sorted(episodes) if episodes[seed])
    return Score(wins.total(), episodes.total(), by_seed) if by_seed else None


def scores_by_size(findings: Findings, entrant: Entrant, task: str) -> dict[int, Score]:
    """Return the scores of a method on a task, by number of objects."""
    rows = rows_of(findings, entrant, task)
    found = {size: score(rows, size) for size in sizes_in(findings)}
    return {size: score for size, score in found.items() if score}


def outcomes(rows: Iterable[Row]) -> Counter[str]:
    """Return how episodes ended: how many were a `success`, and how many failed for each reason."""
    found: Counter[str] = Counter()
    for row in rows:
        found["success"] += row.successes
        for size in row.sizes:
            found.update(size.reasons)
    return found


# The main table


def cells(findings: Findings) -> list[list[Cell]]:
    """Return a row for each method: each task, then all of them.

    Published models have a row whether they were run or not: nothing stands in for their weights.
    """
    there = entrants_in(findings)
    entrants = [entrant for entrant in ENTRANTS.values() if entrant in there or METHODS[entrant.method].model]
    columns = [
        _ranked([_cell(findings, entrant, task) for entrant in entrants]) for task in (*tasks_shown(findings), None)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(findings: Findings, entrant: Entrant, task: str | None) -> Cell:
    """Return one cell; a total is over all tasks that were measured, the paper's over its own."""
    rows, tasks = rows_of(findings, entrant, task), tasks_in(findings)
    is_whole = task is not None or {row.task for row in rows} == set(tasks)
    paper = paper_rate(entrant.method, task) if task is not None or tasks == list(TASKS) else None
    return Cell(entrant, task, score(rows) if is_whole else None, paper)


def _ranked(column: Sequence[Cell]) -> list[Cell]:
    """Rank the two highest rates that there are, as often as they occur; nobody is praised for nothing."""
    rivals = [cell for cell in column if cell.entrant.name != REFERENCE and cell.rate > 0]
    best = sorted({cell.rate for cell in rivals}, reverse=True)[:2]
    return [
        replace(cell, rank=best.index(cell.rate) + 1) if cell in rivals and cell.rate in best else cell
        for cell in column
    ]


# Costs


@dataclass(frozen=True)
class Costs:
    """What a method takes: medians over tasks and seeds."""

    entrant: Entrant
    score: Score  # over all sizes
    objects: int  # the largest number that there is, for what follows
    largest: Score | None
    policy_microseconds: float | None  # for each step
    peak_mebibytes: float | None
    training_seconds: float | None  # of as many networks as were trained side by side
    training_mebibytes: float | None
    networks: tuple[int, ...]
    devices: tuple[str, ...]

    @property
    def trained_how(self) -> str:
        """` on cpu, 3 networks side by side`: who shares a time has to be said with it."""
        many = [str(number) for number in self.networks if number > 1]
        beside = f", {' or '.join(many)} networks side by side" if many else ""
        return f" on {' and '.join(self.devices)}{beside}" if self.devices else ""


def costs(findings: Findings, task: str | None = None) -> list[Costs]:
    """Return what each method takes on a task, or on all."""
    found = [_costs(findings, entrant, task) for entrant in entrants_in(findings)]
    return [costs for costs in found if costs]


def _costs(findings: Findings, entrant: Entrant, task: str | None) -> Costs | None:
    rows, objects = rows_of(findings, entrant, task), max(sizes_in(findings), default=0)
    total = score(rows)
    if total is None:
        return None
    sizes = [size for row in rows for size in row.sizes if size.objects == objects]
    trainings = [row.training for row in rows if row.training]
    return Costs(
        entrant,
        total,
        objects,
        score(rows, objects),
        _median(size.policy_microseconds for size in sizes),
        _median(size.peak_mebibytes for size in sizes),
        _median(training.seconds for training in trainings),
        _median(training.peak_mebibytes for training in trainings),
        tuple(sorted({training.networks for training in trainings})),
        tuple(sorted({training.device for training in trainings})),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


# What is missing


def missing(findings: Findings) -> list[str]:
    """Return what a whole run has and these findings do not, a sentence each."""
    there, tasks = entrants_in(findings), tasks_in(findings)
    lines = []
    if absent := [task for task in TASKS if task not in tasks]:
        lines.append(f"Tasks that were not run: {', '.join(absent)}.")
    if lacking := [ENTRANTS[name].title for name in USUAL if ENTRANTS[name] not in there]:
        lines.append(f"Methods that were not run: {'; '.join(lacking)}.")
    episodes = {
        (entrant, task): sum(row.episodes for row in rows_of(findings, entrant, task))
        for entrant in there
        for task in tasks
    }
    full = max(episodes.values(), default=0)
    for (entrant, task), number in episodes.items():
        if number < full:
            lines.append(f"{entrant.title} on {task}: {number or 'none'} of {full} episodes.")
    if not findings.scaling:
        lines.append("Large problems, for which rules and LAMA are timed, were not run.")
    return lines

"""What findings come to: scores of methods on tasks, what they cost, why they failed, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bilevel.experiments.evaluation import wilson_interval
from bilevel.experiments.methods import METHODS
from bilevel.experiments.report.paper import paper_rate
from bilevel.experiments.reproduction.rows import Findings, Row, Size
from bilevel.experiments.reproduction.settings import ENTRANTS, USUAL, Entrant
from bilevel.tabletop.tasks import TASKS

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


@dataclass(frozen=True)
class Cell:
    """A method on a task, or on all together, beside what the paper has."""

    entrant: Entrant
    task: str | None
    score: Score | None
    paper: float | None
    rank: int | None = None  # 1 or 2 among the learned and the planned, if it is one of these


def entrants_in(findings: Findings) -> list[Entrant]:
    """Those that were measured, in the usual order."""
    return [entrant for name, entrant in ENTRANTS.items() if any(row.entrant == name for row in findings.rows)]


def entrants_shown(findings: Findings) -> list[Entrant]:
    """With published models, whether they were run or not: nothing stands in for their weights."""
    there = entrants_in(findings)
    return [entrant for entrant in ENTRANTS.values() if entrant in there or METHODS[entrant.method].model]


def tasks_in(findings: Findings) -> list[str]:
    return [task for task in TASKS if any(row.task == task for row in findings.rows)]


def sizes_in(findings: Findings) -> list[int]:
    return sorted({size.objects for row in findings.rows for size in row.sizes})


def seeds_in(findings: Findings) -> list[int]:
    return sorted({row.seed for row in findings.rows})


def rows_of(findings: Findings, entrant: Entrant, task: str | None = None) -> list[Row]:
    """In the order of tasks and seeds."""
    found = [row for row in findings.rows if row.entrant == entrant.name and task in (None, row.task)]
    return sorted(found, key=lambda row: (list(TASKS).index(row.task), row.seed))


def sizes_of(rows: Iterable[Row], objects: int) -> list[Size]:
    return [size for row in rows for size in row.sizes if size.objects == objects]


def score(rows: Sequence[Row], objects: int | None = None) -> Score | None:
    """Over all sizes, or one; `None` without a single episode."""
    counts: dict[int, list[int]] = {}
    for row in rows:
        count = counts.setdefault(row.seed, [0, 0])
        for size in row.sizes:
            if objects in (None, size.objects):
                count[0] += size.successes
                count[1] += size.episodes
    by_seed = tuple(wins / episodes for _, (wins, episodes) in sorted(counts.items()) if episodes)
    successes, episodes = (sum(count[part] for count in counts.values()) for part in (0, 1))
    return Score(successes, episodes, by_seed) if episodes else None


# The main table


def cells(findings: Findings) -> list[list[Cell]]:
    """A row for each method: each task, then all of them."""
    columns = [_ranked(_column(findings, task)) for task in (*TASKS, None)]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(findings: Findings, task: str | None) -> list[Cell]:
    tasks = tasks_in(findings)
    found = []
    for entrant in entrants_shown(findings):
        rows = rows_of(findings, entrant, task)
        is_whole = task is not None or {row.task for row in rows} == set(tasks)
        paper = paper_rate(entrant.method, task) if task is not None or tasks == list(TASKS) else None
        found.append(Cell(entrant, task, score(rows) if is_whole else None, paper))
    return found


def _ranked(column: Sequence[Cell]) -> list[Cell]:
    """The two highest rates that there are, as often as they occur; nobody is praised for nothing."""
    ranking = [cell for cell in column if cell.entrant.name != REFERENCE and cell.score]
    rates = sorted({cell.score.rate for cell in ranking if cell.score and cell.score.rate > 0}, reverse=True)[:2]
    return [
        Cell(cell.entrant, cell.task, cell.score, cell.paper, rates.index(cell.score.rate) + 1)
        if cell in ranking and cell.score and cell.score.rate in rates
        else cell
        for cell in column
    ]


# Costs


@dataclass(frozen=True)
class Costs:
    """Medians over tasks and seeds."""

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


def costs(findings: Findings, task: str | None = None) -> list[Costs]:
    found = [_costs(findings, entrant, task) for entrant in entrants_in(findings)]
    return [costs for costs in found if costs]


def _costs(findings: Findings, entrant: Entrant, task: str | None) -> Costs | None:
    rows, objects = rows_of(findings, entrant, task), max(sizes_in(findings), default=0)
    total = score(rows)
    if total is None:
        return None
    sizes = sizes_of(rows, objects)
    trainings = [row.training for row in rows if row.training]
    return Costs(
        entrant,
        total,
        objects,
        score(rows, objects),
        middle(size.policy_microseconds for size in sizes),
        middle(size.peak_mebibytes for size in sizes),
        middle(training.seconds for training in trainings),
        middle(training.peak_mebibytes for training in trainings),
        tuple(sorted({training.networks for training in trainings})),
        tuple(sorted({training.device for training in trainings})),
    )


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


# Failures


def causes(rows: Iterable[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        for size in row.sizes:
            found.update(size.reasons)
    return found


# What is missing


def missing(findings: Findings) -> list[str]:
    """What a whole run has and these findings do not, a sentence each."""
    there, tasks = entrants_in(findings), tasks_in(findings)
    lines = []
    if absent := [task for task in TASKS if task not in tasks]:
        lines.append(f"Tasks that were not run: {', '.join(absent)}.")
    if lacking := [ENTRANTS[name].title for name in USUAL if ENTRANTS[name] not in there]:
        lines.append(f"Methods that were not run: {'; '.join(lacking)}.")
    full = max((_episodes(findings, entrant, task) for entrant in there for task in tasks), default=0)
    for entrant in there:
        for task in tasks:
            episodes = _episodes(findings, entrant, task)
            if episodes < full:
                lines.append(f"{entrant.title} on {task}: {episodes or 'none'} of {full} episodes.")
    if not findings.scaling:
        lines.append("Large problems, for which rules and LAMA are timed, were not run.")
    return lines


def _episodes(findings: Findings, entrant: Entrant, task: str) -> int:
    return sum(row.episodes for row in rows_of(findings, entrant, task))

"""What findings come to: scores of methods on tasks, what they cost, why they failed, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from bilevel.experiments.intervals import Counts, Interval, rate_difference_interval, rate_interval
from bilevel.experiments.methods import METHODS, is_published
from bilevel.experiments.paper import TASKS, in_order, paper_rate
from bilevel.experiments.reproduction.findings import Finding, Findings
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.recipes import USUAL_WORLD
from bilevel.experiments.reproduction.variants import PAPERS_ROWS, USUAL, VARIANTS, Variant
from bilevel.methods.methods import EXPERT


@dataclass(frozen=True)
class Score:
    """How many of some episodes were successes, with each seed."""

    by_seed: Mapping[int, Counts]
    networks: frozenset[tuple[str, int, str | None]] = frozenset()  # task, seed, and digest of the policy that was run

    @property
    def successes(self) -> int:
        """How many episodes succeeded."""
        return sum(counts.successes for counts in self.by_seed.values())

    @property
    def episodes(self) -> int:
        """How many episodes were run."""
        return sum(counts.episodes for counts in self.by_seed.values())

    @property
    def rate(self) -> float:
        """The part of the episodes that succeeded."""
        return self.successes / self.episodes

    @property
    def policies(self) -> tuple[Counts, ...]:
        """The counts of each seed, or of all together where the seed makes no other policy, as with the expert."""
        is_one = self.networks and len({(task, digest) for task, _, digest in self.networks}) == len(
            {task for task, *_ in self.networks}
        )
        return (Counts(self.successes, self.episodes),) if is_one else tuple(self.by_seed.values())

    @cached_property
    def interval(self) -> Interval:
        """The 95% interval of the rate: of the method over training seeds, or where it is but one policy, of that."""
        return rate_interval(self.policies)

    @property
    def seed_rates(self) -> tuple[float, ...]:
        """The rate with each seed."""
        return tuple(counts.successes / counts.episodes for counts in self.by_seed.values())

    @property
    def seed_range(self) -> Interval:
        """The rates with the worst seed and with the best."""
        return min(self.seed_rates), max(self.seed_rates)

    def less(self, other: Score) -> Interval:
        """Return the 95% interval of this rate less another; in pairs where both ran on the same networks."""
        is_paired = self.networks == other.networks and [*self.by_seed] == [*other.by_seed] and bool(self.networks)
        return rate_difference_interval(other.policies, self.policies, is_paired)


@dataclass(frozen=True)
class Cell:
    """A method on a task, or on all together, beside what the paper has."""

    variant: Variant
    task: str | None
    score: Score | None
    paper: float | None
    is_best: bool = False  # or not to be told from the best

    @property
    def rate(self) -> float:
        """The success rate; 0 where nothing was run."""
        return self.score.rate if self.score else 0.0


@dataclass(frozen=True)
class Costs:
    """What a method takes: medians over tasks and seeds."""

    variant: Variant
    score: Score  # over all sizes
    objects: int  # the largest number that there is, for what follows
    largest: Score | None
    measured: Mapping[str, float | None]  # size of the network, time and memory of training and of inference
    networks: Sequence[int]  # as many as were trained side by side
    devices: Sequence[str]

    @property
    def trained_how(self) -> str:
        """` on cpu, 3 networks side by side`: who shares a time has to be said with it."""
        many = [str(number) for number in self.networks if number > 1]
        beside = f", {' or '.join(many)} networks side by side" if many else ""
        return f" on {' and '.join(self.devices)}{beside}" if self.devices else ""


def score(rows: Sequence[Finding], objects: int | None = None) -> Score | None:
    """Return the score over all sizes, or over one; `None` without a single episode."""
    wins: Counter[int] = Counter()
    episodes: Counter[int] = Counter()
    for row in rows:
        for size in row.sizes:
            if objects in (None, size.objects):
                wins[row.seed] += size.successes
                episodes[row.seed] += size.episodes
    by_seed = {seed: Counts(wins[seed], episodes[seed]) for seed in sorted(episodes) if episodes[seed]}
    networks = frozenset((row.task, row.seed, row.digest) for row in rows if row.seed in by_seed)
    return Score(by_seed, networks) if by_seed else None


def _compared(column: Sequence[Cell]) -> list[Cell]:
    """Note the best rate and those that cannot be told from it, the expert aside; nobody is praised for nothing.

    The best is nothing where it cannot be told from a method that always fails.
    """
    rivals = [(cell, cell.score) for cell in column if cell.score and _is_rival(cell.variant)]
    best = max((score for _, score in rivals), key=lambda score: score.rate, default=None)
    if best is None or not best.less(_always_failing(best))[0] > 0:
        return list(column)
    equals = [cell for cell, score in rivals if score is best or best.less(score)[0] <= 0]
    return [replace(cell, is_best=True) if cell in equals else cell for cell in column]


def _is_rival(variant: Variant) -> bool:
    """Whether a row is compared with others: the expert is a bound, and another world is another task."""
    return variant.method != EXPERT and variant.world == USUAL_WORLD


def _always_failing(score: Score) -> Score:
    return Score({seed: Counts(0, counts.episodes) for seed, counts in score.by_seed.items()})


def is_in_paper(variant: Variant) -> bool:
    """Whether a row is one of the paper's table, or ours beside BISON's."""
    return variant.name in PAPERS_ROWS or is_published(METHODS[variant.method])


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


@dataclass(frozen=True)
class Results:
    """Findings, and what they come to."""

    findings: Findings

    @cached_property
    def variants(self) -> list[Variant]:
        """The methods that were measured, in the usual order."""
        measured = {row.variant for row in self.findings.rows}
        return [variant for name, variant in VARIANTS.items() if name in measured]

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks that were measured: the paper's in its order, then others."""
        return in_order(row.task for row in self.findings.rows)

    @cached_property
    def sizes(self) -> list[int]:
        """The numbers of objects that were measured, in ascending order."""
        return sorted({size.objects for row in self.findings.rows for size in row.sizes})

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that were used, in ascending order."""
        return sorted({row.seed for row in self.findings.rows})

    def rows(self, variant: Variant | None = None, task: str | None = None) -> list[Finding]:
        """Return the rows of a method, or of all, on a task, or on all."""
        name = variant and variant.name
        return [row for row in self.findings.rows if name in (None, row.variant) and task in (None, row.task)]

    def by_size(self, variant: Variant, task: str) -> dict[int, Score]:
        """Return the scores of a method on a task, by number of objects."""
        found = {size: score(self.rows(variant, task), size) for size in self.sizes}
        return {size: score for size, score in found.items() if score}

    def outcomes(self, variant: Variant | None = None, task: str | None = None) -> Counter[str]:
        """Return how episodes ended: how many were a `success`, and how many failed for each reason."""
        found: Counter[str] = Counter()
        for row in self.rows(variant, task):
            found["success"] += row.successes
            for size in row.sizes:
                found.update(size.reasons)
        return found

    @cached_property
    def large_problems(self) -> dict[tuple[str, str], dict[int, list[Scaling]]]:
        """The problems of symbols alone by task and solver, rules before others, then by number of objects."""
        found: dict[tuple[str, str], dict[int, list[Scaling]]] = {}
        tasks = list(dict.fromkeys(one.task for one in self.findings.scaling))
        for one in sorted(
            self.findings.scaling, key=lambda one: (tasks.index(one.task), one.solver != "rules", one.objects)
        ):
            found.setdefault((one.task, one.solver), {}).setdefault(one.objects, []).append(one)
        return found

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """A row for each method: each task, then all of them.

        Published models have a row in the whole table, run or not: nothing stands in for their weights.
        """
        is_whole = set(TASKS) <= set(self.tasks) and all(VARIANTS[name] in self.variants for name in PAPERS_ROWS)
        published = [one for one in VARIANTS.values() if is_whole and is_published(METHODS[one.method])]
        variants = [one for one in VARIANTS.values() if one in self.variants or one in published]
        columns = [_compared([self._cell(variant, task) for variant in variants]) for task in (*self.tasks, None)]
        return [list(row) for row in zip(*columns, strict=True)]

    def _cell(self, variant: Variant, task: str | None) -> Cell:
        """Return one cell; a total is over all tasks that were measured, the paper's over its own."""
        rows = self.rows(variant, task)
        is_whole = task is not None or {row.task for row in rows} == set(self.tasks)
        has_rate = (task is not None or self.tasks == list(TASKS)) and is_in_paper(variant)
        paper = paper_rate(variant.method, task) if has_rate else None
        return Cell(variant, task, score(rows) if is_whole else None, paper)

    def costs(self, task: str | None = None) -> list[Costs]:
        """Return what each method takes on a task, or on all."""
        found, objects = [], max(self.sizes, default=0)
        for variant in self.variants:
            rows = self.rows(variant, task)
            if total := score(rows):
                sizes = [size for row in rows for size in row.sizes if size.objects == objects]
                trainings = [row.training for row in rows if row.training]
                measured = {
                    "parameters": _median(training.parameters for training in trainings),
                    "training_seconds": _median(training.seconds for training in trainings),
                    "training_mebibytes": _median(training.peak_mebibytes for training in trainings),
                    "policy_microseconds": _median(size.policy_microseconds for size in sizes),
                    "peak_mebibytes": _median(size.peak_mebibytes for size in sizes),
                }
                networks = sorted({training.networks for training in trainings})
                devices = sorted({training.device for training in trainings})
                found.append(Costs(variant, total, objects, score(rows, objects), measured, networks, devices))
        return found

    def missing(self) -> list[str]:
        """Return what a whole run has and these findings do not, a sentence each."""
        lines = []
        if absent := [task for task in TASKS if task not in self.tasks]:
            lines.append(f"Tasks that were not run: {', '.join(absent)}.")
        if lacking := [VARIANTS[name].title for name in USUAL if VARIANTS[name] not in self.variants]:
            lines.append(f"Methods that were not run: {'; '.join(lacking)}.")
        lines += self.findings.missing() if self.findings.about.asked else self._fewer_episodes()
        lines += [f"{name}: damaged, or of a policy that is there no more." for name in self.findings.about.left_out]
        if not self.findings.scaling:
            lines.append("Large problems, for which rules and planners are timed, were not run.")
        return lines

    def _fewer_episodes(self) -> list[str]:
        """Return of what there are fewer episodes than of others, where it is not known what was asked for."""
        pairs = [(variant, task) for variant in self.variants for task in self.tasks if variant.is_for(task)]
        episodes = {pair: sum(row.episodes for row in self.rows(*pair)) for pair in pairs}
        full = max(episodes.values(), default=0)
        return [
            f"{variant.title} on {task}: {number or 'none'} of {full} episodes."
            for (variant, task), number in episodes.items()
            if number < full
        ]

"""The tables: what findings come to, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from bilevel.experiments.methods import METHODS, is_published
from bilevel.experiments.report.scores import Cell, Costs, Results, Score
from bilevel.experiments.report.table_formats import Table, Text, Value
from bilevel.experiments.report.wording import (
    NOTHING,
    SOLVERS,
    interval,
    mebibytes,
    microseconds,
    per_cent,
    plural,
    ranges,
    rate,
    seconds,
)
from bilevel.experiments.reproduction.rows import Scaling
from bilevel.policies.failures import REASONS

NOT_RUN = "not run"
TOTAL = "total"

Record = dict[str, Value]


def tables(results: Results) -> list[Table]:
    """Return all tables that there is something to put in."""
    makers = (main_table, size_table, cost_table, cause_table, scaling_table)
    return [table for table in (make(results) for make in makers) if table.records]


def scope(results: Results) -> str:
    """Return what was run: `8 tasks, 1–10 objects, 10 episodes of each size with each of 3 seeds`."""
    each = sorted({size.episodes for row in results.findings.rows for size in row.sizes})
    seeds = len(results.seeds)
    return (
        f"{plural(len(results.tasks), 'task')}, {ranges(results.sizes)} objects, "
        f"{ranges(each)} episodes of each size with {f'each of {seeds} seeds' if seeds > 1 else 'one seed'}"
    )


# Success


def main_table(results: Results) -> Table:
    """Return the success rates of all methods on all tasks, with the paper's."""
    about = (
        "In brackets the 95% interval (Wilson), in italics what the paper reports. The two best of each column are set "
        "off, the expert aside."
    )
    return _success_table(results, f"{scope(results)}. {about}", with_intervals=True)


def short_table(results: Results) -> Table:
    """Return the main table with rates alone, for a page with little room."""
    return _success_table(results, f"{scope(results)}; in italics what the paper reports.", with_intervals=False)


def _success_table(results: Results, caption: str, with_intervals: bool) -> Table:
    rows = results.cells
    lines: list[list[Text | str]] = [
        [row[0].variant.title, *(_text(cell, with_intervals) for cell in row)] for row in rows
    ]
    records: list[Record] = [
        {"method": cell.variant.name, "task": cell.task or TOTAL, **_score_record(cell.score), "paper": cell.paper}
        for row in rows
        for cell in row
    ]
    return Table("success", "Success rates", caption, ["method", *results.columns, TOTAL], lines, records)


def _text(cell: Cell, with_interval: bool) -> Text:
    aside = "" if cell.paper is None else rate(cell.paper)
    if cell.score is None:
        return Text(absence(cell), aside=aside)
    more = f"({interval(cell.score.interval)})" if with_interval else ""
    return Text(rate(cell.rate), more, aside, strong=cell.rank is not None)


def absence(cell: Cell) -> str:
    """Return what stands where there is no score."""
    return NOT_RUN if is_published(METHODS[cell.variant.method]) else NOTHING


def _score_record(score: Score | None) -> Record:
    """Return all about a score; nothing but `None` where there is none."""
    names = ("successes", "episodes", "rate", "low", "high", "lowest_seed", "highest_seed")
    if score is None:
        return dict.fromkeys(names)
    values = (score.successes, score.episodes, score.rate, *score.interval, *score.seed_range)
    return dict(zip(names, values, strict=True))


def size_table(results: Results) -> Table:
    """Return the successes with each number of objects."""
    sizes, lines = results.sizes, []
    records: list[Record] = []
    for task in results.tasks:
        for variant in results.variants:
            if scores := results.by_size(variant, task):
                counts = {size: f"{score.successes}/{score.episodes}" for size, score in scores.items()}
                lines.append([f"{task}, {variant.title}", *(counts.get(size, NOTHING) for size in sizes)])
            for size, score in scores.items():
                records.append({"method": variant.name, "task": task, "objects": size, **_score_record(score)})
    caption = f"{scope(results)}: successes of as many episodes."
    header = ["task, method", *(f"n = {size}" for size in sizes)]
    return Table("success-by-objects", "Success by number of objects", caption, header, lines, records)


# Costs


def cost_table(results: Results) -> Table:
    """Return what each method takes: medians over tasks and seeds."""
    totals = results.costs()
    lines = [
        [
            found.variant.title,
            rate(found.score.rate),
            _known(found.training_seconds, seconds),
            _known(found.training_mebibytes, mebibytes),
            _known(found.policy_microseconds, microseconds),
            _known(found.peak_mebibytes, mebibytes),
        ]
        for found in totals
    ]
    records = [_cost_record(found, task) for task in (None, *results.tasks) for found in results.costs(task)]
    caption = (
        f"Medians over tasks and seeds; steps and memory with {max(results.sizes, default=0)} objects, labels and "
        "planning included. Methods that plan run on the network of BISON in the paper's setting."
    )
    shared = [f"{found.variant.title}{found.trained_how}" for found in totals if max(found.networks, default=1) > 1]
    if shared:
        caption += f" Times of training are shared: {'; '.join(shared)}."
    header = ["method", "success", "training", "memory in training", "a step", "memory"]
    return Table("costs", "Time and memory", caption, header, lines, records)


def _cost_record(found: Costs, task: str | None) -> Record:
    return {
        "method": found.variant.name,
        "task": task or TOTAL,
        "rate": found.score.rate,
        "objects": found.objects,
        "rate_at_objects": found.largest.rate if found.largest else None,
        "training_seconds": found.training_seconds,
        "training_mebibytes": found.training_mebibytes,
        "policy_microseconds": found.policy_microseconds,
        "peak_mebibytes": found.peak_mebibytes,
        "trained_on": " and ".join(found.devices) or None,
        "trained_side_by_side": " or ".join(map(str, found.networks)) or None,
    }


def _known(value: float | None, show: Callable[[float], str]) -> str:
    return NOTHING if value is None else show(value)


# Causes of failure


def cause_table(results: Results) -> Table:
    """Return how many episodes failed for each reason."""
    totals = {variant: results.outcomes(variant) for variant in results.variants}
    reasons = [reason for reason in REASONS if any(found[reason] for found in totals.values())]
    lines = []
    for variant, found in totals.items():
        successes, episodes = found["success"], found.total()
        share = f" ({per_cent(successes / episodes)})" if episodes else ""
        counts = (f"{found[reason]:,}" if found[reason] else NOTHING for reason in reasons)
        lines.append([variant.title, f"{successes:,}/{episodes:,}{share}", *counts])
    records: list[Record] = []
    for variant in totals:
        for task in results.tasks:
            if found := results.outcomes(variant, task):
                counted: Record = {"episodes": found.total(), "successes": found["success"]}
                by_reason = {reason: found[reason] for reason in REASONS}
                records.append({"method": variant.name, "task": task, **counted, **by_reason})
    caption = f"{scope(results)}, all tasks together; each failure has one cause."
    return Table("causes", "Causes of failure", caption, ["method", "successes", *reasons], lines, records)


# Large problems


def scaling_table(results: Results) -> Table:
    """Return how long rules and LAMA take as problems grow."""
    sizes = sorted({one.objects for one in results.findings.scaling})
    lines = []
    for task in dict.fromkeys(one.task for one in results.findings.scaling):
        for solver, title in SOLVERS.items():
            mine = [one for one in results.findings.scaling if (one.task, one.solver) == (task, solver)]
            if mine:
                times = (_solving([one for one in mine if one.objects == size]) for size in sizes)
                lines.append([f"{task}, {title}", *times])
    caption = "Time to solve problems of symbols alone, by number of objects, on one core."
    header = ["task, solver", *(f"{size:,}" for size in sizes)]
    records = [_scaling_record(one) for one in results.findings.scaling]
    return Table("solving-time", "Solving time", caption, header, lines, records)


def _solving(found: Sequence[Scaling]) -> str:
    if not found:
        return NOTHING
    if any(one.timed_out for one in found):
        return "out of time"
    return seconds(median(one.seconds for one in found)) if all(one.solved for one in found) else "unsolved"


def _scaling_record(one: Scaling) -> Record:
    values = {name: value for name, value in msgspec.structs.asdict(one).items() if name not in ("versions", "machine")}
    return {**values, "solved": int(one.solved), "timed_out": int(one.timed_out)}

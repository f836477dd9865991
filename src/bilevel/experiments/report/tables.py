"""The tables: what findings come to, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from bilevel.experiments.methods import METHODS
from bilevel.experiments.report.figures import SOLVERS, trained_how
from bilevel.experiments.report.scores import (
    Cell,
    Score,
    causes,
    cells,
    costs,
    entrants_in,
    rows_of,
    score,
    seeds_in,
    sizes_in,
    tasks_in,
)
from bilevel.experiments.report.table_formats import Table, Text, Value
from bilevel.experiments.report.wording import (
    NOTHING,
    interval,
    mebibytes,
    microseconds,
    per_cent,
    plural,
    ranges,
    rate,
    seconds,
)
from bilevel.experiments.reproduction.rows import Findings, Scaling
from bilevel.experiments.reproduction.settings import Entrant
from bilevel.policies.failures import REASONS
from bilevel.tabletop.tasks import TASKS

NOT_RUN = "not run"
TOTAL = "total"
ABSENT = Text(NOTHING)

Show = Callable[[float], str]


def tables(findings: Findings) -> list[Table]:
    """All that there is something to put in."""
    found = [main_table(findings), size_table(findings), cost_table(findings), cause_table(findings)]
    return [table for table in (*found, scaling_table(findings)) if table.records]


def scope(findings: Findings) -> str:
    """What was run: `8 tasks, 1–10 objects, 10 episodes of each size with each of 3 seeds`."""
    each = sorted({size.episodes for row in findings.rows for size in row.sizes})
    seeds = len(seeds_in(findings))
    return (
        f"{plural(len(tasks_in(findings)), 'task')}, {ranges(sizes_in(findings))} objects, "
        f"{ranges(each)} episodes of each size with {f'each of {seeds} seeds' if seeds > 1 else 'one seed'}"
    )


# Table 1


def main_table(findings: Findings) -> Table:
    """Success rates of all methods on all tasks, with the paper's."""
    rows = cells(findings)
    return Table(
        "success",
        "Success rates",
        f"{scope(findings)}. In brackets the 95% interval (Wilson), in italics what the paper reports. The two best of "
        "each column are set off, the expert aside.",
        ["method", *TASKS, TOTAL],
        [[Text(row[0].entrant.title), *map(_interval_text, row)] for row in rows],
        [_record(cell) for row in rows for cell in row],
    )


def short_table(findings: Findings) -> Table:
    """The same with rates alone, for a page with little room."""
    table = main_table(findings)
    caption = f"{scope(findings)}; in italics what the paper reports."
    lines = [[Text(row[0].entrant.title), *map(_rate_text, row)] for row in cells(findings)]
    return Table(table.name, table.title, caption, table.header, lines, table.records)


def _rate_text(cell: Cell) -> Text:
    aside = "" if cell.paper is None else rate(cell.paper)
    if cell.score is None:
        return Text(absence(cell), aside=aside)
    return Text(rate(cell.score.rate), aside=aside, strong=cell.rank is not None)


def _interval_text(cell: Cell) -> Text:
    text = _rate_text(cell)
    return replace(text, more=f"({interval(cell.score.interval)})") if cell.score else text


def absence(cell: Cell) -> str:
    """What stands where there is no score."""
    return NOT_RUN if METHODS[cell.entrant.method].model else NOTHING


def _record(cell: Cell) -> dict[str, Value]:
    return {
        "method": cell.entrant.name,
        "task": cell.task or TOTAL,
        **score_record(cell.score),
        "paper": cell.paper,
    }


def score_record(score: Score | None) -> dict[str, Value]:
    """All about a score; empty where there is none."""
    low, high = score.interval if score else (None, None)
    return {
        "successes": score.successes if score else None,
        "episodes": score.episodes if score else None,
        "rate": score.rate if score else None,
        "low": low,
        "high": high,
        "lowest_seed": min(score.by_seed) if score else None,
        "highest_seed": max(score.by_seed) if score else None,
    }


# By size


def size_table(findings: Findings) -> Table:
    """Successes with each number of objects."""
    sizes, lines = sizes_in(findings), []
    records: list[dict[str, Value]] = []
    for task in tasks_in(findings):
        for entrant in entrants_in(findings):
            rows = rows_of(findings, entrant, task)
            scores = {size: score(rows, size) for size in sizes}
            if not any(scores.values()):
                continue
            lines.append([Text(f"{task}, {entrant.title}"), *(_count(found) for found in scores.values())])
            for size, found in scores.items():
                if found:
                    records.append({"method": entrant.name, "task": task, "objects": size, **score_record(found)})
    caption = f"{scope(findings)}: successes of as many episodes."
    header = ["task, method", *(f"n = {size}" for size in sizes)]
    return Table("success-by-objects", "Success by number of objects", caption, header, lines, records)


def _count(score: Score | None) -> Text:
    return Text(f"{score.successes}/{score.episodes}") if score else ABSENT


# Costs


def cost_table(findings: Findings) -> Table:
    """What each method takes: medians over tasks and seeds."""
    lines: list[list[Text]] = []
    records: list[dict[str, Value]] = []
    largest = max(sizes_in(findings), default=0)
    for task in (None, *tasks_in(findings)):
        for found in costs(findings, task):
            training = _known(found.training_seconds, seconds)
            training_memory = _known(found.training_mebibytes, mebibytes)
            step = _known(found.policy_microseconds, microseconds)
            memory = _known(found.peak_mebibytes, mebibytes)
            success = Text(rate(found.score.rate))
            if task is None:
                lines.append([Text(found.entrant.title), success, training, training_memory, step, memory])
            records.append(
                {
                    "method": found.entrant.name,
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
            )
    header = ["method", "success", "training", "memory in training", "a step", "memory"]
    caption = (
        f"Medians over tasks and seeds; steps and memory with {largest} objects, labels and planning included. "
        f"Methods that plan run on the network of BISON in the paper's setting.{_shared(findings)}"
    )
    return Table("costs", "Time and memory", caption, header, lines, records)


def _shared(findings: Findings) -> str:
    """Whose time of training is that of several networks."""
    told = [
        f"{found.entrant.title}{trained_how(found)}" for found in costs(findings) if max(found.networks, default=1) > 1
    ]
    return f" Times of training are shared: {'; '.join(told)}." if told else ""


def _known(value: float | None, show: Show) -> Text:
    return ABSENT if value is None else Text(show(value))


# Causes of failure


def cause_table(findings: Findings) -> Table:
    found = {entrant: causes(rows_of(findings, entrant)) for entrant in entrants_in(findings)}
    reasons = [reason for reason in REASONS if any(count[reason] for count in found.values())]
    lines = [_cause_line(findings, entrant, found[entrant], reasons) for entrant in found]
    records: list[dict[str, Value]] = []
    for entrant in found:
        for task in tasks_in(findings):
            rows = rows_of(findings, entrant, task)
            if rows:
                counts = causes(rows)
                records.append(
                    {
                        "method": entrant.name,
                        "task": task,
                        "episodes": sum(row.episodes for row in rows),
                        "successes": sum(row.successes for row in rows),
                        **{reason: counts[reason] for reason in REASONS},
                    }
                )
    caption = f"{scope(findings)}, all tasks together; each failure has one cause."
    return Table("causes", "Causes of failure", caption, ["method", "successes", *reasons], lines, records)


def _cause_line(findings: Findings, entrant: Entrant, counts: Mapping[str, int], reasons: Sequence[str]) -> list[Text]:
    rows = rows_of(findings, entrant)
    successes, episodes = sum(row.successes for row in rows), sum(row.episodes for row in rows)
    share = f" ({per_cent(successes / episodes)})" if episodes else ""
    numbers = [Text(f"{counts[reason]:,}") if counts[reason] else ABSENT for reason in reasons]
    return [Text(entrant.title), Text(f"{successes:,}/{episodes:,}{share}"), *numbers]


# Large problems


def scaling_table(findings: Findings) -> Table:
    """How long rules and LAMA take as problems grow."""
    tasks = [task for task in TASKS if any(one.task == task for one in findings.scaling)]
    sizes = sorted({one.objects for one in findings.scaling})
    lines = []
    for task in tasks:
        for solver, title in SOLVERS.items():
            mine = [one for one in findings.scaling if (one.task, one.solver) == (task, solver)]
            if mine:
                cells = [_solving([one for one in mine if one.objects == size]) for size in sizes]
                lines.append([Text(f"{task}, {title}"), *cells])
    header = ["task, solver", *(f"{size:,}" for size in sizes)]
    caption = "Time to solve problems of symbols alone, by number of objects, on one core."
    return Table("solving-time", "Solving time", caption, header, lines, [_solved(one) for one in findings.scaling])


def _solving(found: Sequence[Scaling]) -> Text:
    if not found:
        return ABSENT
    if any(one.timed_out for one in found):
        return Text("out of time")
    if not all(one.solved for one in found):
        return Text("unsolved")
    return Text(seconds(median(one.seconds for one in found)))


def _solved(one: Scaling) -> dict[str, Value]:
    return {
        "task": one.task,
        "solver": one.solver,
        "objects": one.objects,
        "seconds": one.seconds,
        "solved": int(one.solved),
        "timed_out": int(one.timed_out),
        "actions": one.actions,
        "peak_mebibytes": one.peak_mebibytes,
    }

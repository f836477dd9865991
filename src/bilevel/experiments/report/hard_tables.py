"""The tables of the hard suite: the values of its curves, and where they pass a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from bilevel.experiments.hard.axes import AXES, Axis, Measure
from bilevel.experiments.hard.curves import FoundPoint
from bilevel.experiments.report.hard_figures import figure_name
from bilevel.experiments.report.hard_results import (
    ENOUGH,
    TIMES,
    HardResults,
    Place,
    Points,
    TimeMeasure,
    first_beyond,
    least_for,
    score,
    time_of,
)
from bilevel.experiments.report.tables import Record, Table, Text
from bilevel.experiments.report.wording import NOTHING, interval, per_cent, rate, seconds
from bilevel.experiments.reproduction.variants import Variant

NEEDED, BEHIND = "hard-demonstrations-needed", "hard-falling-behind"


def hard_tables(results: HardResults) -> dict[str, Table]:
    """Return all tables that there is something to put in, by name."""
    found = [axis_table(results, axis, measure) for axis in results.axes for measure in axis.measures]
    found += [pooled_table(results, axis) for axis in results.axes if "success" in axis.measures]
    found += [needed_table(results), behind_table(results)]
    return {table.name: table for table in found if table.records}


# The values of curves


class _Cell(NamedTuple):
    text: Text
    record: Record


def axis_table(results: HardResults, axis: Axis, measure: Measure) -> Table:
    """Return a line for each method on each task, and a column for each value of the axis."""
    time = TIMES.get(measure)
    cell: Callable[[Variant, Sequence[FoundPoint]], _Cell | None] = (
        partial(_time_cell, time, axis.in_symbols) if time else _rate_cell
    )
    lines: list[list[Text | str]] = []
    records: list[Record] = []
    values = sorted({value for _, _, points in _rows(results, axis) for value in points})
    for place, variant, points in _rows(results, axis):
        cells = {value: found for value in points if (found := cell(variant, points[value]))}
        name = f"{results.title(axis, place)}, {variant.title}"
        lines.append([name, *(cells[value].text if value in cells else NOTHING for value in values)])
        where: Record = {"axis": axis.name, "task": place.task, "objects": place.objects, "method": variant.name}
        records += [{**where, "value": value, **found.record} for value, found in cells.items()]
    title = time.title[0].upper() + time.title[1:] if time else "Success"
    about = f"{time.about} Medians over seeds" if time else f"{axis.about} Successes of as many episodes"
    header = ["task, method", *map(axis.show, values)]
    caption = f"{about}{results.objects(axis)}, by {axis.title}."
    return Table(figure_name(axis, measure), f"{title}: {axis.name}", caption, header, lines, records)


def _rows(results: HardResults, axis: Axis) -> list[tuple[Place, Variant, Points]]:
    places = results.curves(axis).items()
    return [(place, variant, points) for place, curves in places for variant, points in curves.items()]


def _rate_cell(variant: Variant, points: Sequence[FoundPoint]) -> _Cell:
    found = score(variant, points)
    low, high = found.interval
    counted: Record = {"successes": found.successes, "episodes": found.episodes, "rate": found.rate}
    return _Cell(Text(f"{found.successes}/{found.episodes}"), {**counted, "low": low, "high": high})


def _time_cell(measure: TimeMeasure, may_give_up: bool, variant: Variant, points: Sequence[FoundPoint]) -> _Cell | None:
    time = time_of(measure, points)
    if time is None:
        return None
    ends: Record = {"seconds": time.middle, "low": min(time.by_seed), "high": max(time.by_seed)}
    gave_up = may_give_up and not time.solved
    return _Cell(Text(seconds(time.middle), "unsolved" if gave_up else ""), {**ends, "solved": int(time.solved)})


def pooled_name(axis: Axis) -> str:
    """Return the name of the files of a table for all tasks together."""
    return f"hard-{axis.name}-pooled"


def pooled_table(results: HardResults, axis: Axis) -> Table:
    """Return a line for each method, for all tasks together, and a column for each value that all tasks have.

    A method that was run on some of the tasks alone says on which.
    """
    pooled: dict[Variant, Points] = {}
    run_on: dict[Variant, dict[str, None]] = {}
    places = results.curves(axis)
    for place, curves in places.items():
        for variant, points in curves.items():
            run_on.setdefault(variant, {})[place.task] = None
            for value, found in points.items():
                pooled.setdefault(variant, {}).setdefault(value, []).extend(found)
    lines: list[list[Text | str]] = []
    records: list[Record] = []
    values = sorted(set.intersection(*(set(points) for _, _, points in _rows(results, axis)))) if places else []
    tasks = dict.fromkeys(place.task for place in places)
    for variant, by_value in pooled.items():
        scores = {value: score(variant, by_value[value]) for value in values}
        alone = f" ({', '.join(run_on[variant])})" if len(run_on[variant]) < len(tasks) else ""
        rates = [Text(rate(one.rate), f"({interval(one.interval)})") for one in scores.values()]
        lines.append([f"{variant.title}{alone}", *rates])
        for value, one in scores.items():
            counted: Record = {"successes": one.successes, "episodes": one.episodes, "rate": one.rate}
            records.append({"method": variant.name, "value": value, **counted})
    seeds = {point.seed for by_value in pooled.values() for found in by_value.values() for point in found}
    which = "over training seeds" if len(seeds) > 1 else "(Wilson) of these policies, one for each task and point"
    whose = f"{', '.join(tasks)} together{results.objects(axis)}, with 95% intervals {which}"
    caption = f"{axis.about} The success rate of {whose}, by {axis.title}."
    header = ["method", *map(axis.show, values)]
    return Table(pooled_name(axis), f"Success: {axis.name}, all tasks together", caption, header, lines, records)


# Where they pass a limit


def needed_table(results: HardResults) -> Table:
    """Return how many demonstrations each method needs on each task."""
    axis = AXES["demonstrations"]
    lines, records = list[list[Text | str]](), list[Record]()
    for place, variant, points in _rows(results, axis):
        if variant.recipe:
            needed = least_for(variant, points)
            lines.append([f"{results.title(axis, place)}, {variant.title}", _number(needed, "not with", max(points))])
            where: Record = {"task": place.task, "objects": place.objects, "method": variant.name}
            records.append({**where, "needed": needed, "most": max(points)})
    caption = f"From how many on {per_cent(ENOUGH)} of the episodes succeed{results.objects(axis)}."
    header = ["task, method", "demonstrations"]
    return Table(NEEDED, "Demonstrations needed", caption, header, lines, records)


class _Limit(NamedTuple):
    axis: str
    measure: Measure
    where: str = ""


LIMITS = (_Limit("deciding", "decision"), _Limit("deciding", "pause"), _Limit("symbols", "pause", ", in symbols alone"))


def behind_table(results: HardResults) -> Table:
    """Return the numbers of objects from which on methods are too slow: on the table, and in symbols alone."""
    cells: dict[tuple[str, Variant], dict[_Limit, str]] = {}
    records = list[Record]()
    for limit in LIMITS:
        for place, variant, points in _rows(results, AXES[limit.axis]):
            first, most = first_beyond(TIMES[limit.measure], points), max(points)
            cells.setdefault((place.task, variant), {})[limit] = _number(first, "not up to", most)
            where: Record = {"axis": limit.axis, "measure": limit.measure, "task": place.task, "method": variant.name}
            records.append({**where, "first": first, "most": most})
    lines: list[list[Text | str]] = [
        [f"{task}, {variant.title}", *(found.get(limit, NOTHING) for limit in LIMITS)]
        for (task, variant), found in cells.items()
    ]
    times = [(TIMES[limit.measure], limit.where) for limit in LIMITS]
    header = ["task, method", *(f"{time.title} over {time.limit_title}{where}" for time, where in times)]
    caption = "From how many objects on a method takes longer than a robot can wait."
    return Table(BEHIND, "Falling behind", caption, header, lines, records)


def _number(value: float | None, otherwise: str, most: float) -> str:
    return f"{otherwise} {most:,.0f}" if value is None else f"{value:,.0f}"

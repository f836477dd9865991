"""The figures of the hard suite: for each axis a panel for each task, with a curve for each method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from bilevel.experiments.hard.axes import Axis as HardAxis
from bilevel.experiments.hard.axes import Measure
from bilevel.experiments.report.charts import Axis, Figure, Mark, Panel, Series, log_axis
from bilevel.experiments.report.figures import rate_panel
from bilevel.experiments.report.hard_results import TIMES, HardResults, Points, Time, TimeMeasure, score, time_of
from bilevel.experiments.report.wording import seconds
from bilevel.experiments.reproduction.variants import Variant

LIMIT = "limit"  # the style of a line that is no method's
MARGIN = 0.04  # of an axis, beyond its first value and its last
LETTER, GAP = 0.03, 0.025  # of an axis: a letter of a tick's name, and what is left free between two of them
LEAST_APART = 0.09  # of an axis, however short the names of ticks are; those that are nearer are not named


def hard_figures(results: HardResults) -> dict[str, Figure]:
    """Return all figures by name."""
    found = [hard_figure(results, axis, measure) for axis in results.axes for measure in axis.measures]
    return {figure.name: figure for figure in found if figure.panels}


def figure_name(axis: HardAxis, measure: Measure) -> str:
    """Return the name of the files of a figure and of a table."""
    return f"hard-{axis.name}" + ("" if measure == "success" else f"-{measure}")


def hard_figure(results: HardResults, axis: HardAxis, measure: Measure) -> Figure:
    """Return the figure of an axis: success, or a time."""
    places = results.curves(axis)
    draw = _rates if measure == "success" else _times(TIMES[measure], list(places.values()), axis.in_symbols)
    panels = [draw(results.title(axis, place), _along(axis, curves), curves) for place, curves in places.items()]
    return Figure(figure_name(axis, measure), [panel for panel in panels if panel.series])


def _along(axis: HardAxis, curves: Mapping[Variant, Points]) -> Axis:
    """Return an axis with a tick at each value, as far as there is room for its name."""
    known = sorted({value for points in curves.values() for value in points})
    low, high = known[0], known[-1]
    if axis.is_log:
        margin = (high / low) ** MARGIN if low < high else 2.0
        ends = low / margin, high * margin
    else:
        margin = MARGIN * (high - low) if low < high else 1.0
        ends = low - margin, high + margin
    bare = Axis(axis.title, *ends, {}, axis.is_log, axis.show)
    return replace(bare, ticks={value: axis.show(value) for value in _apart(bare, known)})


def _apart(axis: Axis, values: Iterable[float]) -> list[float]:
    place: Callable[[float], float] = math.log if axis.log else float
    whole, found = place(axis.high) - place(axis.low), list[float]()
    for value in values:
        letters = len(axis.name(value)) + len(axis.name(found[-1])) if found else 0
        room = max(LEAST_APART, LETTER * letters / 2 + GAP)
        if not found or (place(value) - place(found[-1])) / whole >= room:
            found.append(value)
    return found


def _rates(title: str, x: Axis, curves: Mapping[Variant, Points]) -> Panel:
    scores = {
        variant: {value: score(variant, found) for value, found in points.items()} for variant, points in curves.items()
    }
    return rate_panel(title, x, scores)


def _times(measure: TimeMeasure, places: list[dict[Variant, Points]], may_give_up: bool) -> Callable[..., Panel]:
    """Return what draws panels with one axis of times for all of them, maybe with where a method gave up."""
    found = (time_of(measure, points) for curves in places for each in curves.values() for points in each.values())
    values = [second for time in found if time for second in time.by_seed]
    y = log_axis(measure.title, [*values, *([measure.limit] if measure.limit else [])], seconds)

    def draw(title: str, x: Axis, curves: Mapping[Variant, Points]) -> Panel:
        series = []
        for variant, points in curves.items():
            timed = {value: time for value in sorted(points) if (time := time_of(measure, points[value]))}
            if timed:
                marks = [_time_mark(value, time, may_give_up) for value, time in timed.items()]
                series.append(Series(variant.name, variant.title, marks))
        if series and measure.limit:
            marks = [Mark(value, measure.limit, seconds(measure.limit)) for value in (x.low, x.high)]
            series.append(Series(LIMIT, measure.limit_title, marks))
        return Panel(title, x, y, series)

    return draw


def _time_mark(value: float, time: Time, may_give_up: bool) -> Mark:
    low, high = min(time.by_seed), max(time.by_seed)
    seeds = f"; seeds {seconds(low)} to {seconds(high)}" if low < high else ""
    gave_up = may_give_up and not time.solved
    told = f"{seconds(time.middle)}{seeds}{'; none solved' if gave_up else ''}"
    return Mark(value, time.middle, told, (low, high), gave_up=gave_up)

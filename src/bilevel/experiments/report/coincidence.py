"""Curves that coincide: where, and which of so many each of them is there.

Nothing is moved for it that could be read off: lines are drawn in turns, bands once for all, and markers side by side
along the axis. A ceiling is left out of it, as it is drawn as an area.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from bilevel.experiments.report.charts import Mark, Panel, Series

Ends = tuple[tuple[float, ...], ...]


class Run(NamedTuple):
    """A part of a curve along which it coincides with the same others all the way."""

    marks: Sequence[Mark]
    place: int  # among those that coincide, in the order of the panel
    number: int  # of those that coincide, itself among them


def line_runs(panel: Panel, series: Series) -> Iterator[Run]:
    """Yield the parts of the line of a curve, each as long as it can be."""
    return _runs(panel, series, lambda mark: (mark.x, mark.y))


def band_runs(panel: Panel, series: Series) -> Iterator[Run]:
    """Yield the parts of the band of a curve, each as long as it can be."""
    return _runs(panel, series, lambda mark: (mark.x, *(mark.range or (mark.y, mark.y))))


def _runs(panel: Panel, series: Series, place: Callable[[Mark], tuple[float, ...]]) -> Iterator[Run]:
    def ends(step: tuple[Mark, Mark]) -> Ends:
        return place(step[0]), place(step[1])

    curves = [*_curves(panel)] if not series.is_ceiling else [series]
    steps = {one.key: set(map(ends, pairwise(one.marks))) for one in curves}

    def company(step: tuple[Mark, Mark]) -> tuple[str, ...]:
        return tuple(key for key, known in steps.items() if ends(step) in known)

    for keys, run in groupby(pairwise(series.marks), key=company):
        (first, second), *rest = run
        yield Run([first, second, *(mark for _, mark in rest)], keys.index(series.key), len(keys))


def side_by_side(panel: Panel, series: Series) -> Iterator[tuple[Mark, int, int]]:
    """Yield each mark with its place among those at the same point, and how many these are."""
    places: dict[tuple[float, float], list[str]] = {}
    for one in _curves(panel):
        for mark in one.marks:
            places.setdefault((mark.x, mark.y), []).append(one.key)
    for mark in series.marks:
        keys = places[mark.x, mark.y]
        yield mark, keys.index(series.key), len(keys)


def _curves(panel: Panel) -> Iterator[Series]:
    return (series for series in panel.series if not series.is_ceiling)

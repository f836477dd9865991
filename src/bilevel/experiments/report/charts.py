"""Charts as values: axes, series of marks, and panels, which `drawing` draws; and axes for what is measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bilevel.experiments.report.looks import SERIES
from bilevel.experiments.report.wording import mebibytes, seconds
from bilevel.experiments.reproduction.variants import Variant


@dataclass(frozen=True)
class Axis:
    """What is shown along it, from where to where, with ticks and their texts."""

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    log: bool = False
    name: Callable[[float], str] = "{:g}".format  # what a value along it is called


@dataclass(frozen=True)
class Mark:
    """A point, with what is to be said about it; maybe with a range, or as a place at which something gave up."""

    x: float
    y: float
    tip: str
    range: tuple[float, float] | None = None
    gave_up: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Series:
    """Points that belong together, in the style of `key`. A ceiling is a bound that nobody is meant to pass."""

    key: str
    title: str
    marks: Sequence[Mark]
    is_ceiling: bool = False


@dataclass(frozen=True)
class Panel:
    """A chart with two axes; its points are joined by lines, or they are not."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    joined: bool = True


@dataclass(frozen=True)
class Figure:
    """Panels that go together, or bars in groups of equal length."""

    name: str  # of its files
    panels: Sequence[Panel] = ()
    bars: Mapping[str, Mapping[Variant, Counter[str]]] | None = None  # how episodes ended, by task and method
    size: Literal["small", "wide"] = "small"  # of its panels

    @property
    def legend(self) -> list[Series]:
        """Each series once, in the order of the styles."""
        found = {series.key: series for panel in self.panels for series in panel.series}
        return [found[key] for key in SERIES if key in found]


# Logarithmic axes

TIMES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0)  # seconds that people know
MORE_TIMES = (*TIMES, 2.0, 5.0, 20.0, 30.0, 120.0, 300.0, 1200.0, 1800.0, 7200.0, 18_000.0)
POWERS_OF_TWO = tuple(2.0**power for power in range(-10, 50))  # mebibytes
# Where ticks may be, by how they are told; the first choice that has enough of them is taken.
FAMILIAR: Mapping[Callable[[float], str], Sequence[Sequence[float]]] = {
    seconds: (TIMES, MORE_TIMES),
    mebibytes: (POWERS_OF_TWO[::2], POWERS_OF_TWO, sorted((*POWERS_OF_TWO, *(1.5 * tick for tick in POWERS_OF_TWO)))),
}
FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
LEAST_SPAN = 4.0  # times as much at the end of a logarithmic axis as at its beginning
ENOUGH = 3  # ticks on an axis
APART = 0.15  # of the axis, lest their texts meet


def log_axis(title: str, values: Iterable[float], show: Callable[[float], str]) -> Axis:
    """Return an axis a little longer than what there is, and long enough that no small difference looks large.

    Ticks are at familiar times or sizes, else at powers of ten, and where these are too few at some numbers between.
    """
    known = [value for value in values if value > 0] or [1.0, 10.0]
    span = max(known) / min(known)
    margin = max(span**0.08, math.sqrt(LEAST_SPAN / span))
    low, high = min(known) / margin, max(known) * margin
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    choices = [*FAMILIAR.get(show, ())]
    choices += [[power * factor for power in powers for factor in factors] for factors in FACTORS]
    ticks = next((found for choice in choices if len(found := _spread(choice, low, high)) >= ENOUGH), [])
    return Axis(title, low, high, {tick: show(tick) for tick in ticks}, log=True)


def _spread(choice: Iterable[float], low: float, high: float) -> list[float]:
    """Return those ticks of a choice that are on the axis and far enough from each other."""
    found: list[float] = []
    for tick in sorted(choice):
        near = found and math.log(tick / found[-1]) <= APART * math.log(high / low)
        if low <= tick <= high and not near:
            found.append(tick)
    return found

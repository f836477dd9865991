"""Charts as values: what `figures` says, and `drawing` draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bilevel.experiments.report.styles import SERIES, SUCCESS


@dataclass(frozen=True)
class Axis:
    """What is shown along it, from where to where, with ticks and their texts."""

    title: str
    low: float
    high: float
    ticks: Mapping[float, str]
    log: bool = False


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
    """Points that belong together; their style is that of `key`."""

    key: str
    title: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Panel:
    """A chart with two axes; its points are joined by lines, or they are not."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    joined: bool = True


@dataclass(frozen=True)
class Bar:
    """All episodes of a method, by how they went."""

    key: str
    title: str
    outcomes: Mapping[str, int]  # how many were a success, and how many failed for each reason

    @property
    def episodes(self) -> int:
        return sum(self.outcomes.values())

    @property
    def successes(self) -> int:
        return self.outcomes.get(SUCCESS, 0)


@dataclass(frozen=True)
class Figure:
    """Panels that go together, or bars in groups of equal length."""

    name: str  # of its files
    panels: Sequence[Panel] = ()
    bars: Mapping[str, Sequence[Bar]] | None = None  # by task
    size: Literal["small", "wide"] = "small"  # of its panels

    @property
    def legend(self) -> list[Series]:
        """Each series once, in the order of the styles."""
        found = {series.key: series for panel in self.panels for series in panel.series}
        return [found[key] for key in SERIES if key in found]


# Logarithmic axes

TIMES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0)  # seconds that people know
MORE_TIMES = (*TIMES, 2.0, 5.0, 20.0, 30.0, 120.0, 300.0, 1200.0, 1800.0, 7200.0, 18_000.0)
FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
LEAST_SPAN = 4.0  # times as much at the end of a logarithmic axis as at its beginning
ENOUGH = 3  # ticks on an axis
APART = 0.15  # of the axis, lest their texts meet


def log_axis(title: str, values: Iterable[float], show: Callable[[float], str], of_times: bool = False) -> Axis:
    """Return an axis a little longer than what there is, and long enough that no small difference looks large.

    Ticks are at powers of ten, or at times that people know, and where these are too few at some numbers between them.
    """
    known = [value for value in values if value > 0] or [1.0, 10.0]
    span = max(known) / min(known)
    margin = max(span**0.08, math.sqrt(LEAST_SPAN / span))
    low, high = min(known) / margin, max(known) * margin
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    choices: list[Sequence[float]] = [TIMES, MORE_TIMES] if of_times else []
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

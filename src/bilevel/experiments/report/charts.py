"""Charts as values, which the page draws as SVG and `plots` on paper: they cannot disagree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bilevel.experiments.report.styles import SERIES, SUCCESS


@dataclass(frozen=True)
class Axis:
    """What is shown along it, from where to where, with marks and their texts."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def place(self, value: float) -> float:
        """From 0, the beginning, to 1, the end."""
        low, high, value = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Mark:
    """A point, with what is to be said about it; maybe with a range, or as a place at which something gave up."""

    x: float
    y: float
    tip: str
    low: float | None = None
    high: float | None = None
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
    kind: Literal["small", "wide"] = "small"


@dataclass(frozen=True)
class Part:
    """Some of the episodes."""

    cause: str
    episodes: int
    tip: str


@dataclass(frozen=True)
class Bar:
    """All episodes of a method, by how they went."""

    key: str
    title: str
    parts: Sequence[Part]

    @property
    def episodes(self) -> int:
        return sum(part.episodes for part in self.parts)

    @property
    def successes(self) -> int:
        return sum(part.episodes for part in self.parts if part.cause == SUCCESS)


@dataclass(frozen=True)
class Stack:
    """Bars below each other, each as long as the others."""

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Figure:
    """Panels that go together, with what they show."""

    name: str  # of its files
    title: str
    caption: str
    panels: Sequence[Panel] = field(default=())
    stacks: Sequence[Stack] = field(default=())

    @property
    def legend(self) -> list[Series]:
        """Each series once, in the order of the styles."""
        found = {series.key: series for panel in self.panels for series in panel.series}
        return [found[key] for key in SERIES if key in found]


# Axes

_TIMES = {1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min"}
_TIMES |= {3600.0: "1 h", 36000.0: "10 h"}
_MORE_TIMES = {2.0: "2 s", 5.0: "5 s", 20.0: "20 s", 30.0: "30 s", 120.0: "2 min", 300.0: "5 min", 1200.0: "20 min"}
_MORE_TIMES |= {1800.0: "30 min", 7200.0: "2 h", 18000.0: "5 h"}
_FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
LEAST_SPAN = 4.0  # times as much at the end of a logarithmic axis as at its beginning
ENOUGH = 3  # marks on an axis
APART = 0.15  # of the axis, lest their texts meet
_PREFIXES = ((1e6, "M"), (1e3, "k"), (1.0, ""))


def linear(title: str, low: float, high: float, ticks: Sequence[float], digits: int = 0) -> Axis:
    return Axis(title, low, high, [(tick, f"{tick:.{digits}f}") for tick in ticks])


def of_seconds(title: str, values: Iterable[float]) -> Axis:
    """A logarithmic axis with marks at times that people know."""
    low, high = _bounds(values)
    return _log_axis(title, low, high, [_TIMES, _TIMES | _MORE_TIMES]) or of_numbers(title, (low, high), " s")


def of_numbers(title: str, values: Iterable[float], unit: str = "") -> Axis:
    """A logarithmic axis with marks at powers of ten; where these are too few, at some numbers between them."""
    low, high = _bounds(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    choices = [[10.0**power * factor for power in powers for factor in factors] for factors in _FACTORS]
    ticks = [{value: short(value) + unit for value in choice} for choice in choices]
    return _log_axis(title, low, high, ticks) or Axis(title, low, high, [], log=True)


def _log_axis(title: str, low: float, high: float, choices: Sequence[Mapping[float, str]]) -> Axis | None:
    """With the first choice of marks that is enough, or at least with two of the last."""
    ticks: list[tuple[float, str]] = []
    for choice in choices:
        ticks = []
        for value in sorted(choice):
            last = ticks[-1][0] if ticks else low / high
            if low <= value <= high and math.log(value / last) > APART * math.log(high / low):
                ticks.append((value, choice[value]))
        if len(ticks) >= ENOUGH:
            break
    return Axis(title, low, high, ticks, log=True) if len(ticks) > 1 else None


def _bounds(values: Iterable[float]) -> tuple[float, float]:
    """A little more than what there is, so that no mark is at the edge; and no small difference looks large."""
    known = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(known), max(known)
    margin = max((high / low) ** 0.08, math.sqrt(LEAST_SPAN / (high / low)))
    return low / margin, high * margin


def short(value: float) -> str:
    """3, 0.25, 20k or 1M."""
    size, letter = next(((size, letter) for size, letter in _PREFIXES if value >= size), (1.0, ""))
    return f"{value / size:.3g}{letter}"

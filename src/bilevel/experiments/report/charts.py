"""Charts as values: what `figures` says, and `drawing` draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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

    @property
    def description(self) -> str:
        """What the picture shows, for somebody who cannot see it."""
        told = []
        for series in self.series:
            marks = [mark for mark in series.marks if not mark.faint]
            ends = [marks[0], marks[-1]] if len(marks) > 1 else marks
            told.append(f"{series.title}: {' to '.join(mark.tip.replace(chr(10), ', ') for mark in ends)}")
        return f"{self.title}: {self.y.title} against {self.x.title}. {'; '.join(told)}.".replace("\t", " ")


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
    """Panels that go together, or bars in groups of equal length, with what they show."""

    name: str  # of its files
    caption: str
    panels: Sequence[Panel] = ()
    bars: Mapping[str, Sequence[Bar]] | None = None  # by task
    size: Literal["small", "wide"] = "small"  # of its panels

    @property
    def legend(self) -> list[Series]:
        """Each series once, in the order of the styles."""
        found = {series.key: series for panel in self.panels for series in panel.series}
        return [found[key] for key in SERIES if key in found]


# Logarithmic axes

_TIMES = {1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min"}
_TIMES |= {3600.0: "1 h", 36000.0: "10 h"}
_MORE_TIMES = {2.0: "2 s", 5.0: "5 s", 20.0: "20 s", 30.0: "30 s", 120.0: "2 min", 300.0: "5 min", 1200.0: "20 min"}
_MORE_TIMES |= {1800.0: "30 min", 7200.0: "2 h", 18000.0: "5 h"}
_FACTORS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0))
LEAST_SPAN = 4.0  # times as much at the end of a logarithmic axis as at its beginning
ENOUGH = 3  # ticks on an axis
APART = 0.15  # of the axis, lest their texts meet
_PREFIXES = ((1e6, "M"), (1e3, "k"), (0.0, ""))


def log_axis(title: str, values: Iterable[float], unit: str = "") -> Axis:
    """Return an axis a little longer than what there is, and long enough that no small difference looks large.

    Ticks are at powers of ten, and where these are too few at some numbers between them; with the unit `s` they are at
    times that people know.
    """
    known = [value for value in values if value > 0] or [1.0, 10.0]
    span = max(known) / min(known)
    margin = max(span**0.08, math.sqrt(LEAST_SPAN / span))
    low, high = min(known) / margin, max(known) * margin
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    numbers = [[power * factor for power in powers for factor in factors] for factors in _FACTORS]
    named = [{number: f"{short(number)} {unit}".rstrip() for number in choice} for choice in numbers]
    ticks = (
        _spread(choice, low, high) for choice in ([_TIMES, _TIMES | _MORE_TIMES, *named] if unit == "s" else named)
    )
    return Axis(title, low, high, next((found for found in ticks if len(found) >= ENOUGH), {}), log=True)


def _spread(choice: Mapping[float, str], low: float, high: float) -> dict[float, str]:
    """Return those ticks of a choice that are on the axis and far enough from each other."""
    found: dict[float, str] = {}
    for value in sorted(choice):
        near = found and math.log(value / max(found)) <= APART * math.log(high / low)
        if low <= value <= high and not near:
            found[value] = choice[value]
    return found


def short(value: float) -> str:
    """Return 3, 0.25, 20k or 1M."""
    size, letter = next((size, letter) for size, letter in _PREFIXES if value >= size)
    return f"{value / (size or 1):.3g}{letter}"

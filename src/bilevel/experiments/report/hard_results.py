"""What the curves of the hard suite come to: scores and times of methods along each axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import NamedTuple

from bilevel.experiments.hard.axes import AXES, Axis, Measure
from bilevel.experiments.hard.curves import Curves, FoundCurve, FoundPoint
from bilevel.experiments.intervals import Counts
from bilevel.experiments.report.scores import Score
from bilevel.experiments.reproduction.variants import VARIANTS, Variant
from bilevel.methods.methods import EXPERT

CONTROL_PERIOD = 1 / 80  # seconds: five steps of 2.5 ms of the simulator
PATIENCE = 1.0  # seconds that a robot may stand still


@dataclass(frozen=True)
class TimeMeasure:
    """A time that is measured: what it is called, where a point has it, and how much is too much."""

    title: str
    about: str
    value: Callable[[FoundPoint], float | None]  # seconds
    limit: float | None = None
    limit_title: str = ""


TIMES: Mapping[Measure, TimeMeasure] = {
    "decision": TimeMeasure(
        "time to decide, for each step",
        "The mean over steps, with labels and all planning.",
        lambda point: None if point.decision_microseconds is None else point.decision_microseconds / 1e6,
        CONTROL_PERIOD,
        "control period, 1/80 s",
    ),
    "pause": TimeMeasure(
        "longest pause",
        "The longest time for one decision, plans included: the mean over episodes.",
        lambda point: point.pause_seconds,
        PATIENCE,
        "1 s",
    ),
    "seconds": TimeMeasure(
        "time to solve", "For all decisions of a problem: the mean over problems.", lambda point: point.seconds
    ),
}


class Place(NamedTuple):
    """Where curves are to be compared: a task and, where the axis is not about it, a number of objects."""

    task: str
    objects: int | None


class Time(NamedTuple):
    """A time with each seed."""

    by_seed: tuple[float, ...]
    solved: bool  # whether any episode was

    @property
    def middle(self) -> float:
        """The median over seeds."""
        return median(self.by_seed)


Points = dict[float, list[FoundPoint]]  # one for each seed, by value


@dataclass(frozen=True)
class HardResults:
    """Curves, and what they come to."""

    found: Curves

    @cached_property
    def axes(self) -> list[Axis]:
        """The axes along which something was measured, in their order."""
        known = {curve.axis for curve in self.found.curves}
        return [axis for name, axis in AXES.items() if name in known]

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that were used, in ascending order."""
        return sorted({point.seed for curve in self.found.curves for point in curve.points})

    @property
    def episodes(self) -> int:
        """How many episodes there are in all curves; those that several curves share count in each."""
        return sum(point.episodes for curve in self.found.curves for point in curve.points)

    def curves(self, axis: Axis) -> dict[Place, dict[Variant, Points]]:
        """Return the points of an axis by place and method, both in their order."""
        found: dict[Place, dict[Variant, Points]] = {}
        for curve in self.found.curves:
            if curve.axis == axis.name:
                place = found.setdefault(Place(curve.task, curve.objects), {})
                place[VARIANTS[curve.variant]] = _by_value(curve)
        return found

    def title(self, axis: Axis, place: Place) -> str:
        """Return what a place is called: its task, and its number of objects where there are several."""
        several = len({other.objects for other in self.curves(axis)}) > 1
        return f"{place.task}, {place.objects} objects" if several else place.task

    def objects(self, axis: Axis) -> str:
        """Return how many objects there were, where the axis is not about that: ` with 10 objects`."""
        known = sorted({place.objects for place in self.curves(axis) if place.objects is not None})
        return f" with {' or '.join(map(str, known))} objects" if known else ""


def _by_value(curve: FoundCurve) -> Points:
    found: Points = {}
    for point in curve.points:
        found.setdefault(point.value, []).append(point)
    return found


def score(variant: Variant, points: Sequence[FoundPoint]) -> Score:
    """Return the successes with each seed; the expert is one policy, whatever the seed."""
    by_seed: dict[int, Counts] = {}
    for point in points:
        successes, episodes = by_seed.get(point.seed, Counts(0, 0))
        by_seed[point.seed] = Counts(successes + point.successes, episodes + point.episodes)
    return Score(by_seed, frozenset(("", seed, _network(variant, seed)) for seed in by_seed))


def _network(variant: Variant, seed: int) -> str | None:
    """Return what tells the network that is run from others: planners may run on BISON's. The expert has none."""
    training = None if variant.method == EXPERT else variant.training("", seed)
    return f"{training.learner} {training.network.recipe.name} {seed}" if training else None


def time_of(measure: TimeMeasure, points: Sequence[FoundPoint]) -> Time | None:
    """Return a time with each seed with which it was measured; `None` where it was with none."""
    known = tuple(value for value in map(measure.value, points) if value)
    return Time(known, any(point.successes for point in points)) if known else None


# Where a curve passes a limit

ENOUGH = 0.95  # of the episodes


def least_for(variant: Variant, points: Points, rate: float = ENOUGH) -> float | None:
    """Return the least value from which on so many episodes succeed, and go on to with more; `None` for none."""
    least = None
    for value in sorted(points, reverse=True):
        if score(variant, points[value]).rate < rate:
            break
        least = value
    return least


def first_beyond(measure: TimeMeasure, points: Points) -> float | None:
    """Return the first value at which a time is beyond its limit; `None` for none."""
    for value in sorted(points):
        time = time_of(measure, points[value])
        if measure.limit is not None and time is not None and time.middle > measure.limit:
            return value
    return None

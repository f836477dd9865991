"""The axes of the hard suite: what is made harder, step by step, and what is measured on the way.

An axis is a row of a table. Each of its values changes something in how policies are learned, or in how they are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bilevel.experiments.rows import ROWS, Row
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.world_tasks import TELEPORT_RATE


@dataclass(frozen=True)
class Axis:
    """A sweep: values from the easy to the hard, or from little to much."""

    name: str
    title: str  # along the axis of a chart
    about: str  # one sentence
    values: Sequence[float]
    change: Callable[[float], Mapping[str, Any]]  # what a value changes of a `Cell`
    tasks: Mapping[str, str]  # what is measured for each task that can be asked for
    show: Callable[[float], str] = "{:g}".format
    is_log: bool = False
    measures: Sequence[str] = ("success",)  # and pause, seconds
    # What is run for a method that is asked for, where that is not the method itself; for one not named here, nothing.
    rows: Mapping[str, Sequence[str]] | None = None
    kind: str = "episodes"  # or "symbols": without a world
    objects: int = 10  # unless a user says otherwise, where the axis is not about their number

    def rows_for(self, methods: Iterable[str]) -> list[Row]:
        """Return what is run on this axis where these methods are asked for: mostly the methods themselves."""
        names = [name for method in methods for name in (self.rows.get(method, ()) if self.rows else (method,))]
        return [ROWS[name] for name in names]


WORLDS = ("blocks", "factory", "colour", "gacha")
HARD_TASKS = (*WORLDS, "swap")
STILL = {task: task for task in WORLDS}
NOISY = {task: f"{task}-noisy" for task in WORLDS}
DOMAINS = {task: task for task in ("blocks", "colour", "gacha", "swap")}  # that differ

HARD_METHODS = ("bison", "bison-paper", "expert", "det-replan", "ndt-replan", "pddl-nn")
ON_OUR_NETWORK = ("det-replan-dagger", "ndt-replan-dagger")  # what decides is all in which they differ from BISON
# The expert has no state estimation of its own. As a ceiling it takes that of a policy, which is what others have.
SEEN = 5  # objects: with more, networks that do all have nothing to lose
SEEING = {method: (method,) for method in (*HARD_METHODS, *ON_OUR_NETWORK)} | {"expert": ("expert-estimating",)}
# DAgger asks the expert for more than the demonstrations.
ALONE = {method: (method,) for method in HARD_METHODS} | {"bison": ("bison-without-dagger",)}
DECIDING = {name: (name,) for name in ("bison", "ndt-replan")} | {"det-replan": ("det-replan", "det-replan-search")}

FRACTIONS = tuple(1 / every for every in (4000, 2000, 1000, 500, 250))
SIZES = (1, 2, 3, 5, 8, 10, 12, 15, 20)
CIRCLES = (2, 3, 4, 6, 8, 10)


def _changing(name: str) -> Callable[[float], Mapping[str, Any]]:
    return lambda value: {name: int(value)}


def _teleports(rate: float) -> Mapping[str, Any]:
    """Return how often objects at their goals teleport; the noisy tasks have a rate of their own."""
    return {} if rate == TELEPORT_RATE else {"arguments": {"teleport_rate": rate}}


def _perception_axes() -> Iterator[Axis]:
    """Yield an axis for each thing that may be wrong with what is seen."""
    off = "standard deviation of each coordinate", "Where objects are seen is off, by another amount at each step."
    missed = "probability that an object is not seen", "Objects are not seen, each at each step with this probability."
    hidden = "distance from the hand within which nothing is seen", "The hand hides what is near to it."
    late = "steps by which scenes are late", "What is seen is how it was some steps ago."
    for kind, (title, about), values, show in (
        ("noise", off, (0, 0.01, 0.05, 0.1, 0.2), _centimetres),
        ("missed", missed, (0, 0.1, 0.5, 0.9, 0.98), _percent),
        ("occluded", hidden, (0, 0.04, 0.12, 0.2, 0.3), _centimetres),
        ("delay", late, (0, 5, 10, 15, 20), "{:g}".format),
    ):
        change = _perception(kind)
        yield Axis(f"perception-{kind}", title, about, values, change, STILL, show, rows=SEEING, objects=SEEN)


def _perception(kind: str) -> Callable[[float], Mapping[str, Any]]:
    return lambda level: {"perception": f"{kind}={level:g}"} if level else {}


def _percent(value: float) -> str:
    return f"{100 * value:g}%"


def _centimetres(value: float) -> str:
    return f"{100 * value:g} cm"


_AXES = (
    Axis(
        "teleports",
        "teleports for each object at its goal and step",
        "Objects that are at their goals vanish and come back elsewhere, more and more often.",
        FRACTIONS,
        _teleports,
        NOISY,
        show=lambda rate: f"1/{1 / rate:.0f}",
        is_log=True,
    ),
    Axis(
        "control-noise",
        "amplitude of the control noise",
        "Now and then the hand is pushed for some steps, harder and harder.",
        (0, 0.5, 1, 1.5, 2),
        lambda amplitude: {"noise": float(amplitude)},
        STILL,
    ),
    *_perception_axes(),
    Axis(
        "demonstrations",
        "demonstrations",
        "Policies learn from fewer demonstrations, and from nothing else: ours without DAgger.",
        (1, 2, 5, 10, 20, 50, 200),
        _changing("demonstrations"),
        STILL,
        is_log=True,
        rows=ALONE,
    ),
    Axis(
        "shown",
        "objects in each demonstration",
        "Policies learn from demonstrations with fewer objects, and are run with more.",
        (1, 2, 3),
        _changing("shown"),
        STILL,
    ),
    Axis(
        "objects",
        "objects",
        "There are more and more objects on the table.",
        SIZES,
        _changing("objects"),
        STILL,
    ),
    Axis(
        "symbols",
        "objects",
        "Symbols alone, without a robot: large problems, with what nature does, within a time limit.",
        (10, 30, 100, 300, 1000),
        _changing("objects"),
        DOMAINS,
        show="{:,.0f}".format,
        is_log=True,
        measures=("success", "seconds", "pause"),
        rows=DECIDING,
        kind="symbols",
    ),
    Axis(
        "swap",
        "blocks",
        "Blocks stand on each other's places at first, in every other episode in a circle.",
        CIRCLES,
        _changing("objects"),
        {"swap": "swap"},
    ),
    Axis(
        "swap-circle",
        "blocks",
        "All blocks stand in one circle, each on the place of the next; the demonstrations of Blocks do not show this.",
        CIRCLES,
        lambda number: {"objects": int(number), "arguments": {"start": "circle"}},
        {"blocks": "blocks", "swap": "swap"},
    ),
)

# The axis of the paper's table, beside those of the hard suite.
NUMBER = Axis("", "number of objects", "By task and method.", (), _changing("objects"), {})
AXES: Mapping[str, Axis] = {axis.name: axis for axis in _AXES}


def find_axes(names: Iterable[str]) -> list[Axis]:
    """Return these axes in the order of the table, or all; `perception` stands for all whose names begin like that."""
    wanted = set()
    for name in names:
        found = [axis for axis in AXES if axis == name or axis.startswith(f"{name}-")]
        if not found:
            raise BadInput(f"unknown axis '{name}'; there are: {', '.join(AXES)}")
        wanted.update(found)
    return [axis for axis in AXES.values() if axis.name in wanted or not wanted]

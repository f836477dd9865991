"""The axes of the hard suite: what is made harder, step by step, and what is measured on the way.

An axis is a row of a table. Each of its values is a `Setting`: what it changes in how policies are learned, or under
which conditions they are run. To add an axis is to add a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bilevel.experiments.reproduction.conditions import PLAIN, Condition
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.world_tasks import TELEPORT_RATE
from bilevel.tasks.perception import read_perception


@dataclass(frozen=True)
class Setting:
    """What a value of an axis changes; what it does not name is as usual."""

    objects: int | None = None
    demonstrations: int | None = None  # that policies learn from
    shown: int | None = None  # objects in each of them
    condition: Condition = PLAIN
    budget: float | None = None  # steps, in which an episode has to succeed: so many times the expert's mean


Measure = Literal["success", "decision", "pause", "seconds"]
Show = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """A sweep: values from the easy to the hard, or from little to much."""

    name: str
    title: str  # along the axis of a chart
    about: str  # one sentence
    values: Sequence[float]
    setting: Callable[[float], Setting]
    tasks: Mapping[str, str]  # what is measured for each task that can be asked for
    show: Show = "{:g}".format
    is_log: bool = False
    measures: Sequence[Measure] = ("success",)
    # What is run for a method that is asked for, where that is not the method itself; for one not named here, nothing.
    methods: Mapping[str, Sequence[str]] | None = None
    in_symbols: bool = False  # without a world
    objects: int = 10  # unless a user says otherwise, where the axis is not about their number

    def variants(self, method: str) -> Sequence[str]:
        """Return what is run on this axis where a method is asked for: mostly the method itself."""
        return (method,) if self.methods is None else self.methods.get(method, ())


# Tasks

WORLDS = ("blocks", "factory", "colour", "gacha")
TASKS = (*WORLDS, "swap")
STILL = {task: task for task in WORLDS}
NOISY = {task: f"{task}-noisy" for task in WORLDS}
DOMAINS = {task: task for task in ("blocks", "colour", "gacha", "swap")}  # that differ

# Methods

METHODS = ("bison", "bison-paper", "expert", "det-replan", "ndt-replan", "pddl-nn")
ON_OUR_NETWORK = ("det-replan-dagger", "ndt-replan-dagger")  # what decides is all in which they differ from BISON
# The expert has no state estimation of its own. As a ceiling it takes that of a policy, which is what others have.
SEEN = 5  # objects: with more, networks that do all have nothing to lose
SEEING = {method: (method,) for method in (*METHODS, *ON_OUR_NETWORK)} | {"expert": ("expert-estimating",)}
# DAgger asks the expert for more than the demonstrations.
ALONE = {method: (method,) for method in METHODS} | {"bison": ("bison-without-dagger",)}
DECIDING = {name: (name,) for name in ("bison", "ndt-replan")} | {"det-replan": ("det-replan", "det-replan-search")}


# Settings


def _teleports(rate: float) -> Setting:
    """Return worlds in which objects at their goals teleport so often; the usual rate is that of the noisy tasks."""
    if rate == TELEPORT_RATE:
        return Setting()
    slower = max(1.0, 4 * rate / TELEPORT_RATE - 3)
    return Setting(condition=Condition(f"teleports-{rate:g}", arguments=(("teleport_rate", rate),), lengthening=slower))


def _control_noise(amplitude: float) -> Setting:
    if not amplitude:
        return Setting()
    return Setting(condition=Condition(f"control-noise-{amplitude:g}", noise=amplitude, lengthening=1 + amplitude / 2))


def _perception(kind: str) -> Callable[[float], Setting]:
    def setting(level: float) -> Setting:
        if not level:
            return Setting()
        perception = read_perception(f"{kind}={level:g}")
        return Setting(condition=Condition(f"{kind}-{level:g}", perception=perception, lengthening=3.0))

    return setting


def _circle(objects: float) -> Setting:
    return Setting(int(objects), condition=Condition("circle", arguments=(("start", "circle"),), lengthening=1.5))


def _with_objects(objects: float) -> Setting:
    return Setting(objects=int(objects))


# The table

FRACTIONS = tuple(1 / every for every in (4000, 2000, 1000, 500, 250))
SIZES = (1, 2, 3, 5, 8, 10, 12, 15, 20)
CIRCLES = (2, 3, 4, 6, 8, 10)


def _percent(value: float) -> str:
    return f"{100 * value:g}%"


def _centimetres(value: float) -> str:
    return f"{100 * value:g} cm"


_ROWS = (
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
        _control_noise,
        STILL,
    ),
    Axis(
        "perception-noise",
        "standard deviation of each coordinate",
        "Where objects are seen is off, by another amount at each step.",
        (0, 0.01, 0.05, 0.1, 0.2),
        _perception("noise"),
        STILL,
        show=_centimetres,
        methods=SEEING,
        objects=SEEN,
    ),
    Axis(
        "perception-missed",
        "probability that an object is not seen",
        "Objects are not seen, each of them at each step with this probability.",
        (0, 0.1, 0.5, 0.9, 0.98),
        _perception("missed"),
        STILL,
        show=_percent,
        methods=SEEING,
        objects=SEEN,
    ),
    Axis(
        "perception-occluded",
        "distance from the hand within which nothing is seen",
        "The hand hides what is near to it.",
        (0, 0.04, 0.12, 0.2, 0.3),
        _perception("occluded"),
        STILL,
        show=_centimetres,
        methods=SEEING,
        objects=SEEN,
    ),
    Axis(
        "perception-delay",
        "steps by which scenes are late",
        "What is seen is how it was some steps ago.",
        (0, 5, 10, 15, 20),
        _perception("delay"),
        STILL,
        methods=SEEING,
        objects=SEEN,
    ),
    Axis(
        "demonstrations",
        "demonstrations",
        "Policies learn from fewer demonstrations, and from nothing else: ours without DAgger.",
        (1, 2, 5, 10, 20, 50, 200),
        lambda number: Setting(demonstrations=int(number)),
        STILL,
        is_log=True,
        methods=ALONE,
    ),
    Axis(
        "shown",
        "objects in each demonstration",
        "Policies learn from demonstrations with fewer objects, and are run with more.",
        (1, 2, 3),
        lambda number: Setting(shown=int(number)),
        STILL,
    ),
    Axis(
        "objects",
        "objects",
        "There are more and more objects on the table.",
        SIZES,
        _with_objects,
        STILL,
    ),
    Axis(
        "symbols",
        "objects",
        "Symbols alone, without a robot: large problems, with what nature does, within a time limit.",
        (10, 30, 100, 300, 1000),
        _with_objects,
        DOMAINS,
        show="{:,.0f}".format,
        is_log=True,
        measures=("success", "seconds", "pause"),
        methods=DECIDING,
        in_symbols=True,
    ),
    Axis(
        "swap",
        "blocks",
        "Blocks stand on each other's places at first, in every other episode in a circle.",
        CIRCLES,
        _with_objects,
        {"swap": "swap"},
    ),
    Axis(
        "swap-circle",
        "blocks",
        "All blocks stand in one circle, each on the place of the next; the demonstrations of Blocks do not show this.",
        CIRCLES,
        _circle,
        {"blocks": "blocks", "swap": "swap"},
    ),
    Axis(
        "budget",
        "steps allowed, in multiples of the expert's",
        "An episode counts as solved only within so many times the number of steps that the expert takes on average.",
        (1, 1.5, 2, 3, 5),
        lambda budget: Setting(budget=budget),
        STILL,
    ),
    Axis(
        "deciding",
        "objects",
        "How long methods take to decide, labels included: on average for each step, and at most.",
        SIZES,
        _with_objects,
        STILL,
        measures=("decision", "pause"),
        methods=DECIDING,
    ),
)

AXES: Mapping[str, Axis] = {axis.name: axis for axis in _ROWS}


def find_axes(names: Iterable[str]) -> list[Axis]:
    """Return these axes in the order of the table, or all; `perception` stands for all whose names begin like that."""
    wanted = set()
    for name in names:
        found = [axis for axis in AXES if axis == name or axis.startswith(f"{name}-")]
        if not found:
            raise BadInput(f"unknown axis '{name}'; there are: {', '.join(AXES)}")
        wanted.update(found)
    return [axis for axis in AXES.values() if axis.name in wanted or not wanted]

"""KinDER's Motion2D: a robot goes through gates in walls, one after the other, into a region on the far side."""

from collections.abc import Iterator
from itertools import pairwise
from math import sin
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Added, Controller, Kinder

from bilevel import Action, Angle, Atom, Expert, Position, Scene, read_domain

CEILING = 2.5  # of the world; walls above gates may begin above it
PASSED = 0.13  # how far behind a gate the robot is clear of it
WAITING = 0.18  # how far before a gate it goes to the height of its middle: there is no more room between two gates


def gates(scene: Scene) -> Added:
    """The middle of each gate, from left to right: it is between a wall below and one above."""
    walls = sorted(scene.of_type("rectangle"), key=lambda wall: (wall.x, wall.y))
    middles = [
        {"x": below.x, "y": (below.y + below.height + min(above.y, CEILING)) / 2}
        for below, above in zip(walls[::2], walls[1::2], strict=True)
    ]
    return {"gate": {f"gate{number}": middle for number, middle in enumerate(middles)}}


KINDER = Kinder(
    "Motion2D",
    roles={"robot": {"x": Position, "y": Position, "theta": Angle(2)}},  # so a gate is the same wherever it is
    added={"gate": {"x": Position, "y": Position}},
    add=gates,
    controller=Controller((0.05, 0.05, 0.19), lambda scene, control: (*control, 0, 0)),  # without arm and vacuum
    untold={"pass": ("?next",), "leave": ("?r",)},
)


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    robot, region = scene.agent, scene["target_region"]
    found = list(scene.of_type("gate"))
    yield from (Atom("followed-by", (gate.name, following.name)) for gate, following in pairwise(found))
    yield Atom("last", (found[-1].name,))
    ahead = [gate.name for gate in found if robot.x < gate.x + PASSED]
    yield from (Atom("passed", (gate.name,)) for gate in found[: len(found) - len(ahead)])
    yield Atom("before", (ahead[0],)) if ahead else Atom("facing", (region.name,))
    if 0 <= robot.x - region.x <= region.width and 0 <= robot.y - region.y <= region.height:
        yield Atom("reached", (region.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    """The gates are goals, too: else a rule would have to name all that are still to come."""
    yield from (Atom("passed", (gate.name,)) for gate in scene.of_type("gate"))
    yield Atom("reached", ("target_region",))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it goes through the gate that it is before, or into the region."""
    following = {fact.terms[0]: fact.terms[1] for fact in state if fact.predicate == "followed-by"}
    for (gate,) in (fact.terms for fact in state if fact.predicate == "before"):
        if gate in following:
            return Action("pass", (gate, following[gate]))
        return Action("leave", (gate, "target_region"))
    return Action("enter", ("target_region",))


def control(scene: Scene, action: Action) -> Any:
    """How it does it: before a gate, it first goes to its height, then through the middle, with its hand ahead."""
    robot, target = scene.agent, scene[action.arguments[0]]
    x, y = target.x - robot.x, target.y - robot.y
    if action.name == "enter":
        x, y = x + target.width / 2, y + target.height / 2
    else:
        astray = np.clip((abs(y) - 0.01) / 0.02, 0, 1)
        x += 0.2 - (0.2 + WAITING) * astray
    wanted = 0.8 * x, 0.8 * y, -0.19 * sin(2 * robot.theta)
    return np.clip(wanted, (-0.05, -0.05, -0.19), (0.05, 0.05, 0.19)).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("motion.pddl"))
task = KINDER.task("motion", DOMAIN, label, goal, Expert(choose, control), steps_per_object=200)

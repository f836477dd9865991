"""KinDER's Motion2D: a robot goes through gates in walls, one after the other, into a region on the far side."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Kinder

from bilevel import Action, Atom, Expert, Position, Scene, read_domain
from bilevel.tasks.scene import Thing

PASSED = 0.13  # how far behind the front of a wall the robot is clear of it
CEILING = 2.5  # of the world
KINDER = Kinder("Motion2D", roles={"robot": {"x": Position}})  # so a gate is the same wherever it is


def gates(scene: Scene) -> list[tuple[Thing, Thing]]:
    """The walls below and above each gate, from left to right."""
    walls = sorted(scene.of_type("rectangle"), key=lambda wall: (wall.x, wall.y))
    return list(zip(walls[::2], walls[1::2], strict=True))


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    robot, region = scene.agent, scene["target_region"]
    found = gates(scene)
    yield from (Atom("gate", (below.name, above.name)) for below, above in found)
    yield from (Atom("followed-by", (one.name, other.name)) for (one, _), (other, _) in pairwise(found))
    yield Atom("last", (found[-1][0].name,))
    ahead = [below.name for below, _ in found if robot.x < below.x + PASSED]
    yield from (Atom("passed", (below.name,)) for below, _ in found[: len(found) - len(ahead)])
    yield Atom("before", (ahead[0],)) if ahead else Atom("facing", (region.name,))
    if 0 <= robot.x - region.x <= region.width and 0 <= robot.y - region.y <= region.height:
        yield Atom("reached", (region.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    """The gates are goals, too: else a rule would have to name all that are still to come."""
    yield from (Atom("passed", (below.name,)) for below, _ in gates(scene))
    yield Atom("reached", ("target_region",))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it goes through the gate that it is before, or into the region."""
    above = {fact.terms[0]: fact.terms[1] for fact in state if fact.predicate == "gate"}
    follower = {fact.terms[0]: fact.terms[1] for fact in state if fact.predicate == "followed-by"}
    for (below,) in (fact.terms for fact in state if fact.predicate == "before"):
        if below in follower:
            return Action("pass", (below, above[below], follower[below]))
        return Action("leave", (below, above[below], "target_region"))
    return Action("enter", ("target_region",))


def control(scene: Scene, action: Action) -> Any:
    """How it does it: before a gate, it first goes to its height, then through the middle."""
    robot, first = scene.agent, scene[action.arguments[0]]
    if action.name == "enter":
        x, y = first.x + first.width / 2 - robot.x, first.y + first.height / 2 - robot.y
    else:
        y = (first.y + first.height + min(scene[action.arguments[1]].y, CEILING)) / 2 - robot.y
        astray = np.clip((abs(y) - 0.008) / 0.02, 0, 1)
        x = first.x + 0.2 - 0.33 * astray - robot.x
    wanted = 0.4 * x, 0.4 * y, -0.4 * robot.theta, robot.base_radius - robot.arm_joint, 0
    return np.clip(wanted, (-0.05, -0.05, -0.19, -0.1, 0), (0.05, 0.05, 0.19, 0.1, 1)).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("motion.pddl"))
task = KINDER.task("motion", DOMAIN, label, goal, Expert(choose, control), switches=[4], steps_per_object=200)

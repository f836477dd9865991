"""KinDER's KinematicShelf3D: an arm on wheels brings all cubes from the floor to the top of a shelf."""

from collections.abc import Iterator, Sequence
from math import acos, atan2, cos, hypot, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Kinder

from bilevel import Action, Atom, Expert, Position, Scene, read_domain
from bilevel.tasks.scene import Thing

TOP = 0.826  # of the shelf
HALF = 0.025  # of a cube's height
SLOTS = [(2 + 0.12 * column, 2.4 + row) for row in (0.065, -0.065) for column in (-2, -1, 0, 1, 2)]  # on the shelf
UPPER, FORE, SHOULDER = 0.4208, 0.3143, 0.3922  # of the arm; the hand points down, and its height is told from here
REACH = 0.32  # from the shoulder to the hand, always
HAND = 0.12 + REACH  # from the middle of the base
TRAVEL = 0.985  # height at which the hand is above all


def next_gap(scene: Scene) -> Sequence[Sequence[float]]:
    """Where the next cube goes: the first slot that no cube is in."""
    shelved = [cube for cube in scene.of_type("kinematic3dcuboid") if is_shelved(cube)]
    free = (slot for slot in SLOTS if all(hypot(cube.x - slot[0], cube.y - slot[1]) > 0.05 for cube in shelved))
    return [next(free, SLOTS[-1])]


def is_shelved(cube: Thing) -> bool:
    return not cube.grasp_active and cube.z > TOP


GAP = {"gap": {"x": Position, "y": Position}}
USED = (
    0,
    1,
    2,
    4,
    6,
    8,
    10,
)  # the base, the three joints that raise the hand, the gripper; the others are for turning it
KINDER = Kinder("KinematicShelf3D", added=GAP, add=next_gap, used=USED)


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    if not scene.agent.grasp_active:
        yield Atom("free")
    for cube in scene.of_type("kinematic3dcuboid"):
        yield Atom("holding" if cube.grasp_active else "shelved" if is_shelved(cube) else "lying", (cube.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("shelved", (cube.name,)) for cube in scene.of_type("kinematic3dcuboid"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it brings the cube that it holds to the shelf, else it picks one."""
    held = [fact.terms[0] for fact in state if fact.predicate == "holding"]
    if held:
        return Action("place", (held[0], "gap"))
    return next((Action("pick", fact.terms) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: the hand travels above all, and comes down where the cube is, or where it belongs."""
    robot, cube = scene.agent, scene[action.arguments[0]]
    ahead = HAND * cos(robot.rot), HAND * sin(robot.rot)
    if action.name == "pick":
        x, y = cube.x - robot.x - ahead[0], cube.y - robot.y - ahead[1]
        far = hypot(x, y)
        low = cube.z + HALF + 0.025  # the hand touches the cube a centimetre before it is there
        rise = low + 0.1 * ramp(far, 0.03, 0.07) + (TRAVEL - low - 0.1) * ramp(far, 0.3, 0.6) - height(robot)
        return steer(robot, x, y, rise, -ramp(-far, -0.05, -0.03))
    slot = scene[action.arguments[1]]
    x, y = slot.x - cube.x, slot.y - cube.y
    far, bottom = hypot(x, y), cube.z - HALF
    rise = TOP - 0.005 + 0.075 * ramp(far, 0.016, 0.03) - bottom
    least = 0.06 + (TOP - 0.01) * ramp(-far, -1.2, -0.9)  # above what lies around; nearer, above what is on the shelf
    clear = max(ramp(bottom, least, least + 0.02), ramp(-far, -0.1, -0.05))
    return steer(robot, clear * x, clear * y, rise, ramp(-far, -0.05, -0.03))


def ramp(value: float, low: float, high: float) -> float:
    """From 0 to 1 while the value goes from low to high."""
    return min(max((value - low) / (high - low), 0.0), 1.0)


def height(robot: Thing) -> float:
    """Of the hand."""
    return SHOULDER + UPPER * cos(robot.joint_2) + FORE * cos(robot.joint_2 - robot.joint_4)


def steer(robot: Thing, x: float, y: float, rise: float, gripper: float) -> Any:
    """The control for a way of the hand: the base goes where the hand shall go, turned to the shelf; the arm rises."""
    rise = min(max(height(robot) + 0.4 * rise, 0.05), TRAVEL + 0.01) - SHOULDER
    elbow = -acos((REACH**2 + rise**2 - UPPER**2 - FORE**2) / (2 * UPPER * FORE))
    shoulder = atan2(REACH, rise) - atan2(FORE * sin(-elbow), UPPER + FORE * cos(elbow))
    wrist = shoulder - elbow - pi  # so the hand points down
    arm = shoulder - robot.joint_2, elbow - robot.joint_4, wrist - robot.joint_6
    wanted = 0.4 * x, 0.4 * y, 0.4 * (pi / 2 - robot.rot), *arm, gripper
    return np.clip(wanted, -LIMITS, LIMITS).astype(np.float32)


LIMITS = np.array([0.2] * 6 + [1.0])
DOMAIN = read_domain(Path(__file__).with_name("shelf.pddl"))
task = KINDER.task("shelf", DOMAIN, label, goal, Expert(choose, control), switches=[6], steps_per_object=300)

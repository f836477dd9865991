"""KinDER's KinematicShelf3D: an arm on wheels brings all cubes from the floor to the top of a shelf.

KinDER's controls are those of the wheels and of seven joints. As usual with arms, a controller lies between: it takes
the way of the hand, which is turned to the shelf and points down, and finds the joints by inverse kinematics.
"""

from collections.abc import Iterator
from math import acos, atan2, cos, hypot, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Added, Controller, Kinder

from bilevel import Action, Atom, Expert, LabelOnly, Position, Scene, read_domain
from bilevel.tasks.scene import Thing

TOP = 0.826  # of the shelf
HALF = 0.025  # of a cube's height
SLOTS = [(2 + 0.12 * column, 2.4 + row) for row in (0.065, -0.065) for column in (-2, -1, 0, 1, 2)]  # on the shelf
UPPER, FORE = 0.4208, 0.3143  # of the arm
FORWARD, SHOULDER = 0.12, 0.3922  # where the arm begins, from the middle of the base; its hand points down
REACH = 0.32  # from there to the hand, always
TRAVEL = 0.985  # height at which the hand is above all
CUBE, GAP = "kinematic3dcuboid", "gap"
MOST = 0.1, 0.1, 0.05, 1.0  # metres in a step, and the gripper


def is_shelved(cube: Thing) -> bool:
    return not cube.grasp_active and cube.z > TOP


def seen(scene: Scene) -> Added:
    """Where the hand is, or the cube in it, and where the next cube goes: the first slot that no cube is in."""
    robot, cubes = scene.agent, list(scene.of_type(CUBE))
    ahead = FORWARD + UPPER * sin(robot.joint_2) + FORE * sin(robot.joint_2 - robot.joint_4)
    place = robot.x + ahead * cos(robot.rot), robot.y + ahead * sin(robot.rot), height(robot)
    for cube in cubes:
        place = (cube.x, cube.y, cube.z) if cube.grasp_active else place
    shelved = [cube for cube in cubes if is_shelved(cube)]
    free = (slot for slot in SLOTS if all(hypot(cube.x - slot[0], cube.y - slot[1]) > 0.05 for cube in shelved))
    gap = *next(free, SLOTS[-1]), TOP + HALF
    return {"robot": {"robot": dict(zip(HAND, place, strict=True))}, GAP: {GAP: dict(zip("xyz", gap, strict=True))}}


def height(robot: Thing) -> float:
    """Of the hand."""
    return SHOULDER + UPPER * cos(robot.joint_2) + FORE * cos(robot.joint_2 - robot.joint_4)


def steer(scene: Scene, control: Any) -> tuple[float, ...]:
    """The wheels go where the hand shall go, and turn it to the shelf; three of the joints raise it."""
    robot, (x, y, z, gripper) = scene.agent, control
    rise = min(max(height(robot) + float(z), 0.05), TRAVEL + 0.01) - SHOULDER
    elbow = -acos((REACH**2 + rise**2 - UPPER**2 - FORE**2) / (2 * UPPER * FORE))
    shoulder = atan2(REACH, rise) - atan2(FORE * sin(-elbow), UPPER + FORE * cos(elbow))
    wrist = shoulder - elbow - pi
    arm = 0, shoulder - robot.joint_2, 0, elbow - robot.joint_4, 0, wrist - robot.joint_6, 0
    return x, y, 0.4 * (pi / 2 - robot.rot), *arm, gripper


HAND = "hand_x", "hand_y", "hand_z"
FROM_HAND = {axis: Position(along=name) for axis, name in zip("xyz", HAND, strict=True)}
JOINTS = "x", "y", "rot", "finger_state", *(f"joint_{number}" for number in range(1, 8))  # those, the controller knows
KINDER = Kinder(
    "KinematicShelf3D",
    roles={"robot": dict.fromkeys(JOINTS, LabelOnly), CUBE: FROM_HAND},
    added={"robot": dict.fromkeys(HAND, Position), GAP: FROM_HAND},
    add=seen,
    controller=Controller(MOST, steer),
    untold={"place": ("?c",)},  # as it is in the hand
)


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    if not scene.agent.grasp_active:
        yield Atom("free")
    for cube in scene.of_type(CUBE):
        yield Atom("holding" if cube.grasp_active else "shelved" if is_shelved(cube) else "lying", (cube.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("shelved", (cube.name,)) for cube in scene.of_type(CUBE))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it brings the cube that it holds to the shelf, else it picks one."""
    held = [fact.terms[0] for fact in state if fact.predicate == "holding"]
    if held:
        return Action("place", (held[0], GAP))
    return next((Action("pick", fact.terms) for fact in sorted(goal - state)), None)


def control(scene: Scene, action: Action) -> Any:
    """How it does it: it rises, goes there above all, and comes down where the cube is, or where it belongs."""
    hand, target = scene.agent, scene[action.arguments[-1]]
    x, y = target.x - hand.hand_x, target.y - hand.hand_y
    far = hypot(x, y)
    low, high, gripper = target.z - 0.005, target.z + 0.075, 1.0
    if action.name == "pick":
        low, high, gripper = target.z + HALF + 0.025, TRAVEL, -1.0
    rise = min(low + 2 * max(far - 0.03, 0), high) - hand.hand_z
    clear = ramp(-rise, -0.05, -0.02)
    wanted = 0.7 * clear * x, 0.7 * clear * y, 0.3 * rise, gripper * ramp(-far, -0.05, -0.03)
    return np.clip(wanted, np.negative(MOST), MOST).astype(np.float32)


def ramp(value: float, low: float, high: float) -> float:
    """From 0 to 1 while the value goes from low to high."""
    return min(max((value - low) / (high - low), 0.0), 1.0)


DOMAIN = read_domain(Path(__file__).with_name("shelf.pddl"))
task = KINDER.task("shelf", DOMAIN, label, goal, Expert(choose, control), switches=[3], steps_per_object=300)

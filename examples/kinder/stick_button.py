"""KinDER's StickButton2D: a robot with a vacuum presses all buttons, those on a table with the end of a stick."""

from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Added, Kinder

from bilevel import Action, Atom, Expert, LabelOnly, Scalar, Scene, read_domain
from bilevel.tasks.scene import Thing

LENGTH, WIDTH = 1.25, 0.05  # of the stick
HAND, FAR = 0.07, 0.02  # the width of the hand; how far from its middle it sucks
RADIUS, WORLD = 0.11, 3.5  # of the robot, and a little more; where the walls are
TABLE, HIGHEST = 1.25, 1.1  # where the table begins; where the robot has the stick nearly at the wall behind it
NEAR = 0.2  # what is told in detail is not farther away


def place(scene: Scene) -> tuple[float, float, float]:
    """Where the robot is, seen from the near end of the stick: how far behind it, beside it, and turned to the left."""
    robot, stick = scene.agent, scene["stick"]
    x, y, angle = robot.x - stick.x, robot.y - stick.y, stick.theta
    turned = (robot.theta - angle - pi / 2 + pi) % (2 * pi) - pi
    return sin(angle) * x - cos(angle) * y, cos(angle) * x + sin(angle) * y - WIDTH / 2, turned


def near(scene: Scene) -> Added:
    """What the network is told again, but nearby only: where the robot is at the stick's end, and where the walls are.

    There a centimetre counts, but networks scale numbers by how much they vary, and positions vary by metres.
    """
    behind, beside, _ = place(scene)
    seen = behind, beside, scene.agent.x, WORLD - scene.agent.x, scene.agent.y
    return {"robot": {"robot": dict(zip(DETAILS, np.clip(seen, -NEAR, NEAR).tolist(), strict=True))}}


DETAILS = dict.fromkeys(("behind", "beside", "left", "right", "floor"), Scalar)
KINDER = Kinder("StickButton2D", roles={"robot": {"vacuum": LabelOnly}}, added={"robot": DETAILS}, add=near)


def sucks(scene: Scene) -> bool:
    """Whether the hand holds the end of the stick: a part of its front is above the stick, and beyond the end."""
    behind, beside, turned = place(scene)
    reach = scene.agent.arm_joint + FAR
    middle = beside - reach * sin(turned)
    left, right = max(-WIDTH / 2 - middle, -HAND / 2), min(WIDTH / 2 - middle, HAND / 2)
    beyond = reach * cos(turned) + max(left * sin(turned), right * sin(turned)) - behind
    return scene.agent.vacuum > 0.5 and abs(turned) < 0.8 and left <= right and 0 <= beyond < WIDTH


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    yield from [Atom("holding", ("stick",))] if sucks(scene) else [Atom("lying", ("stick",)), Atom("free")]
    for button in scene.of_type("circle"):
        yield Atom("near" if button.y < TABLE else "far", (button.name,))
        if button.color_g > 0.5:
            yield Atom("pressed", (button.name,))


def goal(scene: Scene) -> Iterator[Atom]:
    return (Atom("pressed", (button.name,)) for button in scene.of_type("circle"))


def choose(state: frozenset[Atom], goal: frozenset[Atom]) -> Action | None:
    """What the expert does next: it takes the stick, then presses one button after the other."""
    if Atom("free") in state:
        return Action("pick", ("stick",))
    button = min(fact.terms[0] for fact in goal - state)
    return Action("press" if Atom("near", (button,)) in state else "press-with", (button, "stick"))


def control(scene: Scene, action: Action) -> Any:
    """How it does it: with the stick upright in its hand, it drives until it, or the stick, is on the button."""
    if action.name == "pick":
        return approach(scene)
    robot, stick, button = scene.agent, scene["stick"], scene[action.arguments[0]]
    if action.name == "press":
        return steer(robot, button.x - robot.x, button.y - robot.y, -stick.theta, 1)
    x, y = button.x - stick.x - WIDTH / 2, max(button.y - stick.y - LENGTH, 0)
    missing = robot.x + x - between_walls(robot.x + x)
    return steer(robot, x, y, -0.6 * missing - stick.theta, 1)  # it leans to what is out of reach at a wall


def approach(scene: Scene) -> Any:
    """Go around the stick to behind its end, then to it; at a wall, lean to it. Suck only there."""
    arm, angle, middle = scene.agent.arm_joint, scene["stick"].theta, scene["stick"].x + WIDTH / 2
    behind, beside, turned = place(scene)
    aim = between_walls(middle) - middle
    off = abs(beside - aim)
    astray = np.clip((off + 0.3 * abs(turned - 5 * aim) - 0.03) / 0.1, 0, 1)
    ahead = behind - arm * cos(turned) - 0.15 * astray  # 2 cm too far: what slows down to nothing cannot be imitated
    is_clear = np.clip(max(0.06 - off, abs(beside) - 0.25) / 0.03, 0, 1)
    aside = (aim - beside) * max(is_clear, np.clip((behind - 0.13) / 0.07, 0, 1))
    x, y = cos(angle) * aside - sin(angle) * ahead, cos(angle) * ahead + sin(angle) * aside
    return steer(scene.agent, x, y, 5 * aim - turned, 1.5 - 2 * astray)


def between_walls(x: float) -> float:
    """The nearest place at which the robot does not touch the walls to its left and right."""
    return float(np.clip(x, RADIUS, WORLD - RADIUS))


def steer(robot: Thing, x: float, y: float, turn: float, vacuum: float) -> Any:
    """The control for a way to go, but not into walls, and for an angle to turn; it slows down smoothly in the end."""
    x = between_walls(robot.x + x) - robot.x
    y = np.clip(robot.y + y, RADIUS, HIGHEST) - robot.y
    wanted = 0.4 * x, 0.4 * y, 0.4 * turn, 0.4 * (robot.base_radius - robot.arm_joint), vacuum
    return np.clip(wanted, (-0.05, -0.05, -0.19, -0.1, 0), (0.05, 0.05, 0.19, 0.1, 1)).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("stick_button.pddl"))
task = KINDER.task("stick-button", DOMAIN, label, goal, Expert(choose, control), switches=[4], steps_per_object=300)

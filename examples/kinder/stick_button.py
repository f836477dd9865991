"""KinDER's StickButton2D: a robot with a vacuum presses all buttons, those on a table with the end of a stick."""

from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from kinder_adapter import Kinder

from bilevel import Action, Atom, Expert, Scene, read_domain
from bilevel.tasks.scene import Thing

LENGTH, WIDTH, SUCTION = 1.25, 0.05, 0.0125  # of the stick; from the hand to what it sucks
RADIUS, WORLD = 0.11, 3.5  # of the robot, and a little more; its width
TABLE, HIGHEST = 1.25, 1.1  # where the table begins; where the robot has the stick nearly at the wall behind it
KINDER = Kinder("StickButton2D")


def place(scene: Scene) -> tuple[float, float, float]:
    """Where the robot is, seen from the near end of the stick: how far behind it, beside it, and turned from it."""
    robot, stick = scene.agent, scene["stick"]
    x, y, angle = robot.x - stick.x, robot.y - stick.y, stick.theta
    turned = (robot.theta - angle - pi / 2 + pi) % (2 * pi) - pi
    return sin(angle) * x - cos(angle) * y, cos(angle) * x + sin(angle) * y - WIDTH / 2, turned


def label(scene: Scene) -> Iterator[Atom]:
    """The facts that hold."""
    behind, beside, turned = place(scene)
    gap = behind - scene.agent.arm_joint - SUCTION
    held = scene.agent.vacuum > 0.5 and abs(gap) < 0.0075 and abs(beside) < 0.06 and abs(turned) < 0.2
    yield from [Atom("holding", ("stick",))] if held else [Atom("lying", ("stick",)), Atom("free")]
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
    """How it does it: with the stick upright in its hand, it drives to where it, or the stick's end, is on the button."""
    robot, stick = scene.agent, scene["stick"]
    if action.name == "pick":
        return approach(scene)
    button = scene[action.arguments[0]]
    x, y = button.x - robot.x, button.y - robot.y
    if action.name == "press-with":
        x, y = button.x - stick.x - WIDTH / 2, max(button.y - LENGTH - stick.y, -0.05)
    return steer(robot, x, y, -stick.theta, 1.0)


def approach(scene: Scene) -> Any:
    """Go to the near end of the stick from behind it, and there around it; suck where it is in line with the stick."""
    angle = scene["stick"].theta
    behind, beside, turned = place(scene)
    astray = np.clip((abs(beside) + 0.3 * abs(turned) - 0.02) / 0.1, 0, 1)
    ahead = behind - scene.agent.arm_joint - SUCTION - 0.13 * astray
    ahead = max(ahead, 0.015) if astray < 0.2 else ahead  # firmly: what slows down to nothing cannot be imitated
    is_clear = abs(beside) < 0.03 or abs(beside) > 0.3
    aside = -beside * (1 if is_clear else np.clip((behind - 0.13) / 0.07, 0, 1))
    x, y = cos(angle) * aside - sin(angle) * ahead, cos(angle) * ahead + sin(angle) * aside
    return steer(scene.agent, x, y, -turned, 1 - 2 * astray)


def steer(robot: Thing, x: float, y: float, turn: float, vacuum: float) -> Any:
    """The control for a way to go, but not into walls, and for an angle to turn; it slows down smoothly at their ends."""
    x = np.clip(robot.x + x, RADIUS, WORLD - RADIUS) - robot.x
    y = np.clip(robot.y + y, RADIUS, HIGHEST) - robot.y
    wanted = 0.4 * x, 0.4 * y, 0.4 * turn, 0, vacuum
    return np.clip(wanted, (-0.05, -0.05, -0.19, 0, 0), (0.05, 0.05, 0.19, 0, 1)).astype(np.float32)


DOMAIN = read_domain(Path(__file__).with_name("stick_button.pddl"))
task = KINDER.task("stick-button", DOMAIN, label, goal, Expert(choose, control), switches=[4], steps_per_object=300)

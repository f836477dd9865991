"""Skills: one continuous controller per kind of movement, so that a network can imitate it.

There are no phases. The height to aim for falls smoothly with the distance to the target, and the hand moves sideways
the slower the further it is below that height: a funnel, down which the hand slides from wherever it is. A skill sees
the hand and the features of the objects that its action names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from bilevel.symbolic.domain import Action
from bilevel.tabletop.measurements import GRASP_HEIGHT
from bilevel.tasks.scene import Array, Scene

GAIN = 10.0  # control per metre
DESCENT_SPEED = 0.05  # as a distance in metres: the hand goes down no faster than towards what is so near, or it swings
CRUISE = 0.15  # metres; the height at which the hand travels
CARRY = 0.13  # the height at which it carries a block past other blocks
STANDING = 0.022  # the height of a block that has been put down
PRESS_DEPTH = 0.02  # aim so far below it: who imitates a hand that slows down to nothing never quite arrives
PLACED = 0.015  # so near in xy is near enough: the funnel is open there, else who imitates it hovers above its rim
LOWEST_HAND = 0.048  # the hand goes no lower than this
HIGH = 0.17  # the height at which it passes over a box
SLIDE_SPEED = 0.5

Skill = Callable[..., Array]
Range = tuple[float, float]


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def funnel(
    here: Array, target: Array, cruise: float, mouth: float = 0.008, slope: float = 0.04, below: Range = (0.03, 0.08)
) -> Array:
    """The velocity from here down the funnel to a target; its mouth and slope are radii in metres.

    The hand moves sideways at full speed up to the first distance `below` the height to aim for, not at all from the
    second one on.
    """
    goal: list[float] = target.tolist()
    x, y, z = (there - now for there, now in zip(goal, here.tolist(), strict=True))
    distance = math.hypot(x, y)
    up = _clip((distance - mouth) / slope) * max(0.0, cruise - goal[2]) + z
    sideways = _clip((below[1] - up) / (below[1] - below[0]))
    if distance < 0.03:
        sideways = max(sideways, 0.5)
    velocity: Array = GAIN * np.array([x * sideways, y * sideways, max(up, -DESCENT_SPEED)], np.float32)
    return velocity


def control(velocity: Array, fingers: float) -> Array:
    """Return the control of a velocity, clipped, and of fingers that open (-1) or close (1)."""
    return np.array([min(1.0, max(-1.0, number)) for number in (*velocity.tolist(), fingers)], np.float32)


def above(point: Array, height: float) -> Array:
    """Return a point so many metres above another one."""
    raised: Array = point[:3] + np.array([0, 0, height], np.float32)
    return raised


def _let_go(opening: float) -> float:
    """From 0 to 1 as the fingers open: the hand must not leave before they have let go."""
    return _clip((opening - 0.6) / 0.25)


def pick(agent: Array, block: Array, slope: float = 0.04) -> Array:
    """Down onto a block, and close the fingers around it."""
    hand, target = agent[:3], above(block, GRASP_HEIGHT)
    offset = target - hand
    if math.hypot(offset[0], offset[1]) < 0.02 and abs(offset[2]) < 0.02:
        return control(GAIN * offset, 1.0)
    return control(_let_go(float(agent[3])) * funnel(hand, target, CRUISE, slope=slope), -1.0)


def place(agent: Array, block: Array, spot: Array, height: float = CARRY) -> Array:
    """Carry the block in hand to a spot, and open the fingers when it is there."""
    target = np.array([spot[0], spot[1], STANDING - PRESS_DEPTH], np.float32)
    offset = target - block[:3]
    down = (
        offset[2] > -0.008 - PRESS_DEPTH or agent[2] < LOWEST_HAND
    )  # one that slipped up between the fingers stays higher
    if math.hypot(offset[0], offset[1]) < PLACED and down:
        return control(GAIN * np.array([0, 0, offset[2]], np.float32), -1.0)
    return control(funnel(block[:3], target, height, mouth=PLACED), 1.0)


def press(agent: Array, button: Array) -> Array:
    """Down onto a button with open fingers, and on until it gives way.

    First well up: the hand may just have closed a lid, and would take its knob along.
    """
    target = above(button, 0.005)
    approach = funnel(agent[:3], target, HIGH, mouth=0.012, below=(0.02, 0.045))
    return control(_let_go(float(agent[3])) * approach, -1.0)


def slide(agent: Array, knob: Array, direction: float) -> Array:
    """Take hold of a knob and push it along x."""
    hand, opening = agent[:3], float(agent[3])
    target = above(knob, 0.022)
    offset = target - hand
    if math.hypot(offset[0], offset[1]) < 0.025 and abs(offset[2]) < 0.02:
        grip = _clip((0.56 - opening) / 0.1)
        velocity = GAIN * offset
        velocity[0] = grip * SLIDE_SPEED * direction + (1 - grip) * velocity[0]
        return control(velocity, 1.0)
    return control(_let_go(opening) * funnel(hand, target, HIGH, slope=0.03), -1.0)


def skilled(skills: Mapping[str, Skill]) -> Callable[[Scene, Action], Array]:
    """Return an expert's `control` that does an action by the skill of its schema.

    A skill is a function of the hand and of what is seen of each object that the action names.
    """

    def act(scene: Scene, action: Action) -> Array:
        return skills[action.name](scene.values, *scene.features[scene.rows(action.arguments)])

    return act

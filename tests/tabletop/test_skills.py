"""Skills: bounded, continuous controllers that bring about what their actions say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.tabletop.observation import FEATURES, POSITION
from bilevel.tabletop.skills import pick, press, slide
from bilevel.tabletop.worlds import blocks, colour, gacha, swap
from bilevel.tasks.scene import Array


def thing(x: float, y: float, z: float) -> Array:
    row = np.zeros(len(FEATURES), np.float32)
    row[POSITION] = x, y, z
    return row


BLOCK = thing(0.1, 0.5, 0.02)


OBJECTS = arrays(np.float32, (4, len(FEATURES)), elements=st.floats(-0.5, 0.75, width=32))
HANDS = arrays(np.float32, 4, elements=st.floats(0, 1, width=32))


@given(HANDS, OBJECTS)
def test_every_action_has_a_skill_with_controls_within_bounds(agent: Array, objects: Array) -> None:
    for world in (blocks, colour, gacha, swap):
        for name, schema in world.task.domain.schemas.items():
            control = world.SKILLS[name](agent, *objects[: len(schema.parameters)])
            assert control.shape == (4,)
            assert control.dtype == np.float32
            assert np.abs(control).max() <= 1


@given(HANDS, st.floats(-1e-5, 1e-5))
def test_movements_are_continuous(agent: Array, nudge: float) -> None:
    """Up to where the fingers open or close, a little to the side changes little: a network can learn that."""
    nudged = agent + np.array([nudge, -nudge, nudge, 0], np.float32)
    for skill, *arguments in ((press, BLOCK), (slide, BLOCK, 1.0), (pick, BLOCK)):
        first, second = skill(agent, *arguments), skill(nudged, *arguments)
        if first[3] == second[3]:
            assert np.abs(first - second).max() < 0.02

"""Skills: bounded, continuous controllers that bring about what their actions say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.symbolic.domain import Action
from bilevel.tabletop.observation import FEATURES, POSITION, numbered
from bilevel.tabletop.skills import CARRY, pick, place, press, skilled, slide
from bilevel.tabletop.worlds import blocks, colour, gacha, swap
from bilevel.tasks.scene import Array, Roster, Scene

CLOSE, OPEN = 1.0, -1.0


def thing(x: float, y: float, z: float) -> Array:
    row = np.zeros(len(FEATURES), np.float32)
    row[POSITION] = x, y, z
    return row


def hand(x: float, y: float, z: float, opening: float = 1.0) -> Array:
    return np.array([x, y, z, opening], np.float32)


BLOCK, SPOT = thing(0.1, 0.5, 0.02), thing(-0.2, 0.6, 0.001)


def test_far_from_a_block_the_hand_travels_high_and_open() -> None:
    x, y, z, fingers = pick(hand(-0.2, 0.6, 0.05), BLOCK)
    assert z == 1
    assert abs(x) < 0.2 > abs(y)  # first up
    assert fingers == OPEN


def test_above_a_block_the_hand_goes_down_and_closes_when_it_is_there() -> None:
    _, _, z, fingers = pick(hand(0.1, 0.5, 0.15), BLOCK)
    assert z < -0.3
    assert fingers == OPEN
    assert pick(hand(0.1, 0.5, 0.04), BLOCK)[3] == CLOSE


def test_the_hand_does_not_leave_before_its_fingers_are_open() -> None:
    assert not pick(hand(-0.2, 0.6, 0.05, opening=0.5), BLOCK)[:3].any()
    assert not press(hand(-0.2, 0.6, 0.05, opening=0.5), BLOCK)[:3].any()
    assert not slide(hand(-0.2, 0.6, 0.05, opening=0.5), BLOCK, 1.0)[:3].any()


def test_a_block_is_carried_high_and_let_go_where_it_belongs() -> None:
    carried = place(hand(0.1, 0.5, CARRY + 0.02, 0.47), thing(0.1, 0.5, CARRY), SPOT)
    assert carried[0] == -1
    assert carried[3] == CLOSE
    x, y, z, fingers = place(hand(-0.2, 0.6, 0.045, 0.47), thing(-0.2, 0.6, 0.025), SPOT)
    assert (x, y, fingers) == (0, 0, OPEN)
    assert -0.4 < z < -0.1  # firmly down to the end


@pytest.mark.parametrize("off", [0.0, 0.008, 0.014])
def test_wherever_a_block_may_be_let_go_it_is_first_set_down_without_delay(off: float) -> None:
    above = place(hand(-0.2, 0.6, 0.06, 0.47), thing(-0.2 + off, 0.6, 0.04), SPOT)
    assert above[2] < -0.3
    assert place(hand(-0.2, 0.6, 0.045, 0.47), thing(-0.2 + off, 0.6, 0.025), SPOT)[3] == OPEN


def test_a_knob_is_pushed_only_once_it_is_gripped() -> None:
    knob = thing(0.3, 0.5, 0.08)
    loose, gripped = (slide(hand(0.3, 0.5, 0.102, opening), knob, 1.0) for opening in (0.9, 0.4))
    assert loose[0] == pytest.approx(0, abs=1e-4)
    assert gripped[0] > 0.4
    assert slide(hand(0.3, 0.5, 0.102, 0.4), knob, -1.0)[0] < -0.4
    assert loose[3] == gripped[3] == CLOSE


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


def test_skills_act_on_the_objects_that_an_action_names() -> None:
    agent, objects = hand(0, 0.6, 0.2), np.stack([thing(x, 0.5, 0.02) for x in (-0.2, -0.1, 0.1, 0.2)])
    roster = Roster({**dict.fromkeys(numbered("block", 2), "block"), **dict.fromkeys(numbered("place", 2), "place")})
    scene = Scene.from_arrays(blocks.SPEC, agent, objects, roster)
    control = skilled(blocks.SKILLS)
    assert np.array_equal(control(scene, Action("pick", ("block2",))), pick(agent, objects[1]))
    placed = control(scene, Action("place", ("block1", "place2")))
    assert np.array_equal(placed, place(agent, objects[0], objects[3]))
    with pytest.raises(KeyError, match="block9"):
        control(scene, Action("pick", ("block9",)))

"""Relations between what is seen: what they are true of, and that a remembered answer is the right one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from bilevel.tabletop.measurements import (
    GRASP_HEIGHT,
    colour_index,
    holds,
    inside,
    is_open,
    near,
    remembered,
    same_colour,
    stands,
    stands_on,
    stands_on_own_tray,
)
from bilevel.tabletop.observation import FEATURES, POSITION, SPAN
from bilevel.tasks.scene import Array

HAND = np.array([0.1, 0.5, 0.2], np.float32)
HELD = HAND - np.array([0, 0, GRASP_HEIGHT], np.float32)
NONE_HELD = np.zeros(1, bool)


def agent(opening: float) -> Array:
    return np.append(HAND, opening).astype(np.float32)


def points(*rows: tuple[float, float, float]) -> Array:
    return np.array(rows, np.float32).reshape(-1, 3)


@pytest.mark.parametrize(("opening", "held"), [(0.47, True), (0.57, True), (0.59, False), (1.0, False)])
def test_closed_fingers_hold_what_is_between_them(opening: float, held: bool) -> None:
    assert holds(agent(opening), HELD[None]).tolist() == [held]


@pytest.mark.parametrize("offset", [(0.036, 0, 0), (0, -0.031, 0), (0, 0, 0.036)])
def test_what_is_beside_the_fingers_is_not_held(offset: tuple[float, float, float]) -> None:
    assert not holds(agent(0.47), HELD[None] + points(offset)).any()


def test_only_the_nearest_block_is_held() -> None:
    blocks = HELD + points((0.02, 0, 0), (0.5, 0, 0), (0.001, 0.002, 0))
    assert holds(agent(0.47), blocks).tolist() == [False, False, True]
    assert holds(agent(0.47), points()).tolist() == []


@given(arrays(np.float32, (5, 3), elements=st.floats(-0.25, 0.625, width=32)), st.floats(0, 1, width=32))
def test_at_most_one_block_is_held_and_it_does_not_stand(blocks: Array, opening: float) -> None:
    held = holds(agent(opening), blocks)
    assert held.sum() <= 1
    assert not (held & stands(blocks, held)).any()


def test_a_block_stands_when_it_is_low_and_not_held() -> None:
    blocks = points((0, 0, 0.02), (0, 0, 0.034), (0, 0, 0.036), (0, 0, 0.02))
    assert stands(blocks, np.array([False, False, False, True])).tolist() == [True, True, False, False]


def test_near_is_a_distance_in_the_plane() -> None:
    assert near(points((0, 0, 9)), points((0.02, 0.02, 0))).tolist() == [True]
    assert near(points((0, 0, 0)), points((0.022, 0.022, 0))).tolist() == [False]


def test_only_standing_blocks_are_on_places() -> None:
    blocks, places = points((0, 0.5, 0.02), (0.2, 0.5, 0.02)), points((0, 0.51, 0), (0.2, 0.5, 0))
    assert stands_on(blocks, np.array([True, True]), places).tolist() == [[True, False], [False, True]]
    assert stands_on(blocks, np.array([True, False]), places).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize(
    ("x", "y", "on"), [(-0.02, 0, True), (0.05, 0.02, True), (0.12, -0.02, True), (0.13, 0, False), (0.05, 0.03, False)]
)
def test_a_tray_goes_from_its_first_spot_to_its_last(x: float, y: float, on: bool) -> None:
    trays = np.zeros((1, len(FEATURES)), np.float32)
    trays[0, POSITION], trays[0, SPAN] = (0.1, 0.5, 0), (0, 0.1)
    block, own = points((x, 0.5 + y, 0.02)), np.array([[True]])
    assert stands_on_own_tray(block, NONE_HELD, trays, own).tolist() == [[on]]
    assert not stands_on_own_tray(block, ~NONE_HELD, trays, own).any()
    assert not stands_on_own_tray(block, NONE_HELD, trays, ~own).any()


def test_a_block_in_the_box_is_between_its_walls_low_and_not_held() -> None:
    box = np.array([0.3, 0.5, 0], np.float32)
    for offset, within in [
        ((0, 0, 0.02), True),
        ((0.04, 0, 0.02), False),
        ((0, 0.06, 0.02), True),
        ((0, 0, 0.07), False),
    ]:
        assert inside(box + points(offset), NONE_HELD, box).tolist() == [within]
    assert not inside(box[None], ~NONE_HELD, box).any()


def test_a_lid_is_always_either_open_or_not() -> None:
    assert [is_open(travel, filled=True) for travel in (0.0, 0.01, 0.077, 0.079)] == [False, False, False, True]
    assert [is_open(travel, filled=False) for travel in (0.0, 0.005, 0.007, 0.079)] == [False, False, True, True]


def test_colours_are_compared_as_they_look() -> None:
    red, blue, brown = (1, 0, 0), (0, 0, 1), (0.4, 0.3, 0.2)
    assert same_colour(points(red, brown), points(blue, (0.995, 0, 0))).tolist() == [[False, True], [False, False]]
    assert colour_index(points(red, brown, blue), points(blue, red)).tolist() == [1, -1, 0]


# Memory


@given(
    st.lists(
        arrays(np.float32, (3, 3), elements=st.sampled_from(points(tuple(HELD), (0, 0, 0)).ravel().tolist())),
        max_size=40,
    )
)
def test_remembered_answers_are_right(many_blocks: list[Array]) -> None:
    forgetful = holds.__wrapped__  # type: ignore[attr-defined]
    for blocks in many_blocks:
        assert np.array_equal(holds(agent(0.47), blocks), forgetful(agent(0.47), blocks))


def test_an_answer_is_remembered_for_a_while_and_cannot_be_changed() -> None:
    asked = []

    @remembered
    def double(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        asked.append(numbers[0])
        return 2 * numbers

    first = double(np.array([1.0]))
    assert double(np.array([1.0])) is first
    assert asked == [1.0]
    with pytest.raises(ValueError, match="read-only"):
        first += 1
    for number in range(2, 60):
        assert double(np.array([float(number)])).tolist() == [2 * number]
    assert double(np.array([1.0])).tolist() == [2.0]
    assert asked.count(1.0) == 2  # it was forgotten in between

"""Relations between what is seen: what they are true of, and that a remembered answer is the right one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.tabletop.measurements import GRASP_HEIGHT, holds, stands
from bilevel.tasks.scene import Array

HAND = np.array([0.1, 0.5, 0.2], np.float32)
HELD = HAND - np.array([0, 0, GRASP_HEIGHT], np.float32)


def agent(opening: float) -> Array:
    return np.append(HAND, opening).astype(np.float32)


def points(*rows: tuple[float, float, float]) -> Array:
    return np.array(rows, np.float32).reshape(-1, 3)


def test_only_the_nearest_block_is_held() -> None:
    blocks = HELD + points((0.02, 0, 0), (0.5, 0, 0), (0.001, 0.002, 0))
    assert holds(agent(0.47), blocks).tolist() == [False, False, True]
    assert holds(agent(0.47), points()).tolist() == []


@given(arrays(np.float32, (5, 3), elements=st.floats(-0.25, 0.625, width=32)), st.floats(0, 1, width=32))
def test_at_most_one_block_is_held_and_it_does_not_stand(blocks: Array, opening: float) -> None:
    held = holds(agent(opening), blocks)
    assert held.sum() <= 1
    assert not (held & stands(blocks, held)).any()


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

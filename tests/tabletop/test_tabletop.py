"""What all worlds share, seen in the smallest of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import layout
from bilevel.tabletop.observation import Bools
from bilevel.tabletop.tabletop import teleporting
from bilevel.tabletop.worlds.blocks import Blocks

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def compiled() -> Blocks:
    return Blocks(2)


@pytest.fixture
def world(compiled: Blocks) -> Blocks:
    compiled.reset(seed=0)
    return compiled


@pytest.mark.parametrize("where", [(0.6, 0.9, 0.02), (0.428, 0.208, 0.04)])  # beside the table's middle, on its rim
def test_a_block_out_of_reach_is_put_back_and_that_is_an_event(
    world: Blocks, where: tuple[float, float, float]
) -> None:
    world.simulation.put(0, where)
    events = [world.step(STILL)[4]["events"] for _ in range(20)]
    assert [event for event in events if event] == [("return block1",)]
    x, y = world.simulation.blocks()[0, :2]
    assert layout.WORK_AREA[0, 0] < x < layout.WORK_AREA[1, 0]
    assert layout.WORK_AREA[0, 1] < y < layout.WORK_AREA[1, 1]


def test_snapshots_of_other_worlds_are_refused(world: Blocks) -> None:
    other = Blocks(1)
    other.reset(seed=0)
    with pytest.raises(BadInput, match="snapshot"):
        world.restore(other.save())
    with pytest.raises(BadInput, match="snapshot"):
        world.restore({"physics": np.zeros(3)})


@pytest.mark.parametrize("objects", [0, 21, 2.5, "3", None, float("nan")])
def test_what_is_no_number_of_objects_is_refused(objects: Any) -> None:
    with pytest.raises(BadInput, match=f"1 to 20 objects, not {objects}"):
        Blocks(objects)


# Teleports


@given(arrays(bool, 6), st.integers(0, 100))
def test_only_what_is_at_its_goal_teleports(at_goal: Bools, seed: int) -> None:
    assert at_goal[teleporting(np.random.default_rng(seed), at_goal, 0.5)].all()
    assert teleporting(np.random.default_rng(seed), at_goal, 1.0).tolist() == np.flatnonzero(at_goal).tolist()

"""Blocks: a colour for each pair, everything apart, and teleports away from the goal."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop import layout
from bilevel.tabletop.observation import POSITION, RGB
from bilevel.tabletop.worlds.blocks import Blocks

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def world() -> Blocks:
    return Blocks(4)


@pytest.mark.parametrize("seed", range(5))
def test_it_begins_with_everything_apart_and_nothing_achieved(world: Blocks, seed: int) -> None:
    observation, _ = world.reset(seed=seed)
    where = observation["objects"][:, POSITION].astype(float)
    assert len(world.slots) == len(where) == 8
    assert observation["visible"].all()
    for thing in range(8):
        others = np.delete(where, thing, axis=0)[:, :2]
        assert len(layout.clear_of(where[thing : thing + 1, :2], others)) == 1
    assert not world.achieved(observation).any()


def test_a_block_and_its_place_have_a_colour_of_their_own(world: Blocks) -> None:
    observation, _ = world.reset(seed=1)
    colours = observation["objects"][:, RGB]
    assert np.array_equal(colours[:4], colours[4:])
    assert len(np.unique(colours[:4], axis=0)) == 4
    assert world.slots.scene(observation)["place2"].z < 0.01


def test_which_block_has_which_colour_varies(world: Blocks) -> None:
    assert len({world.reset(seed=seed)[0]["objects"][0, RGB].tobytes() for seed in range(10)}) > 3


def test_only_blocks_at_their_goal_teleport_to_where_nothing_is() -> None:
    world = Blocks(2, teleport_rate=1.0)
    world.reset(seed=0)
    assert world.step(STILL)[4]["events"] == ()
    x, y, _ = world.simulation.spot("place1")
    world.simulation.put(0, (x, y, 0.02))
    others = world.occupied()[1:]
    observation, _, terminated, _, info = world.step(STILL)
    assert info["events"] == ("teleport block1",)
    assert not terminated
    assert len(layout.clear_of(observation["objects"][:1, :2].astype(float), others)) == 1

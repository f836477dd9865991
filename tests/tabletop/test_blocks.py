"""Blocks: a colour for each pair, where they stand at first and can be put aside, and teleports away from the goal."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tabletop import layout
from bilevel.tabletop.observation import POSITION
from bilevel.tabletop.worlds.blocks import CIRCLE, Blocks, label

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def world() -> Blocks:
    return Blocks(4)


@pytest.mark.parametrize("seed", range(5))
def test_it_begins_with_everything_apart_and_nothing_achieved(world: Blocks, seed: int) -> None:
    observation, _ = world.reset(seed=seed)
    where = observation["objects"][:8, POSITION].astype(float)
    assert world.slots.names[8:] == ("table",)
    assert observation["visible"].all()
    for thing in range(8):
        others = np.delete(where, thing, axis=0)[:, :2]
        assert len(layout.clear_of(where[thing : thing + 1, :2], others)) == 1
    assert not world.achieved(observation).any()


def test_a_circle_is_seen_in_the_facts() -> None:
    world = Blocks(2, start=CIRCLE)
    scene = world.slots.scene(world.reset(seed=0)[0])
    assert label(scene) == {Atom("at", ("block1", "place2")), Atom("at", ("block2", "place1")), Atom("gripper-free")}
    with pytest.raises(BadInput, match="unknown start 'ring'; known ones: apart, tangled, circle"):
        Blocks(2, start="ring")


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

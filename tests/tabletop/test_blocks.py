"""Blocks: a colour for each pair, where they stand at first and can be put aside, and teleports away from the goal."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import Atom, BadInput
from bilevel.tabletop import layout
from bilevel.tabletop.observation import POSITION
from bilevel.tabletop.worlds.blocks import CIRCLE, ON_TABLE, TANGLED, Blocks, draw_start, label

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


def has_circle(places: list[int]) -> bool:
    for block in range(len(places)):
        follower = places[block]
        for _ in places:
            if follower == block:
                return True
            follower = places[follower] if follower != ON_TABLE else ON_TABLE
    return False


@pytest.mark.parametrize("count", [2, 3, 10])
def test_about_half_of_all_episodes_begin_with_a_circle(count: int) -> None:
    rng = np.random.default_rng(0)
    starts = [draw_start(rng, count, TANGLED).tolist() for _ in range(400)]
    assert 150 < sum(map(has_circle, starts)) < 250
    for places in starts:
        taken = [place for place in places if place != ON_TABLE]
        assert len(taken) == len(set(taken))
        assert all(place != block for block, place in enumerate(places))


def test_a_circle_is_seen_in_the_facts() -> None:
    world = Blocks(2, start=CIRCLE)
    scene = world.slots.scene(world.reset(seed=0)[0])
    assert label(scene) == {Atom("at", ("block1", "place2")), Atom("at", ("block2", "place1")), Atom("gripper-free")}
    with pytest.raises(BadInput, match="unknown start 'ring'; known ones: apart, tangled, circle"):
        Blocks(2, start="ring")


def test_there_is_room_on_the_table_where_it_is_seen() -> None:
    world = Blocks(3, start=TANGLED)
    for seed in range(5):
        observation, _ = world.reset(seed=seed)
        for block in range(3):
            scene = world.slots.scene(observation)
            room = np.array([[scene["table"].x, scene["table"].y]])
            assert len(layout.clear_of(room, world.occupied())) == 1
            world.simulation.put(block, (*room[0], 0.02))
            observation = world.step(STILL)[0]


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

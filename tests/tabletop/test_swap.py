"""Swap: where blocks stand at first, and where one can be put aside."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop import layout
from bilevel.tabletop.worlds.swap import ON_TABLE, Swap, draw_start

STILL = np.array([0, 0, 0, -1], np.float32)


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
    starts = [draw_start(rng, count).tolist() for _ in range(400)]
    assert 150 < sum(map(has_circle, starts)) < 250
    for places in starts:
        taken = [place for place in places if place != ON_TABLE]
        assert len(taken) == len(set(taken))
        assert all(place != block for block, place in enumerate(places))


def test_a_single_block_begins_on_the_table() -> None:
    assert draw_start(np.random.default_rng(0), 1).tolist() == [ON_TABLE]


def test_there_is_room_on_the_table_where_it_is_seen() -> None:
    world = Swap(3)
    for seed in range(5):
        observation, _ = world.reset(seed=seed)
        for block in range(3):
            scene = world.slots.scene(observation)
            room = np.array([[scene["table"].x, scene["table"].y]])
            assert len(layout.clear_of(room, world.occupied())) == 1
            world.simulation.put(block, (*room[0], 0.02))
            observation = world.step(STILL)[0]

"""Factory: each original block, once it is placed, brings a new block and its place, and only once."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop.observation import Observation
from bilevel.tabletop.worlds.factory import Factory

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def compiled() -> Factory:
    return Factory(2)


@pytest.fixture
def world(compiled: Factory) -> Factory:
    compiled.reset(seed=0)
    return compiled


def deliver(world: Factory, block: int) -> tuple[Observation, bool, dict[str, object]]:
    x, y, _ = world.simulation.spot(f"place{block}")
    world.simulation.put(block - 1, (x, y, 0.02))
    observation, _, terminated, _, info = world.step(STILL)
    return observation, terminated, info


def test_a_block_brings_its_successor_only_once(world: Factory) -> None:
    deliver(world, 1)
    world.simulation.put(0, (0.0, 0.33, 0.02))
    world.step(STILL)
    assert deliver(world, 1)[2]["events"] == ()


def test_success_needs_the_newcomers_too(world: Factory) -> None:
    ended = [deliver(world, block)[1] for block in (1, 2, 3, 4)]
    assert ended == [False, False, False, True]

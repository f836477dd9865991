"""The arm does what it is told, and what lies on the table stays where it was put."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop import furniture
from bilevel.tabletop.simulation import REACH, Simulation

BLOCKS = ("cube", "die")


def furnished() -> furniture.Furnishing:
    bodies = [*map(furniture.block, BLOCKS), furniture.spot("mark"), furniture.button()]
    contacts = [("button-housing", "button")]
    return furniture.Furnishing(bodies, BLOCKS, ["mark"], ["button-housing"], ["button"], contacts)


@pytest.fixture(scope="module")
def compiled() -> Simulation:
    return Simulation(furnished())


@pytest.fixture
def simulation(compiled: Simulation) -> Simulation:
    """With its button on the right, and a block on the table."""
    compiled.reset({0: (0.3, 0.5)})
    compiled.put(0, (-0.2, 0.5, furniture.BLOCK), yaw=0.3)
    compiled.settle()
    return compiled


def move(simulation: Simulation, *control: float, steps: int = 1) -> None:
    for _ in range(steps):
        simulation.step(control)


def test_the_hand_follows_the_controls(simulation: Simulation) -> None:
    before = simulation.hand()
    move(simulation, 0.5, -0.5, 0.25, 1, steps=10)
    move(simulation, 0, 0, 0, 1, steps=30)
    moved = simulation.hand() - before
    assert np.allclose(moved[:3], 10 * REACH * np.array([0.5, -0.5, 0.25]), atol=0.01)
    assert moved[3] < -0.6


def test_a_block_that_was_put_elsewhere_in_its_sleep_wakes_in_a_snapshot_too(simulation: Simulation) -> None:
    move(simulation, 0, 0, 0, -1, steps=60)
    asleep = simulation.data.ntree_awake
    simulation.put(1, (0.0, 0.4, 0.2))
    saved = simulation.save()
    move(simulation, 0, 0, 0, -1, steps=5)
    falling = simulation.blocks()
    simulation.restore(saved)
    assert simulation.data.ntree_awake > asleep
    move(simulation, 0, 0, 0, -1, steps=5)
    assert falling[1, 2] < 0.199
    assert np.array_equal(simulation.blocks(), falling)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e15])
def test_an_explosion_is_noticed_and_forgotten_at_the_next_reset(simulation: Simulation, value: float) -> None:
    assert simulation.stable
    simulation.data.qvel[0] = value
    move(simulation, 0, 0, 0, 0)
    assert not simulation.stable
    simulation.reset()
    simulation.settle()
    move(simulation, 0, 0, 0, 0)
    assert simulation.stable

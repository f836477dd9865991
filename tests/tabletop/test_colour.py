"""Colour: the button colours what is on the platform, once; trays take all blocks of their colour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bilevel.tabletop.trays import NO_COLOUR
from bilevel.tabletop.worlds.colour import Colour

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def compiled() -> Colour:
    return Colour(3, tray_position="free-spot")


@pytest.fixture
def world(compiled: Colour) -> Colour:
    compiled.reset(seed=0)
    return compiled


def put_on_platform(world: Colour, block: int) -> None:
    x, y, _ = world.simulation.spot("platform")
    world.simulation.put(block, (x, y, 0.02))


def press(world: Colour) -> dict[str, Any]:
    world.simulation.set_joint("button", -0.018)
    info = world.step(STILL)[4]
    world.simulation.set_joint("button", 0.0)
    return info


def bring_home(world: Colour, block: int, colour: int) -> dict[str, Any]:
    """Give a block a colour and put it on the free spot of its tray."""
    world.state.colours[block] = colour
    world.update()
    tray = world.slots.scene(world.step(STILL)[0])[f"tray{colour + 1}"]
    world.simulation.put(block, (tray.x, tray.y, 0.02))
    return world.step(STILL)[4]


def test_pressing_colours_what_is_on_the_platform_and_nothing_else(world: Colour) -> None:
    press(world)
    assert (world.state.colours == NO_COLOUR).all()
    put_on_platform(world, 1)
    world.step(STILL)
    assert (world.state.colours == NO_COLOUR).all()
    press(world)
    assert world.state.colours[1] != NO_COLOUR
    assert (world.state.colours[[0, 2]] == NO_COLOUR).all()


def test_a_tray_takes_all_blocks_of_its_colour(world: Colour) -> None:
    successes = [bring_home(world, block, colour=1)["success"] for block in range(3)]
    assert successes == [False, False, True]

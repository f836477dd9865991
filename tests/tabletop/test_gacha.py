"""Gacha: what the button makes and when, where blocks belong, and what becomes of a second one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bilevel.tabletop.furniture import LID_TRAVEL
from bilevel.tabletop.worlds.gacha import UNDISTURBED, Gacha

STILL = np.array([0, 0, 0, -1], np.float32)


@pytest.fixture(scope="module")
def compiled() -> Gacha:
    return Gacha(2)


@pytest.fixture
def world(compiled: Gacha) -> Gacha:
    """With its lid closed."""
    compiled.reset(seed=0)
    compiled.simulation.set_joint("box-lid", 0.0)
    return compiled


def press(world: Gacha) -> dict[str, Any]:
    world.simulation.set_joint("button", -0.018)
    info = world.step(STILL)[4]
    world.simulation.set_joint("button", 0.0)
    return info


def visible(world: Gacha) -> set[str]:
    return {*world.slots.scene(world._observation).objects}


def made(world: Gacha) -> list[int]:
    return sorted(world.state.serials[world.state.serials > 0].tolist())


def body(world: Gacha, serial: int) -> int:
    return int(np.flatnonzero(world.state.serials == serial)[0])


def bring_home(world: Gacha, serial: int, spot: int = 0) -> dict[str, Any]:
    block = body(world, serial)
    x, y = world.state.trays[world.state.colours[block]]
    world.simulation.put(block, (x + spot * world.pitch, y, 0.02))
    return world.step(STILL)[4]


def test_only_an_empty_and_closed_box_makes_a_block(world: Gacha) -> None:
    world.simulation.set_joint("box-lid", LID_TRAVEL)
    press(world)
    assert made(world) == []
    world.simulation.set_joint("box-lid", 0.0)
    press(world)
    press(world)
    assert made(world) == [1]


def test_colours_may_be_drawn_among_those_whose_trays_are_empty() -> None:
    world = Gacha(2, draw="empty")
    world.reset(seed=0)
    world.simulation.set_joint("box-lid", 0.0)
    drawn, info = [], {"success": False}
    world.state.wanted[:] = True
    for serial in range(1, 5):
        assert not info["success"]
        press(world)
        drawn.append(int(world.state.colours[body(world, serial)]))
        info = bring_home(world, serial)
    assert sorted(drawn) == [0, 1, 2, 3]
    assert info["success"]


def test_a_second_block_on_a_tray_replaces_the_first(world: Gacha) -> None:
    world.state.wanted[:] = True
    press(world)
    bring_home(world, 1)
    press(world)
    world.state.colours[body(world, 2)] = world.state.colours[body(world, 1)]
    world.update()
    at_once = bring_home(world, 2, spot=1)
    later = world.step(STILL)[4]
    assert (at_once["events"], later["events"]) == ((), ("replaced block1",))
    assert "block1" not in visible(world)
    assert made(world) == [2]


def test_blocks_teleport_back_into_the_empty_box() -> None:
    world = Gacha(2, teleport_rate=1.0)
    world.reset(seed=0)
    world.simulation.set_joint("box-lid", 0.0)
    world.state.wanted[:] = True
    press(world)
    events = [bring_home(world, 1)["events"], *(world.step(STILL)[4]["events"] for _ in range(UNDISTURBED))]
    assert [event for event in events if event] == [("teleport block1",)]
    assert events[0] == ()  # not at the very step at which it is put down
    box, block = world.simulation.fixture(0), world.simulation.blocks()[body(world, 1)]
    assert np.abs(block - box)[:2].max() < 0.03

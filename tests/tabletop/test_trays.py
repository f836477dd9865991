"""What is seen of a tray: the first of its spots on which nothing stands, or always the first."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import Action, BadInput
from bilevel.tabletop import TASKS
from bilevel.tabletop.measurements import holds, stands
from bilevel.tabletop.trays import TrayWorld, free_spots
from bilevel.tabletop.worlds.colour import Colour
from bilevel.tabletop.worlds.gacha import Gacha
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.task import Expert

TRAYS = np.array([[0.0, 0.4], [0.1, 0.6]])
PITCH = 0.05
OPEN_HAND = np.array([0.0, 0.5, 0.2, 1.0], np.float32)


def free(*blocks: tuple[float, float, float], agent: Array = OPEN_HAND, spots: int = 3) -> list[list[float]]:
    where = np.array(blocks, np.float32).reshape(-1, 3)
    found = free_spots(TRAYS, np.arange(spots, dtype=float) * PITCH, where[stands(where, holds(agent, where)), :2])
    return [[round(float(x), 3), round(float(y), 3)] for x, y, _ in found]


def test_an_empty_tray_is_seen_at_its_first_spot() -> None:
    assert free() == TRAYS.tolist()


def test_spots_are_taken_one_after_the_other() -> None:
    assert free((0.01, 0.4, 0.02)) == [[0.05, 0.4], [0.1, 0.6]]
    assert free((0.0, 0.4, 0.02), (0.055, 0.41, 0.02)) == [[0.1, 0.4], [0.1, 0.6]]
    assert free((0.05, 0.4, 0.02)) == TRAYS.tolist()


def test_a_block_between_two_spots_takes_both() -> None:
    assert free((0.025, 0.4, 0.02)) == [[0.1, 0.4], [0.1, 0.6]]


def test_a_full_tray_is_seen_at_its_first_spot() -> None:
    assert free((0.0, 0.4, 0.02), (0.05, 0.4, 0.02), spots=2) == TRAYS.tolist()


def test_blocks_in_the_air_or_in_hand_take_no_spot() -> None:
    assert free((0.0, 0.4, 0.05)) == TRAYS.tolist()
    holding = np.array([0.0, 0.4, 0.04, 0.47], np.float32)
    assert free((0.0, 0.4, 0.02), agent=holding) == TRAYS.tolist()
    assert free((0.0, 0.4, 0.02), agent=np.array([0.0, 0.4, 0.04, 0.9], np.float32)) == [[0.05, 0.4], [0.1, 0.6]]


# Fixed positions

STILL = np.array([0, 0, 0, -1], np.float32)


def with_a_block_on_its_tray(world: TrayWorld) -> Scene:
    """One block on the first spot of tray 1, of its colour, and another of the same colour above it, in no hand."""
    world.reset(seed=0)
    x, y = world.state.trays[0]
    world.state.colours[:2] = 0
    if isinstance(world, Gacha):
        world.state.serials[:2] = 1, 2
        world.state.visible[:2] = True
    world.update()
    world.simulation.put(0, (x, y, 0.02))
    world.simulation.put(1, (x, y, 0.2))
    return world.slots.scene(world.step(STILL)[0])


@pytest.mark.parametrize("kind", [Colour, Gacha])
def test_a_fixed_tray_is_seen_at_its_first_spot_whatever_stands_there(kind: type[Colour | Gacha]) -> None:
    seen = {name: with_a_block_on_its_tray(kind(2, tray_position=name))["tray1"] for name in ("free-spot", "fixed")}
    assert seen["fixed"].x == seen["fixed"].start
    assert seen["free-spot"].x == pytest.approx(seen["fixed"].x + kind.pitch)
    assert (seen["free-spot"].y, seen["free-spot"].end) == (seen["fixed"].y, seen["fixed"].end)


@pytest.mark.parametrize("kind", [Colour, Gacha])
def test_the_expert_finds_the_free_spot_of_a_fixed_tray_itself(kind: type[Colour | Gacha]) -> None:
    expert, controls = TASKS[kind.__name__.lower()].expert, []
    assert isinstance(expert, Expert)
    assert expert.control is not None
    for position in ("free-spot", "fixed"):
        scene = with_a_block_on_its_tray(kind(2, tray_position=position))
        controls.append(expert.control(scene, Action("place-goal", ("block2", "tray1", "red"))).tolist())
    assert controls[0] == pytest.approx(controls[1], abs=1e-5)
    assert controls[0][0] > 0.1  # towards the next spot, although the block is above the first


@pytest.mark.parametrize("kind", [Colour, Gacha])
def test_a_belt_moves_a_block_on_once_the_hand_has_left(kind: type[Colour | Gacha]) -> None:
    world = kind(2, tray_position="belt")
    with_a_block_on_its_tray(world)
    x, y = world.state.trays[0]
    world.simulation.put(1, (0.4, 0.7, 0.02))
    world.simulation.put(0, (x, y, 0.02))
    seen = [world.slots.scene(world.step(STILL)[0]) for _ in range(2)]
    assert [scene["tray1"].x for scene in seen] == [scene["tray1"].start for scene in seen]
    assert seen[-1]["block1"].x == pytest.approx(x + kind.pitch, abs=0.003)
    world.simulation.put(1, (x, y, 0.02))
    world.state.colours[1] = 1  # of another colour; what is full moves nothing on
    world.update()
    assert world.slots.scene(world.step(STILL)[0])["block2"].x == pytest.approx(x, abs=0.003)


def test_a_belt_waits_for_the_hand() -> None:
    world = Colour(2, tray_position="belt")
    world.reset(seed=0)
    down, up = np.array([0, 0, -1, -1], np.float32), np.array([0, 0, 1, -1], np.float32)
    for _ in range(30):
        world.step(down)
    x, y, *_ = world.simulation.hand()
    world.state.trays[0] = x, y
    world.update()
    world.simulation.put(0, (x, y, 0.02))
    places = [world.slots.scene(world.step(control)[0])["block1"].x for control in [down, *[up] * 30]]
    assert places[0] == pytest.approx(x, abs=0.003)
    assert places[-1] == pytest.approx(x + Colour.pitch, abs=0.003)


def test_an_unknown_tray_position_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="unknown tray position 'middle'; known ones: free-spot, fixed, belt"):
        Colour(1, tray_position="middle")

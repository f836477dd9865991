"""What is seen of a tray: the first of its spots on which nothing stands, or always the first."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import Action, BadInput
from bilevel.tabletop import TASKS
from bilevel.tabletop.trays import TrayWorld
from bilevel.tabletop.worlds.colour import Colour
from bilevel.tabletop.worlds.gacha import Gacha
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Expert

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
def test_the_expert_finds_the_free_spot_of_a_fixed_tray_itself(kind: type[Colour | Gacha]) -> None:
    expert, controls = TASKS[kind.__name__.lower()].expert, []
    assert isinstance(expert, Expert)
    assert expert.control is not None
    for position in ("free-spot", "fixed"):
        scene = with_a_block_on_its_tray(kind(2, tray_position=position))
        controls.append(expert.control(scene, Action("place-goal", ("block2", "tray1", "red"))).tolist())
    assert controls[0] == pytest.approx(controls[1], abs=1e-5)
    assert controls[0][0] > 0.1  # towards the next spot, although the block is above the first


def test_an_unknown_tray_position_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="unknown tray_position 'middle'; known ones: fixed, free-spot"):
        Colour(1, tray_position="middle")

"""From observations to scenes: names, what is visible, and that nothing is made anew without need."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import (
    COLUMN,
    FEATURES,
    NUMBERED,
    SERIAL,
    TRAY,
    Observation,
    Slots,
    numbered,
    perceive,
)
from bilevel.tabletop.worlds import blocks, gacha

SLOTS = Slots(gacha.SPEC, {"block": numbered("unmade", 2), "tray": ["tray1"]})


def seen(visible: tuple[int, ...] = (0, 1, 1), serial: int = 7) -> Observation:
    """The second block is the seventh that was made; the first is not visible."""
    objects = np.zeros((3, len(FEATURES)), np.float32)
    objects[1, [COLUMN["x"], COLUMN["red"], SERIAL]] = 0.25, 0.5, serial
    objects[2, COLUMN["end"]] = 0.75
    return {"agent": np.arange(4, dtype=np.float32), "objects": objects, "visible": np.array(visible, np.int8)}


def test_slots_of_a_type_are_side_by_side() -> None:
    assert SLOTS.names == ("unmade1", "unmade2", "tray1")
    assert [SLOTS.rows(kind) for kind in ("block", "tray", "button")] == [slice(0, 2), slice(2, 3), slice(0, 0)]


def test_slots_of_an_unknown_type_or_of_the_same_name_are_refused() -> None:
    with pytest.raises(BadInput, match="slots of the type 'cup', which the spec does not have"):
        Slots(gacha.SPEC, {"block": ["a"], "cup": ["b"]})
    with pytest.raises(BadInput, match="there are 2 slots of the name 'a'"):
        Slots(gacha.SPEC, {"block": ["a"], "tray": ["b", "a"]})


def test_only_what_is_visible_is_in_the_scene_and_blocks_that_were_made_have_numbers() -> None:
    scene = SLOTS.scene(seen())
    assert scene.objects == {"block7": "block", "tray1": "tray"}
    assert scene["block7"].x == 0.25
    assert scene["block7"].serial == 7
    assert scene["tray1"].end == 0.75
    assert scene.agent.opening == 3
    with pytest.raises(KeyError, match="'block6' is not visible"):
        scene["block6"]


def test_a_roster_is_kept_while_the_same_objects_are_visible() -> None:
    first = SLOTS.scene(seen()).roster
    assert SLOTS.scene(seen()).roster is first
    assert list(SLOTS.scene(seen(serial=8)).objects) == ["block8", "tray1"]
    assert list(SLOTS.scene(seen(visible=(0, 0, 1), serial=0)).objects) == ["tray1"]
    for serial in range(9, 2000):  # far more than are remembered
        assert list(SLOTS.scene(seen(serial=serial)).objects) == [f"block{serial}", "tray1"]
    assert SLOTS.scene(seen()).objects == first.objects


def test_a_scene_shares_the_arrays_of_an_observation_in_which_all_is_visible() -> None:
    everything = seen(visible=(1, 1, 1))
    assert SLOTS.scene(everything).features is everything["objects"]
    assert SLOTS.scene(everything).values is everything["agent"]


def test_the_columns_of_scenes_are_those_of_observations() -> None:
    assert gacha.SPEC.columns == FEATURES
    assert blocks.SPEC.columns == FEATURES[:6]
    assert tuple(TRAY) == FEATURES[: len(TRAY)]
    with pytest.raises(AssertionError):
        Slots(type(gacha.SPEC)(gacha.SPEC.agent, {"block": NUMBERED}), {})


def test_perceive_asks_an_environment_for_its_slots() -> None:
    world = blocks.Blocks(1)
    observation, info = world.reset(seed=0)
    scene = perceive(observation, info, world)
    assert scene.objects == {"block1": "block", "place1": "place", "table": "table"}
    assert scene.spec is blocks.SPEC

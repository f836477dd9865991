"""From observations to scenes: names, what is visible, and that nothing is made anew without need."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop.observation import COLUMN, FEATURES, SERIAL, Observation, Slots, numbered
from bilevel.tabletop.worlds import gacha

SLOTS = Slots(gacha.SPEC, {"block": numbered("unmade", 2), "tray": ["tray1"]})


def seen(visible: tuple[int, ...] = (0, 1, 1), serial: int = 7) -> Observation:
    """The second block is the seventh that was made; the first is not visible."""
    objects = np.zeros((3, len(FEATURES)), np.float32)
    objects[1, [COLUMN["x"], COLUMN["red"], SERIAL]] = 0.25, 0.5, serial
    objects[2, COLUMN["end"]] = 0.75
    return {"agent": np.arange(4, dtype=np.float32), "objects": objects, "visible": np.array(visible, np.int8)}


def test_only_what_is_visible_is_in_the_scene_and_blocks_that_were_made_have_numbers() -> None:
    scene = SLOTS.scene(seen())
    assert scene.objects == {"block7": "block", "tray1": "tray"}
    assert scene["block7"].x == 0.25
    assert scene["block7"].serial == 7
    assert scene["tray1"].end == 0.75
    assert scene.agent.opening == 3
    with pytest.raises(KeyError, match="'block6' is not visible"):
        scene["block6"]

"""Slots and features have names, and an object is found where it is seen."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.tabletop.observation import (
    COLUMN,
    FEATURES,
    FEATURES_OF,
    SERIAL,
    Observation,
    Slot,
    features,
    numbered,
    object_name,
    slots,
    visible_objects,
)

KNOWN = slots({"block": numbered("unmade", 2), "tray": ["tray1"]})


def seen() -> Observation:
    """The second block is the seventh that was made; the first is not visible."""
    objects = np.zeros((3, len(FEATURES)), np.float32)
    objects[1, [COLUMN["x"], COLUMN["red"], SERIAL]] = 0.25, 0.5, 7
    objects[2, COLUMN["end"]] = 0.75
    return {"agent": np.zeros(4, np.float32), "objects": objects, "visible": np.array([0, 1, 1], np.int8)}


def test_slots_of_a_type_are_side_by_side() -> None:
    assert KNOWN.names == ("unmade1", "unmade2", "tray1")
    assert [KNOWN.rows(kind) for kind in ("block", "tray", "button")] == [slice(0, 2), slice(2, 3), slice(0, 0)]


def test_a_block_that_was_made_is_called_after_its_number() -> None:
    assert object_name(KNOWN[1], seen()["objects"][1]) == "block7"
    assert object_name(KNOWN[2], seen()["objects"][2]) == "tray1"


def test_only_what_is_visible_is_an_object() -> None:
    assert visible_objects(KNOWN, seen()) == {"block7": "block", "tray1": "tray"}


def test_objects_are_found_by_name() -> None:
    assert KNOWN.find("block7", seen()) == 1
    assert KNOWN.find("tray1", seen()) == 2
    with pytest.raises(KeyError, match="'block6' is not visible"):
        KNOWN.find("block6", seen())


def test_features_have_names_that_depend_on_the_type() -> None:
    block, tray = features(KNOWN, seen(), "block7"), features(KNOWN, seen(), "tray1")
    assert block == {"x": 0.25, "y": 0, "z": 0, "red": 0.5, "green": 0, "blue": 0, "serial": 7}
    assert tray["end"] == 0.75
    assert "serial" not in tray
    assert set(FEATURES) == {feature for names in FEATURES_OF.values() for feature in names}


def test_slots_are_values() -> None:
    assert Slot("block1", "block") == slots({"block": ["block1"]})[0]

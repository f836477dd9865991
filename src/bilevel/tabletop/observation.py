"""What a world shows: the arm, and a fixed number of named slots, each with the features of one object.

An observation is a plain dictionary of arrays, so that it works in every vector environment and data set. Rows belong
to slots, columns to features; both have names here, and nobody else counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]

AGENT_FEATURES = ("x", "y", "z", "opening")  # of the hand in metres; 1 fingers wide open, 0 closed

# What is seen of an object of each type. Positions are in metres, in the frame of the arm, and name the point that the
# gripper goes for: a block's centre, a tray's next free spot, a button's top, the knob on a box's lid.
FEATURES_OF: Mapping[str, tuple[str, ...]] = {
    "block": ("x", "y", "z", "red", "green", "blue", "serial"),
    "place": ("x", "y", "z", "red", "green", "blue"),
    "tray": ("x", "y", "z", "red", "green", "blue", "start", "end"),
    "colour": ("red", "green", "blue", "wanted"),
    "table": ("x", "y", "z"),
    "platform": ("x", "y", "z"),
    "button": ("x", "y", "z", "travel"),
    "box": ("x", "y", "z", "travel"),
}
# start, end: the ends of a tray along x, in metres. travel: how far a button is pressed or a lid is open, in metres.
# wanted: 1 for a target colour. serial: counts the blocks that a machine has made, from 1; 0 for all others.
FEATURES = ("x", "y", "z", "red", "green", "blue", "start", "end", "travel", "wanted", "serial")

COLUMN = {name: index for index, name in enumerate(FEATURES)}
POSITION = slice(COLUMN["x"], COLUMN["z"] + 1)
RGB = slice(COLUMN["red"], COLUMN["blue"] + 1)
SPAN = slice(COLUMN["start"], COLUMN["end"] + 1)
TRAVEL, WANTED, SERIAL = COLUMN["travel"], COLUMN["wanted"], COLUMN["serial"]


class Observation(TypedDict):
    agent: Array  # (4,)
    objects: Array  # (slots, features); a row of zeros where nothing is visible
    visible: NDArray[np.int8]  # (slots,)


@dataclass(frozen=True, slots=True)
class Slot:
    """A row of the observation: the object that is seen there, and its type."""

    name: str
    type: str


class Slots(tuple[Slot, ...]):
    """All slots of a world, those of one type side by side."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def rows(self, type_name: str) -> slice:
        """The rows of all slots of a type."""
        rows = [row for row, slot in enumerate(self) if slot.type == type_name]
        return slice(rows[0], rows[-1] + 1) if rows else slice(0, 0)

    def find(self, name: str, observation: Observation) -> int:
        """The row in which an object is seen now."""
        if name in self._rows:
            return self._rows[name]
        for row in np.flatnonzero(observation["objects"][:, SERIAL]).tolist():
            if object_name(self[row], observation["objects"][row]) == name:
                return int(row)
        raise KeyError(f"'{name}' is not visible")


def slots(names: Mapping[str, Iterable[str]]) -> Slots:
    """The slots of a world from the names of its objects by type, in that order."""
    return Slots(Slot(name, type_name) for type_name, members in names.items() for name in members)


def numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(1, count + 1)]


def object_name(slot: Slot, features: Array) -> str:
    """The name of the object seen in a slot: a block that a machine made is called after its serial number."""
    serial = int(features[SERIAL])
    return f"{slot.type}{serial}" if serial else slot.name


def visible_objects(known: Slots, observation: Observation) -> dict[str, str]:
    """The names and types of all that is visible."""
    rows = np.flatnonzero(observation["visible"])
    return {object_name(known[row], observation["objects"][row]): known[row].type for row in rows}


def features(known: Slots, observation: Observation, name: str) -> dict[str, float]:
    """What is seen of one object, by the names of its features."""
    row = known.find(name, observation)
    seen = observation["objects"][row]
    return {feature: float(seen[COLUMN[feature]]) for feature in FEATURES_OF[known[row].type]}

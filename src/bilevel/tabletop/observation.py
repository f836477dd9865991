"""What a world shows: the hand, and a fixed number of named slots, each with the features of one object.

An observation is a plain dictionary of arrays, so that it works in every vector environment. Rows belong to slots,
columns to the features of the world's spec. `Slots.scene` makes a scene of it, in which things have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Features, LabelOnly, Mirror, Position, Scalar, Spec, Symmetry, Transpose

Bools = NDArray[np.bool_]

# Features from which a world's spec is put together. Positions are in metres, in the frame of the arm, and name the
# point that the gripper goes for: a block's centre, a spot of a tray, a button's top, the knob on a box's lid.
HAND: Features = {"x": Position, "y": Position, "z": Position(absolute=True), "opening": Scalar}  # 1: wide open
PLACED: Features = {"x": Position, "y": Position, "z": Position}
COLOUR: Features = {"red": LabelOnly, "green": LabelOnly, "blue": LabelOnly}
COLOURED: Features = {**PLACED, **COLOUR}
_ALONG_X = LabelOnly(Position(along="x"))
TRAY: Features = {**COLOURED, "start": _ALONG_X, "end": _ALONG_X}  # from the first of its spots to the last
MOVING: Features = {**PLACED, "travel": Scalar}  # how far a button is pressed or a lid is open, in metres
TARGET: Features = {**COLOUR, "wanted": LabelOnly}  # 1 for a target colour
NUMBERED: Features = {**COLOURED, "serial": LabelOnly(None)}  # counts the blocks that a machine has made, from 1

# A hand moves to what it goes for in the same way from all sides, although its fingers open along y.
SLIDING = ("open", "close")  # actions that push something along x, one way
SYMMETRIES: tuple[Symmetry, ...] = (
    Mirror(("y",), controls=(1,)),
    Mirror(("x",), controls=(0,), except_for=SLIDING),
    Transpose(("x", "y"), controls=(0, 1), except_for=SLIDING),
)

# Where these stand in every spec that has them.
FEATURES = tuple(dict.fromkeys([*TRAY, *MOVING, *TARGET, *NUMBERED]))
COLUMN = {name: index for index, name in enumerate(FEATURES)}
POSITION = slice(COLUMN["x"], COLUMN["z"] + 1)
RGB = slice(COLUMN["red"], COLUMN["blue"] + 1)
SPAN = slice(COLUMN["start"], COLUMN["end"] + 1)
TRAVEL, WANTED, SERIAL = COLUMN["travel"], COLUMN["wanted"], COLUMN["serial"]

_REMEMBERED = 1000  # rosters, before all are forgotten


class Observation(TypedDict):
    """What an environment returns: arrays for agent and objects, and which objects are visible."""

    agent: Array  # (4,)
    objects: Array  # (slots, features); a row of zeros where nothing is visible
    visible: NDArray[np.int8]  # (slots,)


class Slots(Roster):
    """All that may be visible in a world, in the order of the observation's rows."""

    def __init__(self, spec: Spec, names: Mapping[str, Iterable[str]]) -> None:
        """`names` are those of the slots, by the types of what is seen there."""
        assert all(spec.column[name] == COLUMN[name] for name in spec.columns if name in COLUMN), spec.columns
        super().__init__({name: kind for kind, members in names.items() for name in members})
        self.spec = spec
        self._has_serials = "serial" in spec.column
        self._seen: dict[bytes, tuple[Roster, NDArray[np.intp] | None]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def scene(self, observation: Observation) -> Scene:
        """Return what is visible in an observation; the scene shares its arrays, where all is."""
        seen = observation["objects"]
        key = observation["visible"].tobytes()
        if self._has_serials:
            key += seen[:, SERIAL].tobytes()
        roster, rows = self._seen.get(key) or self._remember(key, observation)
        return Scene.from_arrays(self.spec, observation["agent"], seen if rows is None else seen[rows], roster)

    def _remember(self, key: bytes, observation: Observation) -> tuple[Roster, NDArray[np.intp] | None]:
        """Note which objects are visible, and in which rows."""
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        rows = np.flatnonzero(observation["visible"])
        roster = Roster({self._name(row, observation): self.objects[self.names[row]] for row in rows.tolist()})
        self._seen[key] = roster, None if len(rows) == len(self) else rows
        return self._seen[key]

    def _name(self, row: int, observation: Observation) -> str:
        """Return the name of the object in a slot: a block that a machine made is called after its serial number."""
        name = self.names[row]
        serial = int(observation["objects"][row, SERIAL]) if self._has_serials else 0
        return f"{self.objects[name]}{serial}" if serial else name


def perceive(observation: Observation, info: Mapping[str, Any], env: Any) -> Scene:
    """Return the scene that an environment of ours shows; this is the `perceive` of its tasks."""
    slots: Slots = env.unwrapped.slots
    return slots.scene(observation)


def numbered(name: str, count: int) -> list[str]:
    """Return name1, name2, … up to the count."""
    return [f"{name}{number}" for number in range(1, count + 1)]

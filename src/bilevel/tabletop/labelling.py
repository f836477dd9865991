"""Labelling functions: what is seen, as symbols.

They look at one observation at a time and at nothing else, neither the simulator nor the past. A world's relations are
a few small arrays; as they rarely change from one step to the next, the facts that they stand for are remembered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Atom, Facts
from bilevel.tabletop.measurements import (
    Indices,
    colour_index,
    holds,
    inside,
    is_open,
    same_colour,
    stands,
    stands_on,
    stands_on_own_tray,
)
from bilevel.tabletop.observation import (
    POSITION,
    RGB,
    SERIAL,
    TRAVEL,
    WANTED,
    Array,
    Bools,
    Observation,
    Slots,
    object_name,
    visible_objects,
)

REMEMBERED = 10_000  # sets of facts, before all are forgotten

Relations = tuple[NDArray[Any], ...]


class Labels(ABC):
    """The labelling function of one world, for an environment with these slots."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self._states: dict[bytes, Facts] = {}
        self._goals: dict[bytes, Facts] = {}

    def state(self, observation: Observation) -> Facts:
        """All facts that hold."""
        relations = self.relations(observation)
        key = b"".join([relation.tobytes() for relation in relations])
        known = self._states.get(key)
        if known is None:
            known = _remember(self._states, key, self.facts(observation, *relations))
        return known

    def goal(self, observation: Observation) -> Facts:
        """All that is wanted, achieved or not."""
        seen = observation["objects"]
        key = observation["visible"].tobytes() + seen[:, RGB].tobytes() + seen[:, WANTED].tobytes()
        known = self._goals.get(key)
        return known if known is not None else _remember(self._goals, key, self.wishes(observation))

    def objects(self, observation: Observation) -> dict[str, str]:
        """The names and types of all that is visible."""
        return visible_objects(self.slots, observation)

    @abstractmethod
    def relations(self, observation: Observation) -> Relations:
        """The arrays that decide which facts hold."""

    @abstractmethod
    def facts(self, observation: Observation, *relations: NDArray[Any]) -> Iterable[Atom]:
        """The facts that these relations stand for."""

    @abstractmethod
    def wishes(self, observation: Observation) -> Iterable[Atom]:
        """The facts of the goal."""


def _remember(memory: dict[bytes, Facts], key: bytes, facts: Iterable[Atom]) -> Facts:
    if len(memory) >= REMEMBERED:
        memory.clear()
    memory[key] = frozenset(facts)
    return memory[key]


def _gripper(names: list[str], held: Bools) -> Iterator[Atom]:
    """Which block is held; the gripper is free when none is, even if its fingers are closed around something else."""
    if held.any():
        yield Atom("holding", (names[int(held.argmax())],))
    else:
        yield Atom("gripper-free")


class BlocksLabels(Labels):
    """Blocks and Factory: at, holding, clear, gripper-free."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots)
        self._blocks, self._places = slots.rows("block"), slots.rows("place")
        self._block_names = list(slots.names[self._blocks])
        self._place_names = list(slots.names[self._places])

    def relations(self, observation: Observation) -> Relations:
        """visible (slots,), held (blocks,), at (blocks, places)"""
        seen, visible = observation["objects"], observation["visible"].astype(bool)
        blocks = seen[self._blocks, POSITION]
        held = holds(observation["agent"], blocks) & visible[self._blocks]
        standing = stands(blocks, held) & visible[self._blocks]
        at = stands_on(blocks, standing, seen[self._places, POSITION]) & visible[self._places]
        return visible, held, at

    def facts(self, observation: Observation, *relations: NDArray[Any]) -> Iterator[Atom]:
        visible, held, at = relations
        yield from _gripper(self._block_names, held)
        for block, place in np.argwhere(at):
            yield Atom("at", (self._block_names[block], self._place_names[place]))
        for name in np.array(self._block_names)[visible[self._blocks] & ~held]:
            yield Atom("clear", (str(name),))
        for name in np.array(self._place_names)[visible[self._places] & ~at.any(axis=0)]:
            yield Atom("clear", (str(name),))

    def wishes(self, observation: Observation) -> Iterator[Atom]:
        seen, visible = observation["objects"], observation["visible"].astype(bool)
        pairs = same_colour(seen[self._blocks, RGB], seen[self._places, RGB])
        pairs &= visible[self._blocks, None] & visible[self._places]
        for block, place in np.argwhere(pairs):
            yield Atom("at", (self._block_names[block], self._place_names[place]))


class _TrayLabels(Labels):
    """What Colour and Gacha have in common: blocks and trays of some colour."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots)
        self._blocks, self._trays, self._colours = (slots.rows(kind) for kind in ("block", "tray", "colour"))
        self._tray_names = slots.names[self._trays]
        self._colour_names = slots.names[self._colours]

    def _coloured(self, seen: Array, rows: slice) -> Indices:
        """For each of these rows its colour, -1 for none."""
        return colour_index(seen[rows, RGB], seen[self._colours, RGB])

    def _on_own_tray(self, seen: Array, held: Bools, block_colours: Indices, tray_colours: Indices) -> Bools:
        """(blocks,): which blocks stand on a tray of their colour."""
        own = block_colours[:, None] == tray_colours
        on_own = stands_on_own_tray(seen[self._blocks, POSITION], held, seen[self._trays], own)
        return np.asarray(on_own.any(axis=1))

    def _tray_colours(self, tray_colours: Indices) -> Iterator[Atom]:
        for tray, colour in zip(self._tray_names, tray_colours, strict=True):
            yield Atom("tray-colour", (tray, self._colour_names[colour]))


class ColourLabels(_TrayLabels):
    """Colour: a block that is not held is on its tray, on the platform, or on the table."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots)
        self._platform = slots.rows("platform")
        self._platform_name = slots.names[self._platform][0]
        self._table_name = slots.names[slots.rows("table")][0]
        self._block_names = list(slots.names[self._blocks])

    def relations(self, observation: Observation) -> Relations:
        """held, on the platform, on its own tray, colour: (blocks,) each; colour: (trays,)"""
        seen = observation["objects"]
        blocks = seen[self._blocks, POSITION]
        held = holds(observation["agent"], blocks)
        colours, tray_colours = self._coloured(seen, self._blocks), self._coloured(seen, self._trays)
        on_platform = stands_on(blocks, stands(blocks, held), seen[self._platform, POSITION])[:, 0]
        return held, on_platform, self._on_own_tray(seen, held, colours, tray_colours), colours, tray_colours

    def facts(self, observation: Observation, *relations: NDArray[Any]) -> Iterator[Atom]:
        held, on_platform, achieved, colours, tray_colours = relations
        yield from _gripper(self._block_names, held)
        yield from self._tray_colours(tray_colours)
        yield Atom("free", (self._table_name,))  # there is always room
        if not on_platform.any():
            yield Atom("free", (self._platform_name,))
        for index, name in enumerate(self._block_names):
            known = colours[index] >= 0
            yield Atom("colour-of", (name, self._colour_names[colours[index]])) if known else Atom("unknown", (name,))
            if achieved[index]:
                yield Atom("achieved-goal", (name,))
            elif not held[index]:
                yield Atom("on", (name, self._platform_name if on_platform[index] else self._table_name))

    def wishes(self, observation: Observation) -> Iterator[Atom]:
        return (Atom("achieved-goal", (name,)) for name in self._block_names)


class GachaLabels(_TrayLabels):
    """Gacha: a block is in the box, held, or out; blocks are called after their serial numbers."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots)
        self._box = slots.rows("box").start
        self._box_name = slots[self._box].name

    def relations(self, observation: Observation) -> Relations:
        """serial, held, in the box, on its own tray, colour: (blocks,) each; colour: (trays,); lid open: ()"""
        seen = observation["objects"]
        visible = observation["visible"][self._blocks].astype(bool)
        blocks = seen[self._blocks, POSITION]
        held = holds(observation["agent"], blocks) & visible
        colours, tray_colours = self._coloured(seen, self._blocks), self._coloured(seen, self._trays)
        in_box = inside(blocks, held, box_centre(seen[self._box])) & visible
        achieved = self._on_own_tray(seen, held, colours, tray_colours) & visible
        opened = np.array(is_open(float(seen[self._box, TRAVEL]), bool(in_box.any())))
        return seen[self._blocks, SERIAL], held, in_box, achieved, colours, tray_colours, opened

    def facts(self, observation: Observation, *relations: NDArray[Any]) -> Iterator[Atom]:
        serials, held, in_box, achieved, colours, tray_colours, opened = relations
        block_slots, rows = self.slots[self._blocks], observation["objects"][self._blocks]
        names = [object_name(slot, row) for slot, row in zip(block_slots, rows, strict=True)]
        yield from _gripper(names, held)
        yield from self._tray_colours(tray_colours)
        yield Atom("opened" if opened else "closed", (self._box_name,))
        if not in_box.any():
            yield Atom("clear", (self._box_name,))
        for index in np.flatnonzero(serials):
            colour = self._colour_names[colours[index]]
            yield Atom("colour-of", (names[index], colour))
            if in_box[index]:
                yield Atom("in", (names[index], self._box_name))
            if achieved[index]:
                yield Atom("achieved-goal", (colour,))

    def wishes(self, observation: Observation) -> Iterator[Atom]:
        wanted = np.flatnonzero(observation["objects"][self._colours, WANTED])
        return (Atom("achieved-goal", (self._colour_names[colour],)) for colour in wanted)


def box_centre(box: Array) -> Array:
    """Where a box stands on the table: its knob is seen, and that moves with the lid along x."""
    x, y = box[:2]
    return np.array([x - box[TRAVEL], y, 0.0], np.float32)

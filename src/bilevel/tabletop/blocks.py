"""Blocks: coloured blocks, and for each a place of its colour where it belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Atom, Facts
from bilevel.tabletop import furniture as scene
from bilevel.tabletop import layout
from bilevel.tabletop.measurements import holds, near, stands
from bilevel.tabletop.noise import teleporting
from bilevel.tabletop.observation import POSITION, RGB, Array, Bools, Observation, Slots, numbered, slots
from bilevel.tabletop.simulation import Simulation
from bilevel.tabletop.tabletop import YAW, State, Tabletop, once

COLOURS = np.array(list(scene.PALETTE.values()), np.float32)


@dataclass
class BlocksState(State):
    colours: NDArray[np.int64]  # (pairs,): of a block and its place, as rows of COLOURS


class Blocks(Tabletop):
    """n blocks and n places. A block and a place of one colour belong together."""

    most_objects: ClassVar[int] = 20
    state_type: ClassVar[type[State]] = BlocksState
    state: BlocksState

    @property
    def pairs(self) -> int:
        """How many blocks there will ever be, and as many places."""
        return self.count

    def make_slots(self) -> Slots:
        known = slots({"block": numbered("block", self.pairs), "place": numbered("place", self.pairs)})
        self._places = known.rows("place")
        return known

    def make_simulation(self) -> Simulation:
        self._place_names = self.slots.names[self._places]
        furniture = [*map(scene.block, self._block_names), *map(scene.spot, self._place_names)]
        return Simulation(scene.scene(furniture, sparse=self.pairs > 4), self._block_names, self._place_names)

    def arrange(self, rng: np.random.Generator) -> BlocksState:
        self.simulation.reset()
        where = layout.draw(rng, 2 * self.count)
        for pair in range(self.pairs):
            self.simulation.hide_spot(self._place_names[pair])
        for pair in range(self.count):
            self.appear(pair, where[pair], where[self.count + pair], rng)
        visible = np.tile(np.arange(self.pairs) < self.count, 2)
        return BlocksState(visible, rng.permutation(len(COLOURS))[: self.pairs])

    def appear(self, pair: int, block: layout.Floats, place: layout.Floats, rng: np.random.Generator) -> None:
        """Put a block and its place on the table."""
        self.simulation.put(pair, (*block, scene.BLOCK), rng.uniform(-YAW, YAW))
        self.simulation.move_spot(self._place_names[pair], *place)

    def describe(self, features: Array) -> None:
        colours = COLOURS[self.state.colours]
        for rows in (self._blocks, self._places):
            features[rows, RGB] = colours
        features[self._places, POSITION] = [self.simulation.spot(name) for name in self._place_names]
        for block, place, colour in zip(self._block_names, self._place_names, colours, strict=True):
            self.simulation.paint(block, colour)
            self.simulation.paint(place, colour)

    def goal(self) -> Facts:
        known = self.state.visible[self._blocks]
        pairs = zip(self._block_names, self._place_names, known, strict=True)
        return frozenset(Atom("at", (block, place)) for block, place, visible in pairs if visible)

    @once
    def at_goal(self, observation: Observation) -> Bools:
        """(pairs,): which visible blocks are on their own places."""
        seen = observation["objects"]
        blocks = seen[self._blocks, POSITION]
        standing = stands(blocks, holds(observation["agent"], blocks)) & self.state.visible[self._blocks]
        return standing & near(blocks, seen[self._places, POSITION])

    def achieved(self, observation: Observation) -> Bools:
        return self.at_goal(observation)[self.state.visible[self._blocks]]

    def react(self, observation: Observation) -> bool:
        moved = self.move(self.strayed(observation), "return")
        if self.teleport_rate:
            struck = teleporting(self.np_random, self.at_goal(observation), self.teleport_rate)
            moved |= self.move(struck, "teleport")
        return moved

    def vacancy(self) -> layout.Floats:
        return self.free_place(self.occupied())

    def occupied(self) -> layout.Floats:
        """(things, 2): where visible blocks and places are."""
        known = self.state.visible[self._blocks]
        places = [self.simulation.spot(name)[:2] for name in np.array(self._place_names)[known]]
        return layout.stack(self.simulation.blocks()[known, :2], places)

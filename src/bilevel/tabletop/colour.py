"""Colour: brown blocks get a random colour on a pink platform when its button is pressed, and belong on trays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tabletop import furniture as scene
from bilevel.tabletop import layout
from bilevel.tabletop.blocks import COLOURS
from bilevel.tabletop.measurements import PRESSED, holds, near, stands, stands_on_own_tray
from bilevel.tabletop.noise import teleporting
from bilevel.tabletop.observation import (
    POSITION,
    RGB,
    SPAN,
    TRAVEL,
    Array,
    Bools,
    Observation,
    Slots,
    numbered,
    slots,
)
from bilevel.tabletop.simulation import Simulation
from bilevel.tabletop.tabletop import YAW, State, Tabletop, once
from bilevel.tabletop.trays import HALF_WIDTH, free_spots

MOST_COLOURS = 3  # a tray of ten spots takes a row of its own
SPOT_PITCH = 0.055  # metres between the spots of a tray
COLUMNS = layout.COLUMNS[:8]  # where blocks may lie: left of the platform
LEFT_END = -0.4  # of the part of the table for trays
TABLE = (0.0, 0.6, 0.0)  # the table's middle
NO_COLOUR = -1


@dataclass
class ColourState(State):
    colours: NDArray[np.int64]  # (blocks,): as an index of the trays, or NO_COLOUR
    trays: NDArray[np.float64]  # (trays, 2): where each tray's first spot is; the others follow along x


class Colour(Tabletop):
    """n brown blocks, a tray for each of a few colours, a platform, a button.

    Which colour a block gets is drawn uniformly, so a tray has a spot for each block; what is seen of a tray is where
    its next free spot is, and from where to where its spots go.
    """

    state_type: ClassVar[type[State]] = ColourState
    state: ColourState

    def __init__(self, objects: int = 3, *, colours: int = MOST_COLOURS, **arguments: Any) -> None:
        if colours not in range(1, MOST_COLOURS + 1):
            raise BadInput(f"Colour takes 1 to {MOST_COLOURS} colours, not {colours}")
        self.colours = int(colours)
        super().__init__(objects, **arguments)

    @property
    def _tray_length(self) -> float:
        """From a tray's first spot to its last."""
        return (self.count - 1) * SPOT_PITCH

    def _middles(self, trays: layout.Floats) -> layout.Floats:
        return np.add(trays, (self._tray_length / 2, 0.0))

    def make_slots(self) -> Slots:
        names = {
            "block": numbered("block", self.count),
            "tray": numbered("tray", self.colours),
            "colour": list(scene.PALETTE)[: self.colours],
            "table": ["table"],
            "platform": ["platform"],
            "button": ["button"],
        }
        known = slots(names)
        self._trays, self._colours = known.rows("tray"), known.rows("colour")
        self._table, self._platform, self._button = (known.rows(kind).start for kind in ("table", "platform", "button"))
        return known

    def make_simulation(self) -> Simulation:
        self._tray_names = self.slots.names[self._trays]
        half_length = self._tray_length / 2 + HALF_WIDTH
        trays = [scene.spot(name, half_length, HALF_WIDTH) for name in self._tray_names]
        platform = scene.spot("platform", colour=scene.PINK)
        furniture = [*map(scene.block, self._block_names), *trays, platform, scene.button()]
        xml = scene.scene(furniture, excluded_contacts=[("button-housing", "button")])
        return Simulation(xml, self._block_names, [*self._tray_names, "platform"], ["button-housing"], ["button"])

    def arrange(self, rng: np.random.Generator) -> ColourState:
        button = (0.38 + rng.uniform(-0.02, 0.02), rng.uniform(0.42, 0.60))
        self.simulation.reset({0: button})
        self.simulation.move_spot("platform", rng.uniform(0.24, 0.28), rng.uniform(0.36, 0.66))
        length = self._tray_length
        right_end = COLUMNS[-1] - length
        starts = LEFT_END + rng.random(self.colours) * max(0.0, right_end - LEFT_END)
        rows = rng.permutation(layout.ROWS)[: self.colours]
        trays = layout.jittered(np.stack([starts, rows], axis=1), rng)
        for name, (x, y) in zip(self._tray_names, trays, strict=True):
            self.simulation.move_spot(name, x + length / 2, y)
        middles = self._middles(trays)
        places = layout.clear_of(layout.jittered(layout.grid(COLUMNS), rng), middles, length / 2)
        for block, (x, y) in enumerate(rng.permutation(places)[: self.count]):
            self.simulation.put(block, (x, y, scene.BLOCK), rng.uniform(-YAW, YAW))
        return ColourState(np.ones(len(self.slots), bool), np.full(self.count, NO_COLOUR), trays)

    def describe(self, features: Array) -> None:
        tray_colours = COLOURS[: self.colours]
        features[self._trays, RGB] = features[self._colours, RGB] = tray_colours
        for name, colour in zip(self._tray_names, tray_colours, strict=True):
            self.simulation.paint(name, colour)
        brown = np.array(scene.BROWN, np.float32)
        block_colours = np.where((self.state.colours == NO_COLOUR)[:, None], brown, tray_colours[self.state.colours])
        features[self._blocks, RGB] = block_colours
        for name, colour in zip(self._block_names, block_colours, strict=True):
            self.simulation.paint(name, colour)
        features[self._trays, SPAN] = self.state.trays[:, :1] + np.array([0.0, self._tray_length])
        self._own = self.state.colours[:, None] == np.arange(self.colours)  # (blocks, trays): which have one colour
        features[self._table, POSITION] = TABLE
        features[self._platform, POSITION] = self.simulation.spot("platform")
        features[self._button, POSITION] = self.simulation.fixture(0)

    def look(self, features: Array, agent: Array) -> None:
        features[self._trays, POSITION] = free_spots(
            self.state.trays, self.count, SPOT_PITCH, features[self._blocks, POSITION], agent
        )
        travel = -self.simulation.joint("button")
        features[self._button, 2] = scene.BUTTON_TOP - travel
        features[self._button, TRAVEL] = travel

    def goal(self) -> Facts:
        return frozenset(Atom("achieved-goal", (name,)) for name in self._block_names)

    @once
    def at_goal(self, observation: Observation) -> Bools:
        """(blocks,): which blocks are on the tray of their colour."""
        seen, blocks, held = self._blocks_and_held(observation)
        return np.asarray(stands_on_own_tray(blocks, held, seen[self._trays], self._own).any(axis=1))

    def achieved(self, observation: Observation) -> Bools:
        return self.at_goal(observation)

    @once
    def _blocks_and_held(self, observation: Observation) -> tuple[Array, Array, Bools]:
        """All that is seen, where the blocks are, and which of them is held."""
        blocks = observation["objects"][self._blocks, POSITION]
        return observation["objects"], blocks, holds(observation["agent"], blocks)

    def react(self, observation: Observation) -> bool:
        changed = observation["objects"][self._button, TRAVEL] > PRESSED and self._press(observation)
        changed |= self.move(self.strayed(observation), "return")
        if self.teleport_rate:
            struck = teleporting(self.np_random, self.at_goal(observation), self.teleport_rate)
            changed |= self.move(struck, "teleport")
        return bool(changed)

    def _press(self, observation: Observation) -> bool:
        """The button is down: brown blocks on the platform get a colour; whether there were any."""
        seen, blocks, held = self._blocks_and_held(observation)
        brown = self.state.colours == NO_COLOUR
        waiting = np.flatnonzero(brown & stands(blocks, held) & near(blocks, seen[self._platform, POSITION]))
        self.state.colours[waiting] = self.np_random.integers(self.colours, size=len(waiting))
        return len(waiting) > 0

    def vacancy(self) -> layout.Floats:
        lying, trays = self.simulation.blocks()[:, :2], self._middles(self.state.trays)
        widths = np.repeat([0.0, self._tray_length / 2], [len(lying), len(trays)])
        return self.free_place(layout.stack(lying, trays), widths, layout.grid(COLUMNS))

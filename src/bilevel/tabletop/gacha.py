"""Gacha: a box makes blocks of random colours, and every target colour wants one on its tray."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tabletop import furniture as scene
from bilevel.tabletop import layout
from bilevel.tabletop.blocks import COLOURS
from bilevel.tabletop.measurements import LID_SHUT, PRESSED, holds, inside, stands_on_own_tray
from bilevel.tabletop.noise import teleporting
from bilevel.tabletop.observation import (
    POSITION,
    RGB,
    SERIAL,
    SPAN,
    TRAVEL,
    WANTED,
    Array,
    Bools,
    Observation,
    Slots,
    numbered,
    slots,
)
from bilevel.tabletop.simulation import Simulation
from bilevel.tabletop.tabletop import ARM_CLEARANCE, State, Tabletop, once
from bilevel.tabletop.trays import HALF_WIDTH, free_spots

SPARE_COLOURS = 2  # that come up and nobody wants
SPARE_BLOCKS = 3  # bodies besides one per tray: in the box, in the hand, lost
SPOTS = 2  # per tray, so that a second block can be put down before the first is taken away
SPOT_PITCH = 0.05  # metres
TRAYS = layout.grid(np.array([-0.37, -0.22, -0.07]), layout.ROWS)  # where trays may be
TRAY_JITTER = (0.012, 0.006)  # metres
IN_BOX_JITTER = 0.008
YAW = 0.2  # radians
NO_COLOUR = -1
MOMENT = 10  # steps that the box must have been free before a block comes back to it
DRAWS = ("empty", "uniform")  # among the colours whose trays are empty; among all


@dataclass
class GachaState(State):
    colours: NDArray[np.int64]  # (blocks,): as an index of the trays, or NO_COLOUR while out of play
    serials: NDArray[np.int64]  # (blocks,): which block of the episode this is, from 1; 0 while out of play
    trays: NDArray[np.float64]  # (trays, 2): the first spot of each tray
    wanted: Bools  # (trays,)
    crowded: Bools  # (trays,): which trays held more than one block of their colour at the last step
    made: NDArray[np.int64]  # (): how many blocks the box has made
    struck: Bools  # (blocks,): which blocks will teleport
    waited: NDArray[np.int64]  # (): for how many steps the box has been free for them


class Gacha(Tabletop):
    """n target colours, a tray for each of them and for two colours more, a box with a lid, a button.

    The button makes a block when the box is empty and closed. A block of any colour belongs on the tray of its colour,
    where it replaces the one before. `draw` says among which colours nature draws: those whose trays are empty, or all.
    """

    state_type: ClassVar[type[State]] = GachaState
    state: GachaState

    def __init__(self, objects: int = 3, *, draw: str = "empty", **arguments: Any) -> None:
        if draw not in DRAWS:
            raise BadInput(f"unknown way to draw colours '{draw}'; known ways: {', '.join(DRAWS)}")
        self.draw = draw
        super().__init__(objects, **arguments)

    @property
    def colours(self) -> int:
        return self.count + SPARE_COLOURS

    def make_slots(self) -> Slots:
        names = {
            "block": numbered("unmade", self.colours + SPARE_BLOCKS),
            "tray": numbered("tray", self.colours),
            "colour": list(scene.PALETTE)[: self.colours],
            "box": ["box"],
            "button": ["button"],
        }
        known = slots(names)
        self._trays, self._colours = known.rows("tray"), known.rows("colour")
        self._box, self._button = (known.rows(kind).start for kind in ("box", "button"))
        return known

    def make_simulation(self) -> Simulation:
        self._tray_names = self.slots.names[self._trays]
        trays = [scene.spot(name, SPOT_PITCH / 2 + HALF_WIDTH) for name in self._tray_names]
        furniture = [*map(scene.block, self._block_names), *trays, scene.box(), scene.button()]
        xml = scene.scene(furniture, excluded_contacts=[("box", "box-lid"), ("button-housing", "button")])
        return Simulation(xml, self._block_names, self._tray_names, ["box", "button-housing"], ["box-lid", "button"])

    def arrange(self, rng: np.random.Generator) -> GachaState:
        box = (0.27 + rng.uniform(-0.04, 0.04), rng.uniform(0.42, 0.60))
        button = (0.11 + rng.uniform(-0.03, 0.03), rng.uniform(0.42, 0.62))
        self.simulation.reset({0: box, 1: button})
        self.simulation.set_joint("box-lid", scene.LID_TRAVEL * rng.integers(2))
        middles = layout.jittered(rng.permutation(TRAYS)[: self.colours], rng, TRAY_JITTER)
        for name, (x, y) in zip(self._tray_names, middles, strict=True):
            self.simulation.move_spot(name, x, y)
        blocks = len(self._block_names)
        visible = np.arange(len(self.slots)) >= blocks
        return GachaState(
            visible=visible,
            colours=np.full(blocks, NO_COLOUR),
            serials=np.zeros(blocks, np.int64),
            trays=np.subtract(middles, (SPOT_PITCH / 2, 0.0)),
            wanted=rng.permutation(self.colours) < self.count,
            crowded=np.zeros(self.colours, bool),
            made=np.zeros((), np.int64),
            struck=np.zeros(blocks, bool),
            waited=np.zeros((), np.int64),
        )

    def describe(self, features: Array) -> None:
        colours = COLOURS[: self.colours]
        features[self._trays, RGB] = features[self._colours, RGB] = colours
        features[self._trays, SPAN] = self.state.trays[:, :1] + np.array([0.0, (SPOTS - 1) * SPOT_PITCH])
        features[self._colours, WANTED] = self.state.wanted
        features[self._blocks, RGB] = colours[self.state.colours]
        features[self._blocks, SERIAL] = self.state.serials
        self._own = self.state.colours[:, None] == np.arange(self.colours)  # (blocks, trays): which have one colour
        features[self._box, POSITION] = self.simulation.fixture(0)
        features[self._box, 2] = scene.KNOB_HEIGHT
        features[self._button, POSITION] = self.simulation.fixture(1)
        names = (*self._tray_names, *self._block_names)
        for name, colour in zip(names, [*colours, *colours[self.state.colours]], strict=True):
            self.simulation.paint(name, colour)

    def look(self, features: Array, agent: Array) -> None:
        features[self._trays, POSITION] = free_spots(
            self.state.trays, SPOTS, SPOT_PITCH, features[self._blocks, POSITION], agent
        )
        lid, pressed = self.simulation.joint("box-lid"), -self.simulation.joint("button")
        features[self._box, 0] += lid
        features[self._box, TRAVEL] = lid
        features[self._button, 2] = scene.BUTTON_TOP - pressed
        features[self._button, TRAVEL] = pressed

    def goal(self) -> Facts:
        names = np.array(self.slots.names[self._colours])[self.state.wanted]
        return frozenset(Atom("achieved-goal", (str(name),)) for name in names)

    def achieved(self, observation: Observation) -> Bools:
        filled = np.asarray(self.on_own_tray(observation).any(axis=0))
        return filled[self.state.wanted]

    @once
    def on_own_tray(self, observation: Observation) -> Bools:
        """(blocks, trays): which blocks stand on which tray, if it has their colour."""
        blocks, held = self._blocks_and_held(observation)
        return stands_on_own_tray(blocks, held, observation["objects"][self._trays], self._own)

    @once
    def _blocks_and_held(self, observation: Observation) -> tuple[Array, Bools]:
        blocks = observation["objects"][self._blocks, POSITION]
        return blocks, holds(observation["agent"], blocks)

    def react(self, observation: Observation) -> bool:
        self._snap_lid()
        home = self.on_own_tray(observation)
        pressed = observation["objects"][self._button, TRAVEL] > PRESSED
        rolled = bool(pressed) and self._roll(observation, home)
        replaced = self._replace(home)
        teleported = bool(self.teleport_rate) and not rolled and self._teleport(observation, home)
        return rolled or replaced or teleported

    def _snap_lid(self) -> None:
        """A detent at both ends of the lid's way, or it would bounce off and creep back."""
        lid = self.simulation.joint("box-lid")
        outwards = min(1.0, max(0.0, (lid - 0.065) / 0.005))
        inwards = min(1.0, max(0.0, (0.02 - lid) / 0.005))
        arrived = lid < 0.001 or lid > scene.LID_TRAVEL - 0.001  # there its friction holds it, and it may sleep
        self.simulation.push("box-lid", 0.0 if arrived else scene.LID_DETENT * (outwards - inwards))

    def _roll(self, observation: Observation, home: Bools) -> bool:
        """The button is down: if the box is empty and closed it makes a block."""
        if self.simulation.joint("box-lid") > LID_SHUT or self._in_box(observation).any():
            return False
        rng = self.np_random
        empty = np.flatnonzero(~home.any(axis=0)) if self.draw == "empty" else np.arange(self.colours)
        block = self._spare_body(observation, np.asarray(home.any(axis=1)))
        self.state.made += 1
        self.state.serials[block] = self.state.made
        self.state.colours[block] = rng.choice(empty if len(empty) else self.colours)
        self.state.visible[self._blocks.start + block] = True
        self._put_in_box(block)
        return True

    def _in_box(self, observation: Observation) -> Bools:
        """(blocks,): which blocks are in the box."""
        blocks, held = self._blocks_and_held(observation)
        return inside(blocks, held, self.simulation.fixture(0).astype(np.float32)) & (self.state.serials > 0)

    def _put_in_box(self, block: int) -> None:
        x, y = self.simulation.fixture(0)[:2] + self.np_random.uniform(-IN_BOX_JITTER, IN_BOX_JITTER, 2)
        self.simulation.put(block, (x, y, scene.BLOCK), self.np_random.uniform(-YAW, YAW))

    def _spare_body(self, observation: Observation, home: Bools) -> int:
        """A body for a new block: one that is out of play, else the oldest that was lost on the way to its tray."""
        _, held = self._blocks_and_held(observation)
        candidates = np.flatnonzero(~home & ~held)
        oldest = int(candidates[np.argmin(self.state.serials[candidates])])
        if self.state.serials[oldest]:
            self.happened(f"lost block{self.state.serials[oldest]}")
        return oldest

    def _replace(self, home: Bools) -> bool:
        """Take the older of two blocks of one colour off their tray, at the step after the second was put down."""
        crowded = home.sum(axis=0) > 1
        leaving = np.flatnonzero(crowded & self.state.crowded) if crowded.any() else ()
        for tray in leaving:
            blocks = np.flatnonzero(home[:, tray])
            block = int(blocks[np.argmin(self.state.serials[blocks])])
            self.happened(f"replaced block{self.state.serials[block]}")
            self.state.serials[block], self.state.colours[block] = 0, NO_COLOUR
            self.state.visible[self._blocks.start + block] = False
            self.simulation.park(block)
        self.state.crowded = crowded
        return len(leaving) > 0

    def _teleport(self, observation: Observation, home: Bools) -> bool:
        """Back into the box, as soon as that has been empty, and nobody at it, for a moment.

        A block that is being carried keeps the box occupied; the moment keeps a teleport apart from what was done last.
        """
        state, at_goal = self.state, np.asarray((home & self.state.wanted).any(axis=1))
        state.struck[teleporting(self.np_random, at_goal, self.teleport_rate)] = True
        state.struck &= at_goal
        if not state.struck.any():
            return False
        _, held = self._blocks_and_held(observation)
        busy = self._in_box(observation).any() or held.any() or self._hand_at_box(observation)
        state.waited = np.zeros_like(state.waited) if busy else state.waited + 1
        if state.waited < MOMENT:
            return False
        block = int(state.struck.argmax())
        state.struck[block], state.waited = False, np.zeros_like(state.waited)
        self._put_in_box(block)
        self.happened(f"teleport block{state.serials[block]}")
        return True

    def _hand_at_box(self, observation: Observation) -> bool:
        """Whether the hand is above the box or its lid, so that a block may not appear there."""
        box = observation["objects"][self._box, POSITION]
        x, y, _ = observation["agent"][:3] - box
        lid = observation["objects"][self._box, TRAVEL]
        return bool(-ARM_CLEARANCE - lid < x < ARM_CLEARANCE and abs(y) < ARM_CLEARANCE)

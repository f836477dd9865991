"""Trays: strips painted on the table, with a row of spots along x.

What is seen of a tray is where its first spot is, or its next free one, which the world works out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom
from bilevel.tabletop import furniture
from bilevel.tabletop.layout import Floats
from bilevel.tabletop.measurements import PRESSED, Indices, colour_index, holds, remembered, stands, stands_on_own_tray
from bilevel.tabletop.observation import POSITION, RGB, SPAN, TRAVEL, Bools, Observation, numbered
from bilevel.tabletop.skills import Skill, skilled
from bilevel.tabletop.tabletop import State, Tabletop
from bilevel.tasks.scene import Array, Scene

SPOT_TAKEN = 0.035  # metres, in x and in y: a spot is taken by a block as near as this
HALF_WIDTH = 0.03
NO_COLOUR = -1
FIXED, FREE_SPOT = TRAY_POSITIONS = ("fixed", "free-spot")


@dataclass
class TrayState(State):
    """What a world with trays remembers besides the physics."""

    colours: NDArray[np.int64]  # (blocks,): as an index of the trays, or NO_COLOUR
    trays: NDArray[np.float64]  # (trays, 2): where each tray's first spot is; the others follow along x


class TrayWorld(Tabletop):
    """A world with some colours, a tray for each of them, and a button."""

    state: TrayState
    colours: int  # how many colours there are
    spots: int  # that each tray has
    pitch: ClassVar[float]  # metres between the spots of a tray
    tray_position: str  # one of TRAY_POSITIONS

    @property
    def tray_length(self) -> float:
        """From a tray's first spot to its last."""
        return (self.spots - 1) * self.pitch

    def name_objects(self) -> dict[str, list[str]]:
        colours = list(furniture.PALETTE)[: self.colours]
        return {"tray": numbered("tray", self.colours), "colour": colours}

    def paint_trays(self) -> list[str]:
        """Return the trays as the simulation has them; they are the first of its spots."""
        self._trays, self._tray_names = self.slots.rows("tray"), self.slots.of_type("tray")
        self._button = self.slots.row["button"]
        return [furniture.spot(name, self.tray_length / 2 + HALF_WIDTH, HALF_WIDTH) for name in self._tray_names]

    def describe(self, features: Array) -> None:
        colours = furniture.COLOURS[: self.colours]
        features[self._trays, RGB] = features[self.slots.rows("colour"), RGB] = colours
        features[self._trays, SPAN] = self.state.trays[:, :1] + np.array([0.0, self.tray_length])
        features[self._trays, :2], features[self._trays, 2] = self.state.trays, furniture.SPOT
        brown = np.array(furniture.BROWN, np.float32)
        block_colours = np.where((self.state.colours == NO_COLOUR)[:, None], brown, colours[self.state.colours])
        features[self._blocks, RGB] = block_colours
        self._own = self.state.colours[:, None] == np.arange(self.colours)  # (blocks, trays): which have one colour
        names = (*self._tray_names, *self._block_names)
        for name, colour in zip(names, [*colours, *block_colours], strict=True):
            self.simulation.paint(name, colour)

    def look(self, features: Array, agent: Array) -> None:
        if self.tray_position == FREE_SPOT:
            blocks = features[self._blocks, POSITION]
            standing = blocks[stands(blocks, holds(agent, blocks)), :2]
            along = np.arange(self.spots, dtype=float) * self.pitch
            features[self._trays, POSITION] = free_spots(self.state.trays, along, standing)
        travel = -self.simulation.joint("button")
        features[self._button, 2] = furniture.BUTTON_TOP - travel
        features[self._button, TRAVEL] = travel

    def on_own_tray(self, observation: Observation) -> Bools:
        """(blocks, trays): which blocks stand on which tray, if it has their colour."""
        blocks, held = self.blocks_and_held(observation)
        return stands_on_own_tray(blocks, held, observation["objects"][self._trays], self._own)

    def is_pressed(self, observation: Observation) -> bool:
        """Whether the button is down."""
        return bool(observation["objects"][self._button, TRAVEL] > PRESSED)


@remembered
def free_spots(first_spots: Floats, along: Floats, standing: Array) -> Floats:
    """(trays, 3): for each tray the first of its spots on which nothing stands; they lie `along` x, (spots,)."""
    x, y = first_spots[:, :1] + along, first_spots[:, 1]  # (trays, spots), (trays,)
    beside = np.abs(standing[:, 0] - x[..., None]) < SPOT_TAKEN  # (trays, spots, standing)
    in_row = np.abs(standing[:, 1] - y[:, None, None]) < SPOT_TAKEN  # (trays, 1, standing)
    free = ~(beside & in_row).any(axis=2)
    first = x[np.arange(len(x)), free.argmax(axis=1)]
    return np.stack([first, y, np.full(len(y), furniture.SPOT)], axis=1)


# What labels and experts say of trays


def tray_relations(scene: Scene, held: Bools) -> tuple[Bools, Indices, Indices]:
    """Which blocks stand on a tray of their colour, (blocks,), and the colours of blocks and of trays, -1 for none."""
    seen, blocks, trays = scene.features, scene.roster.rows("block"), scene.roster.rows("tray")
    colours = colour_index(seen[:, RGB], seen[scene.roster.rows("colour"), RGB])
    block_colours, tray_colours = colours[blocks], colours[trays]
    own = block_colours[:, None] == tray_colours
    home = stands_on_own_tray(seen[blocks, POSITION], held, seen[trays], own)
    return np.asarray(home.any(axis=1)), block_colours, tray_colours


def tray_facts(scene: Scene, tray_colours: Indices) -> Iterator[Atom]:
    """Yield which tray is of which colour."""
    colours = scene.roster.of_type("colour")
    for tray, colour in zip(scene.roster.of_type("tray"), tray_colours, strict=True):
        yield Atom("tray-colour", (tray, colours[colour]))


def colours_and_trays(state: Mapping[str, list[tuple[str, ...]]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colour of each block that has one, and the tray for each colour; `state` is sorted by predicate."""
    return {b: c for b, c in state["colour-of"]}, {c: t for t, c in state["tray-colour"]}  # noqa: C416 (types)


def putting_where_there_is_room(skills: Mapping[str, Skill], pitch: float) -> Callable[[Scene, Action], Array]:
    """Return an expert's `control` that finds by itself where on a tray there is room.

    Where the tray's position is taken, it is the first free spot of the tray, as far as its blocks are seen. A policy
    that only sees what the action names cannot know of them.
    """
    plain = skilled(skills)

    def control(scene: Scene, action: Action) -> Array:
        if action.name != "place-goal":
            return plain(scene, action)
        block, tray, colour = scene.features[scene.rows(action.arguments)]
        rows = scene.roster.rows("block")
        blocks = scene.features[rows, POSITION]
        is_standing = stands(blocks, holds(scene.values, blocks))
        is_standing[scene.roster.row[action.arguments[0]] - rows.start] = False
        standing = blocks[is_standing, :2]
        if (np.abs(standing - tray[:2]) < SPOT_TAKEN).all(axis=1).any():
            start, end = tray[SPAN].tolist()
            along = np.arange(round((end - start) / pitch) + 1) * pitch
            tray[POSITION] = free_spots(np.array([[start, tray[1]]]), along, standing)[0]
        return skills[action.name](scene.values, block, tray, colour)

    return control

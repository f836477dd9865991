"""The facts as the simulator knows them: from contacts, corners and joints, not from what is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Atom, Facts
from bilevel.tabletop.tabletop import Tabletop

Floats = NDArray[np.float64]

PADS = ("leftpad", "rightpad")
TOUCHING = 0.004  # metres between a block's lowest corner and the table; fallen blocks bounce
MIDDLE = 0.03  # how far from the middle of a place a block may stand
TRAY_MARGIN = 0.024
COLOUR_NAMES = (
    "red",
    "blue",
    "green",
    "yellow",
    "purple",
    "orange",
    "cyan",
    "magenta",
    "lime",
    "navy",
    "teal",
    "maroon",
)


class Truth:
    """What is the case in a world right now."""

    def __init__(self, world: Tabletop) -> None:
        self.world, self.model, self.data = world, world.simulation.model, world.simulation.data
        self.blocks = dict(enumerate(world.slots.of_type("block")))
        self.held = [index for index, name in self.blocks.items() if self.visible(name) and self._gripped(name)]

    def visible(self, name: str) -> bool:
        return bool(self.world.state.visible[self.world.slots.row[name]])

    def where(self, body: str) -> Floats:
        position: Floats = self.data.body(body).xpos
        return position

    def _gripped(self, block: str) -> bool:
        """Whether both fingers squeeze it; they close along y."""
        geom = self.model.geom(block).id
        pairs, normals = self.data.contact.geom, self.data.contact.frame[:, :3]
        squeezing = (pairs == geom).any(axis=1) & (np.abs(normals[:, 1]) > 0.7)
        partners = set(pairs[squeezing].ravel().tolist())
        bodies = {self.model.body(self.model.geom_bodyid[partner]).name for partner in partners}
        return bodies.issuperset(PADS)

    def lowest_corner(self, block: str) -> float:
        body = self.data.body(block)
        downwards = np.abs(body.xmat.reshape(3, 3)[2]) @ self.model.geom(block).size
        return float(body.xpos[2] - downwards)

    def stands(self, index: int) -> bool:
        block = self.blocks[index]
        return self.visible(block) and index not in self.held and self.lowest_corner(block) < TOUCHING

    def is_on(self, index: int, spot: str) -> bool:
        offset = self.where(self.blocks[index])[:2] - self.where(spot)[:2]
        return self.stands(index) and float(np.hypot(*offset)) < MIDDLE

    def is_on_tray(self, index: int, tray: str, end_spots: float) -> bool:
        """Whether it stands on a tray whose outermost spots are so far from its middle."""
        x, y = np.abs(self.where(self.blocks[index])[:2] - self.where(tray)[:2])
        return bool(self.stands(index) and x < end_spots + TRAY_MARGIN and y < TRAY_MARGIN)

    def gripper(self, names: dict[int, str]) -> Iterator[Atom]:
        if not self.held:
            yield Atom("gripper-free")
        for index in self.held:
            yield Atom("holding", (names[index],))


def _blocks(truth: Truth) -> Iterator[Atom]:
    places = [place for place in truth.world.slots.of_type("place") if truth.visible(place)]
    yield from truth.gripper(truth.blocks)
    at = {(i, place) for i in truth.blocks for place in places if truth.is_on(i, place)}
    yield from (Atom("at", (truth.blocks[i], place)) for i, place in at)
    yield from (Atom("clear", (place,)) for place in places if place not in {taken for _, taken in at})
    for index in truth.blocks.keys() - {i for i, _ in at} - {*truth.held}:
        if truth.visible(truth.blocks[index]):
            yield Atom("clear", (truth.blocks[index],))


def _swap(truth: Truth) -> Iterator[Atom]:
    yield from truth.gripper(truth.blocks)
    places = truth.world.slots.of_type("place")
    at = {(i, place) for i in truth.blocks for place in places if truth.is_on(i, place)}
    yield from (Atom("at", (truth.blocks[i], place)) for i, place in at)
    yield from (Atom("free", (surface,)) for surface in (*places, "table") if surface not in {taken for _, taken in at})
    loose = truth.blocks.keys() - {i for i, _ in at} - {*truth.held}
    yield from (Atom("at", (truth.blocks[i], "table")) for i in loose)


def _trays(count: int) -> Iterator[Atom]:
    yield from (Atom("tray-colour", (f"tray{number + 1}", COLOUR_NAMES[number])) for number in range(count))


def _colour(truth: Truth) -> Iterator[Atom]:
    world: Any = truth.world
    yield from truth.gripper(truth.blocks)
    yield from _trays(world.colours)
    on_platform = {index for index in truth.blocks if truth.is_on(index, "platform")}
    yield Atom("free", ("table",))
    if not on_platform:
        yield Atom("free", ("platform",))
    end_spots = (world.count - 1) * 0.055 / 2
    for index, block in truth.blocks.items():
        colour = int(world.state.colours[index])
        yield Atom("unknown", (block,)) if colour < 0 else Atom("colour-of", (block, COLOUR_NAMES[colour]))
        if colour >= 0 and truth.is_on_tray(index, f"tray{colour + 1}", end_spots):
            yield Atom("achieved-goal", (block,))
        elif index not in truth.held:
            yield Atom("on", (block, "platform" if index in on_platform else "table"))


def _gacha(truth: Truth) -> Iterator[Atom]:
    world: Any = truth.world
    made = {index: f"block{serial}" for index, serial in enumerate(world.state.serials) if serial}
    yield from truth.gripper(made)
    yield from _trays(world.colours)
    inside = [index for index in made if _in_box(truth, index)]
    lid = truth.where("box-lid")[0] - truth.where("box")[0]
    yield Atom("opened" if lid > (0.078 if inside else 0.006) else "closed", ("box",))
    if not inside:
        yield Atom("clear", ("box",))
    for index, name in made.items():
        colour = int(world.state.colours[index])
        yield Atom("colour-of", (name, COLOUR_NAMES[colour]))
        if index in inside:
            yield Atom("in", (name, "box"))
        if truth.is_on_tray(index, f"tray{colour + 1}", 0.025):
            yield Atom("achieved-goal", (COLOUR_NAMES[colour],))


def _in_box(truth: Truth, index: int) -> bool:
    """Whether its centre is between the walls, and its lowest corner below their tops."""
    x, y = np.abs(truth.where(truth.blocks[index])[:2] - truth.where("box")[:2])
    between = x < 0.036 and y < 0.066
    return bool(between and truth.lowest_corner(truth.blocks[index]) < 0.04 and index not in truth.held)


TRUTHS: Mapping[str, Callable[[Truth], Iterator[Atom]]] = {
    "Blocks": _blocks,
    "Factory": _blocks,
    "Swap": _swap,
    "Colour": _colour,
    "Gacha": _gacha,
}


def true_facts(world: Tabletop) -> Facts | None:
    """What is true of a world, if somebody has written down how to find it."""
    truth = TRUTHS.get(type(world).__name__)
    return None if truth is None else frozenset(truth(Truth(world)))

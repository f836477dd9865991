"""Blocks: coloured blocks, and for each a place of its colour where it belongs.

They begin apart from all places, or else on each other's; what is in the way can be put aside on the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout, skills
from bilevel.tabletop.furniture import Furnishing
from bilevel.tabletop.measurements import holds, near, same_colour, spot_aside, stands, stands_on
from bilevel.tabletop.observation import COLOURED, HAND, PLACED, POSITION, RGB, SYMMETRIES, Bools, Observation, numbered
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tabletop import YAW, Options, State, Tabletop
from bilevel.tabletop.world_tasks import Relations, by_predicate, gripper, remembering, twins
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec

SPEC = Spec(HAND, {"block": COLOURED, "place": COLOURED, "table": PLACED}, symmetries=SYMMETRIES)
APART, TANGLED, CIRCLE = STARTS = ("apart", "tangled", "circle")  # how blocks stand at first; see `draw_start`
ON_TABLE = -1


@dataclass
class BlocksState(State):
    """What Blocks remembers besides the physics."""

    colours: NDArray[np.int64]  # (pairs,): of a block and its place, as rows of furniture.COLOURS


class Blocks(Tabletop):
    """n blocks and n places. A block and a place of one colour belong together.

    What is seen of the table is where the next block can be put aside. `start` says where blocks stand at first: apart
    from all places, tangled, that is, on each other's, or some of them in a circle.
    """

    scene_spec = SPEC
    instruction = "Put every block on the spot of its own colour, {n} in all."
    max_objects: ClassVar[int] = 20
    state_type: ClassVar[type[State]] = BlocksState
    state: BlocksState
    options: ClassVar[Options] = {"start": STARTS}
    start: str

    @property
    def pairs(self) -> int:
        """How many blocks there will ever be, and as many places."""
        return self.count

    def name_objects(self) -> dict[str, list[str]]:
        pairs = {kind: numbered(kind, self.pairs) for kind in ("block", "place")}
        return {**pairs, "table": ["table"]}

    def furnish(self) -> Furnishing:
        self._places, self._place_names = self.slots.rows("place"), self.slots.of_type("place")
        bodies = [*map(furniture.block, self._block_names), *map(furniture.spot, self._place_names)]
        return Furnishing(bodies, self._block_names, self._place_names, sparse=self.pairs > 4)

    def arrange(self, rng: np.random.Generator) -> BlocksState:
        self.simulation.reset()
        where = layout.draw(rng, 2 * self.count, self.room())
        places = where[self.count :]
        for name in self._place_names:
            self.simulation.hide_spot(name)
        for block, place in enumerate(draw_start(rng, self.count, self.start)):
            self.appear(block, where[block] if place == ON_TABLE else places[place], places[block], rng)
        visible = np.ones(len(self.slots), bool)
        for rows in (self._blocks, self._places):
            visible[rows] = np.arange(self.pairs) < self.count
        return BlocksState(visible, rng.permutation(len(furniture.COLOURS))[: self.pairs])

    def appear(self, pair: int, block: layout.Floats, place: layout.Floats, rng: np.random.Generator) -> None:
        """Put a block and its place on the table."""
        self.simulation.put(pair, (*block, furniture.BLOCK), rng.uniform(-YAW, YAW))
        self.simulation.move_spot(self._place_names[pair], *place)

    def room(self) -> layout.Floats:
        """(places, 2): where on the table blocks and places may be."""
        return layout.grid()

    def describe(self, features: Array) -> None:
        colours = furniture.COLOURS[self.state.colours]
        for rows in (self._blocks, self._places):
            features[rows, RGB] = colours
        features[self._places, POSITION] = [self.simulation.spot(name) for name in self._place_names]
        for block, place, colour in zip(self._block_names, self._place_names, colours, strict=True):
            self.simulation.paint(block, colour)
            self.simulation.paint(place, colour)
        self._aside = layout.spots_aside(self.room(), features[self._places, :2].astype(float))

    def look(self, features: Array, agent: Array) -> None:
        features[self.slots.row["table"], POSITION] = spot_aside(self._aside, features[self._blocks, POSITION], agent)

    def at_goal(self, observation: Observation) -> Bools:
        """(pairs,): which visible blocks are on their own places."""
        blocks, held = self.blocks_and_held(observation)
        standing = stands(blocks, held) & self.state.visible[self._blocks]
        return standing & near(blocks, observation["objects"][self._places, POSITION])

    def achieved(self, observation: Observation) -> Bools:
        return self.at_goal(observation)[self.state.visible[self._blocks]]

    def react(self, observation: Observation) -> bool:
        moved = self.move(self.strayed(observation), "return")
        return bool(self.teleport_rate and self.teleport(self.at_goal(observation))) or moved

    def vacancy(self) -> layout.Floats:
        return self.free_place(self.occupied(), places=self.room())

    def occupied(self) -> layout.Floats:
        """(things, 2): where visible blocks and places are."""
        known = self.state.visible[self._blocks]
        places = [self.simulation.spot(name)[:2] for name in np.array(self._place_names)[known]]
        return layout.stack(self.simulation.blocks()[known, :2], places)


def draw_start(rng: np.random.Generator, count: int, start: str) -> NDArray[np.int64]:
    """(blocks,): on whose place each block stands at first, or ON_TABLE; never on its own.

    Where they are tangled, they stand in a circle in about half of all episodes.
    """
    own = np.arange(count)
    if start == APART:
        return np.full(count, ON_TABLE)
    places = rng.permutation(count)
    if (places == own).all():
        places = np.roll(places, 1)
    places[places == own] = ON_TABLE
    if start == TANGLED and rng.random() < 0.5:  # no circles
        for block in range(count):
            follower = places[block]
            while follower not in (block, ON_TABLE):
                follower = places[follower]
            if follower == block:
                places[block] = ON_TABLE
    return places


# What is said of it


def relations(scene: Scene) -> Relations:
    """held (blocks,), at (blocks, places)"""
    blocks, places = (scene.features[scene.roster.rows(kind), POSITION] for kind in ("block", "place"))
    held = holds(scene.values, blocks)
    return held, stands_on(blocks, stands(blocks, held), places)


def _facts(scene: Scene, held: Bools, at: Bools) -> Iterator[Atom]:
    blocks, places = scene.roster.of_type("block"), scene.roster.of_type("place")
    yield from gripper(blocks, held)
    yield from (Atom("at", (blocks[block], places[place])) for block, place in np.argwhere(at))
    yield from (Atom("clear", (blocks[block],)) for block in np.flatnonzero(~held & ~at.any(axis=1)))
    yield from (Atom("clear", (places[place],)) for place in np.flatnonzero(~at.any(axis=0)))


def _wanted(scene: Scene, colours: Array) -> Iterator[Atom]:
    """A block belongs on the place of its colour."""
    roster = scene.roster
    blocks, places = roster.of_type("block"), roster.of_type("place")
    pairs = same_colour(colours[roster.rows("block")], colours[roster.rows("place")])
    return (Atom("at", (blocks[block], places[place])) for block, place in np.argwhere(pairs))


label = remembering(relations, _facts)
goal = remembering(lambda scene: (scene.features[:, RGB],), _wanted)


# What an expert does


def choose(state: Facts, goal: Facts) -> Action | None:
    """Put what is in hand on its place, or else aside; fetch a block whose place is free; else free a place."""
    now, open_goals = by_predicate(state), by_predicate(goal - state)["at"]
    ready = {block: place for block, place in open_goals if (place,) in now["clear"]}
    blocked = {place for _, place in open_goals}
    for (held,) in now["holding"]:
        return Action("place", (held, ready[held])) if held in ready else Action("put-aside", (held, "table"))
    picks = [Action("pick", (block,)) for block in ready if (block,) in now["clear"]]
    takes = [Action("take", pair) for pair in now["at"] if pair[0] in ready]
    frees = [Action("take", pair) for pair in now["at"] if pair[1] in blocked]
    return next(iter(picks + takes + frees), None)


DOMAIN = shipped_domain("blocks")
SKILLS: dict[str, skills.Skill] = {
    "pick": skills.pick,
    "take": lambda hand, block, place: skills.pick(hand, block),
    "place": skills.place,
    "put-aside": skills.place,
}

task, noisy = twins(Blocks, DOMAIN, label, goal, choose, skills.skilled(SKILLS))

"""Blocks: coloured blocks, and for each a place of its colour where it belongs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout, skills
from bilevel.tabletop.furniture import Furnishing
from bilevel.tabletop.measurements import holds, near, same_colour, stands, stands_on
from bilevel.tabletop.observation import COLOURED, HAND, POSITION, RGB, Bools, Observation, numbered
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tabletop import YAW, State, Tabletop, once
from bilevel.tabletop.world_tasks import Relations, by_predicate, gripper, remembering, twins
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec

SPEC = Spec(HAND, {"block": COLOURED, "place": COLOURED})


@dataclass
class BlocksState(State):
    colours: NDArray[np.int64]  # (pairs,): of a block and its place, as rows of furniture.COLOURS


class Blocks(Tabletop):
    """n blocks and n places. A block and a place of one colour belong together."""

    scene_spec = SPEC
    max_objects: ClassVar[int] = 20
    state_type: ClassVar[type[State]] = BlocksState
    state: BlocksState

    @property
    def pairs(self) -> int:
        """How many blocks there will ever be, and as many places."""
        return self.count

    def name_objects(self) -> dict[str, list[str]]:
        return {"block": numbered("block", self.pairs), "place": numbered("place", self.pairs)}

    def furnish(self) -> Furnishing:
        self._places, self._place_names = self.slots.rows("place"), self.slots.of_type("place")
        bodies = [*map(furniture.block, self._block_names), *map(furniture.spot, self._place_names)]
        return Furnishing(bodies, self._block_names, self._place_names, sparse=self.pairs > 4)

    def arrange(self, rng: np.random.Generator) -> BlocksState:
        self.simulation.reset()
        where = layout.draw(rng, 2 * self.count)
        for pair in range(self.pairs):
            self.simulation.hide_spot(self._place_names[pair])
        for pair in range(self.count):
            self.appear(pair, where[pair], where[self.count + pair], rng)
        visible = np.tile(np.arange(self.pairs) < self.count, 2)
        return BlocksState(visible, rng.permutation(len(furniture.COLOURS))[: self.pairs])

    def appear(self, pair: int, block: layout.Floats, place: layout.Floats, rng: np.random.Generator) -> None:
        """Put a block and its place on the table."""
        self.simulation.put(pair, (*block, furniture.BLOCK), rng.uniform(-YAW, YAW))
        self.simulation.move_spot(self._place_names[pair], *place)

    def describe(self, features: Array) -> None:
        colours = furniture.COLOURS[self.state.colours]
        for rows in (self._blocks, self._places):
            features[rows, RGB] = colours
        features[self._places, POSITION] = [self.simulation.spot(name) for name in self._place_names]
        for block, place, colour in zip(self._block_names, self._place_names, colours, strict=True):
            self.simulation.paint(block, colour)
            self.simulation.paint(place, colour)

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
        return bool(self.teleport_rate and self.teleport(self.at_goal(observation))) or moved

    def vacancy(self) -> layout.Floats:
        return self.free_place(self.occupied())

    def occupied(self) -> layout.Floats:
        """(things, 2): where visible blocks and places are."""
        known = self.state.visible[self._blocks]
        places = [self.simulation.spot(name)[:2] for name in np.array(self._place_names)[known]]
        return layout.stack(self.simulation.blocks()[known, :2], places)


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
    yield from (Atom("clear", (block,)) for block, is_held in zip(blocks, held, strict=True) if not is_held)
    yield from (Atom("clear", (place,)) for place, taken in zip(places, np.any(at, axis=0), strict=True) if not taken)


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
    """Put what is in hand on its place; else fetch a block whose place is free."""
    now, open_goals = by_predicate(state), by_predicate(goal - state)["at"]
    clear = {item for (item,) in now["clear"]}
    for (held,) in now["holding"]:
        wanted = [place for block, place in open_goals if block == held and place in clear]
        elsewhere = [item for item in sorted(clear) if item.startswith("place")]
        return next((Action("place", (held, place)) for place in wanted + elsewhere), None)
    ready = [block for block, place in open_goals if block in clear and place in clear]
    return next((Action("pick", (block,)) for block in ready), None)


DOMAIN = shipped_domain("blocks")
SKILLS: dict[str, skills.Skill] = {"pick": skills.pick, "place": skills.place}

task, noisy = twins(Blocks, DOMAIN, label, goal, choose, SKILLS)

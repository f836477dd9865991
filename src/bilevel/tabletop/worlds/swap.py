"""Swap: as Blocks, but blocks may stand on each other's places at first, in about half of the episodes in a circle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import furniture, layout, skills
from bilevel.tabletop.measurements import holds, remembered
from bilevel.tabletop.observation import COLOURED, HAND, PLACED, POSITION, Bools
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.world_tasks import by_predicate, gripper, remembering, twins
from bilevel.tabletop.worlds.blocks import Blocks, BlocksState, goal, relations
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec

SPEC = Spec(HAND, {"block": COLOURED, "place": COLOURED, "table": PLACED})
MIDDLE = (0.0, 0.5)  # of where things lie; blocks are put aside as near to it as there is room
ON_TABLE = -1


class Swap(Blocks):
    """n blocks and n places. What is seen of the table is where the next block can be put aside."""

    scene_spec = SPEC

    def name_objects(self) -> dict[str, list[str]]:
        return {**super().name_objects(), "table": ["table"]}

    def arrange(self, rng: np.random.Generator) -> BlocksState:
        self.simulation.reset()
        where = layout.draw(rng, 2 * self.count)
        places = where[self.count :]
        for block, place in enumerate(draw_start(rng, self.count)):
            self.appear(block, where[block] if place == ON_TABLE else places[place], places[block], rng)
        return BlocksState(np.ones(len(self.slots), bool), rng.permutation(len(furniture.COLOURS))[: self.count])

    def describe(self, features: Array) -> None:
        super().describe(features)
        apart = layout.clear_of(layout.grid(), features[self._places, :2].astype(float))
        self._aside = apart[np.argsort(np.linalg.norm(apart - MIDDLE, axis=1))]  # where a block may be put aside

    def look(self, features: Array, agent: Array) -> None:
        blocks = features[self._blocks, POSITION]
        lying = blocks[~holds(agent, blocks), :2].astype(float)
        features[self.slots.row["table"], POSITION] = _free_spot(self._aside, lying)


@remembered
def _free_spot(spots: layout.Floats, blocks: layout.Floats) -> layout.Floats:
    """(3,): the first of the spots at which no block is."""
    return np.append(layout.clear_of(spots, blocks)[0], furniture.SPOT)


def draw_start(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """(blocks,): on whose place each block stands at first, or ON_TABLE; never on its own."""
    places = rng.permutation(count)
    if (places == np.arange(count)).all():
        places = np.roll(places, 1)
    places[places == np.arange(count)] = ON_TABLE
    if rng.random() < 0.5:  # no circles
        for block in range(count):
            follower = places[block]
            while follower not in (block, ON_TABLE):
                follower = places[follower]
            if follower == block:
                places[block] = ON_TABLE
    return places


# What is said of it


def _facts(scene: Scene, held: Bools, at: Bools) -> Iterator[Atom]:
    blocks, places = scene.roster.of_type("block"), scene.roster.of_type("place")
    yield from gripper(blocks, held)
    yield from (Atom("at", (blocks[block], places[place])) for block, place in np.argwhere(at))
    yield from (Atom("at", (blocks[block], "table")) for block in np.flatnonzero(~held & ~at.any(axis=1)))
    yield from (Atom("free", (places[place],)) for place in np.flatnonzero(~at.any(axis=0)))
    yield Atom("free", ("table",))  # there is always room


label = remembering(relations, _facts)


# What an expert does


def choose(state: Facts, goal: Facts) -> Action | None:
    """Put what is in hand on its place, or else aside; fetch a block whose place is free; else free a place."""
    now, open_goals = by_predicate(state), by_predicate(goal - state)["at"]
    ready = {block: place for block, place in open_goals if (place,) in now["free"]}
    blocked = {place for _, place in open_goals}
    for (held,) in now["holding"]:
        return Action("place", (held, ready[held])) if held in ready else Action("put-aside", (held, "table"))
    at = [pair for pair in now["at"] if pair[0] in ready] or [pair for pair in now["at"] if pair[1] in blocked]
    return next((Action("pick", pair) for pair in at), None)


SKILLS: dict[str, skills.Skill] = {
    "pick": lambda hand, block, surface: skills.pick(hand, block),
    "place": skills.place,
    "put-aside": skills.place,
}

task, noisy = twins(Swap, shipped_domain("swap"), label, goal, choose, SKILLS)

"""Swap: as Blocks, but blocks may stand on each other's places at first, in about half of the episodes in a circle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.tabletop import skills
from bilevel.tabletop.observation import Bools
from bilevel.tabletop.problems import shipped_domain
from bilevel.tabletop.tabletop import Options
from bilevel.tabletop.world_tasks import by_predicate, gripper, remembering, twins
from bilevel.tabletop.worlds.blocks import APART, CIRCLE, TANGLED, Blocks, goal, relations
from bilevel.tasks.scene import Scene


class Swap(Blocks):
    """n blocks and n places, told of in other words."""

    options: ClassVar[Options] = {"start": (TANGLED, APART, CIRCLE)}


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

task, noisy = twins(Swap, shipped_domain("swap"), label, goal, choose, skills.skilled(SKILLS))

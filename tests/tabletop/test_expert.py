"""Experts: what they would do next, in each kind of situation, and that their programs are proper policies."""

from __future__ import annotations

import random

import pytest

from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.semantics import applicable, ground, progress
from bilevel.tabletop.problems import names, shipped_domain, shuffled
from bilevel.tabletop.worlds import blocks


def random_start(count: int, rng: random.Random) -> tuple[Facts, Facts]:
    """Blocks on the table, on places or in the hand, as chance has it, and where they belong."""
    blocks, places = names("block", count), names("place", count)
    taken = dict(zip(shuffled(blocks, rng)[: rng.randint(0, count)], shuffled(places, rng), strict=False))
    held = set(shuffled(blocks, rng)[: rng.randint(0, 1)]) - set(taken)
    state = {Atom("at", pair) for pair in taken.items()} | {Atom("holding", (block,)) for block in held}
    state |= {Atom("clear", (item,)) for item in {*blocks, *places} - {*taken, *taken.values(), *held}}
    goal = {Atom("at", pair) for pair in zip(blocks, places, strict=True)}
    return frozenset(state if held else state | {Atom("gripper-free")}), frozenset(goal)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_sorting_solves_every_tangle_with_applicable_actions(count: int) -> None:
    domain, rng = shipped_domain("blocks"), random.Random(count)
    for _ in range(50):
        state, goal = random_start(count, rng)
        for _ in range(4 * count):
            if goal <= state:
                break
            chosen = blocks.choose(state, goal)
            assert chosen is not None
            step = ground(domain.schemas[chosen.name], chosen.arguments)
            assert step is not None
            assert applicable(state, step)
            state = progress(state, step.outcomes[0])
        assert goal <= state

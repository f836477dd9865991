"""Swap: Blocks that begin on each other's places, in other words."""

from __future__ import annotations

from bilevel.symbolic.domain import Atom
from bilevel.tabletop.worlds import blocks, swap


def test_a_block_that_stands_on_another_ones_place_at_first_is_at_it() -> None:
    tangled, same = swap.Swap(3), blocks.Blocks(3, start="tangled")
    for seed in range(5):
        observation, _ = tangled.reset(seed=seed)
        scene = tangled.slots.scene(observation)
        facts, in_blocks = swap.label(scene), blocks.label(same.slots.scene(same.reset(seed=seed)[0]))
        on_places = {fact for fact in facts if fact.predicate == "at" and fact.terms[1] != "table"}
        assert on_places == {fact for fact in in_blocks if fact.predicate == "at"}
        on_table = {fact.terms[0] for fact in facts - on_places if fact.predicate == "at"}
        assert all(Atom("clear", (block,)) in in_blocks for block in on_table)
        assert len(on_table) + len(on_places) == 3

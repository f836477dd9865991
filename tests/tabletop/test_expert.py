"""Experts: what they would do next, in each kind of situation, and that their programs are proper policies."""

from __future__ import annotations

import random

import pytest

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.semantics import applicable, ground, progress
from bilevel.tabletop.problems import names, shipped_domain, shuffled
from bilevel.tabletop.worlds import blocks, colour, gacha, swap


def atoms(text: str) -> Facts:
    return frozenset(Atom(name, tuple(terms)) for name, *terms in (fact.split() for fact in text.split(",") if fact))


def action(text: str) -> Action | None:
    name, *arguments = text.split()
    return None if name == "none" else Action(name, tuple(arguments))


GOAL = "at block1 place1, at block2 place2"


@pytest.mark.parametrize(
    ("state", "next_action"),
    [
        ("gripper-free, clear block1, clear place1, clear block2, clear place2", "pick block1"),
        ("gripper-free, at block1 place1, clear block2, clear place2", "pick block2"),
        ("holding block2, clear block1, clear place1, clear place2", "place block2 place2"),
        ("holding block2, at block1 place2, clear place1", "put-aside block2 table"),
        ("gripper-free, at block1 place2, clear place1, clear block2", "take block1 place2"),
        ("gripper-free, at block1 place2, at block2 place1", "take block1 place2"),  # to free a place
        ("holding block1, at block2 place1, clear place2", "put-aside block1 table"),
        ("gripper-free, at block3 place1, clear block1, at block2 place2", "take block3 place1"),
        ("holding block3, clear block1, clear place1, at block2 place2", "put-aside block3 table"),
        ("gripper-free, at block1 place1, at block2 place2", "none"),
    ],
)
def test_sorting_blocks(state: str, next_action: str) -> None:
    assert blocks.choose(atoms(state), atoms(GOAL)) == action(next_action)


COLOURS = "tray-colour tray1 red, tray-colour tray2 blue, free table"


@pytest.mark.parametrize(
    ("state", "next_action"),
    [
        ("gripper-free, unknown b, on b table, free platform", "pick b table"),
        ("holding b, unknown b, free platform", "place b platform"),
        ("gripper-free, unknown b, on b platform", "press b button platform"),
        ("gripper-free, colour-of b blue, on b platform", "pick b platform"),
        ("gripper-free, colour-of b blue, on b table, free platform", "pick b table"),
        ("holding b, colour-of b blue, free platform", "place-goal b tray2 blue"),
        ("gripper-free, colour-of b blue, achieved-goal b, free platform", "none"),
        ("gripper-free, unknown b, on b platform, unknown c, on c table", "press b button platform"),
        ("holding b, unknown b, unknown c, on c platform", "put-aside b table"),
    ],
)
def test_colouring_blocks(state: str, next_action: str) -> None:
    assert colour.choose(atoms(f"{COLOURS}, {state}"), atoms("achieved-goal b, achieved-goal c")) == action(next_action)


@pytest.mark.parametrize(
    ("state", "next_action"),
    [
        ("gripper-free, opened box, clear box", "close box"),
        ("gripper-free, closed box, clear box", "roll box button"),
        ("gripper-free, closed box, in b box, colour-of b red", "open box"),
        ("gripper-free, opened box, in b box, colour-of b red", "pick b box"),
        ("holding b, opened box, clear box, colour-of b red", "place-goal b tray1 red"),
        ("gripper-free, closed box, clear box, colour-of b red, achieved-goal red", "none"),
        ("gripper-free, closed box, clear box, colour-of b blue, achieved-goal blue", "roll box button"),
    ],
)
def test_rolling_colours(state: str, next_action: str) -> None:
    assert gacha.choose(atoms(f"{COLOURS}, {state}"), atoms("achieved-goal red")) == action(next_action)


@pytest.mark.parametrize(
    ("state", "next_action"),
    [
        ("gripper-free, at block1 place2, at block2 place1", "pick block1 place2"),  # to free a place
        ("holding block1, at block2 place1, free place2", "put-aside block1 table"),
        ("gripper-free, at block1 table, at block2 place1, free place2", "pick block2 place1"),
        ("holding block2, at block1 table, free place1, free place2", "place block2 place2"),
        ("gripper-free, at block1 table, at block2 place2, free place1", "pick block1 table"),
        ("gripper-free, at block1 place1, at block2 place2", "none"),
    ],
)
def test_swapping_blocks(state: str, next_action: str) -> None:
    assert swap.choose(atoms(f"{state}, free table"), atoms(GOAL)) == action(next_action)


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

"""Experts: what they would do next, in each kind of situation, and that their programs are proper policies."""

from __future__ import annotations

import pytest

from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.semantics import applicable, ground, progress
from bilevel.tabletop.problems import shipped_domain, training_problems
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
        ("gripper-free, clear block1, at block1 place1, clear block2, clear place2", "pick block2"),
        ("holding block2, clear block1, clear place1, clear place2", "place block2 place2"),
        ("holding block2, clear block1, at block1 place2, clear place1", "place block2 place1"),  # out of the way
        ("gripper-free, clear block1, at block1 place2, clear place1, clear block2", "pick block1"),
        ("gripper-free, clear block1, clear block2, at block1 place1, at block2 place2", "none"),
        ("holding block1, clear block2, at block2 place1, at block2 place2", "none"),  # nowhere to put it
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


def test_sorting_solves_the_training_problems_with_applicable_actions() -> None:
    domain = shipped_domain("blocks")
    for problem in training_problems("blocks"):
        state, steps = problem.state, 0
        while not problem.goal <= state:
            chosen = blocks.choose(state, problem.goal)
            assert chosen is not None
            step = ground(domain.schemas[chosen.name], chosen.arguments)
            assert step is not None
            assert applicable(state, step)
            state, steps = progress(state, step.outcomes[0]), steps + 1
            assert steps <= 4 * len(problem.goal)

"""Families: how seeds grow, which goals there are, and what is the same up to names."""

from __future__ import annotations

import pytest
from notation import facts

from bilevel.rules.small_problems import (
    grow,
    grown_problems,
    parse_counts,
    small_problems,
    symmetries,
)
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.symbolic.pddl import parse_problem
from bilevel.symbolic.semantics import substitute_all
from bilevel.tabletop.problems import shipped_domain, training_problems

BLOCKS = shipped_domain("blocks")


def blocks(objects: str = "b1 - block l1 - place", init: str = "(clear b1) (clear l1) (gripper-free)") -> Problem:
    text = f"(define (problem p) (:domain blocks) (:objects {objects}) (:init {init}) (:goal (at b1 l1)))"
    return parse_problem(text, BLOCKS)


def test_counts_are_read_from_text() -> None:
    assert parse_counts(["block=4", "colour+tray=3"]) == {"block": 4, "colour+tray": 3}
    for text in ("block", "=3", "block=", "block=-1", "block=x", "block=" + "9" * 5000):
        with pytest.raises(BadInput, match="is not a count of objects"):
            parse_counts([text])


def test_facts_over_several_growing_objects_go_together() -> None:
    placed = blocks(init="(at b1 l1) (clear b1) (gripper-free)")
    grown = grow(placed, BLOCKS, {"block": 3, "place": 2})
    assert {atom for atom in grown.state if atom.predicate == "at"} == facts("at b1 l1, at b2 l2")


def test_the_seed_s_own_objects_come_first_and_what_is_left_out_takes_its_facts_along() -> None:
    seed = blocks("b1 c - block l1 m - place", "(clear b1) (at c l1) (clear l1) (gripper-free)")
    assert grow(seed, BLOCKS, {"block": 1, "place": 1}).state == facts("clear b1, clear l1, gripper-free")
    three = grow(seed, BLOCKS, {"block": 3})
    assert three.state == seed.state | facts("at c1 l1")
    assert three.objects["c1"] == "block"


def test_goals_are_the_sets_of_facts_that_some_state_has() -> None:
    pair = grow(blocks(), BLOCKS, {"block": 2, "place": 2})
    ((_, _, goals),) = small_problems([pair], [({}, pair)], BLOCKS, (), 100)
    assert goals == [facts("at b1 l1"), facts("at b1 l1, at b2 l2")]
    grown: list[tuple[dict[str, int], Problem]] = [({}, blocks()), ({}, pair)]
    assert [goals for *_, goals in small_problems([pair], grown, BLOCKS, (), 2)] == [None, None]


def test_symmetries_are_the_renamings_that_keep_the_state() -> None:
    problem = grow(blocks(), BLOCKS, {"block": 3, "place": 2})
    assert len(symmetries(problem)) == 6 * 2
    placed = grow(blocks(init="(at b1 l1) (clear b1) (gripper-free)"), BLOCKS, {"block": 3, "place": 2})
    pairs = facts("at b1 l1, at b3 l2")
    assert [substitute_all(pairs, names) for names in symmetries(placed)] == [pairs, facts("at b2 l2, at b3 l1")]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"blok": 2}, "no object of type 'blok'"),
        ({"block+plaice": 2}, "no object of type 'plaice'"),
        ({"block": 0}, "at least one object"),
        ({"block": 999_999_999, "place": 999_999_999}, "more than 300 sizes"),
    ],
)
def test_counts_that_make_no_sense_are_refused(counts: dict[str, int], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        grown_problems([blocks()], BLOCKS, counts)


def test_there_must_be_a_goal_and_an_object_to_clone() -> None:
    with pytest.raises(BadInput, match="no problem with a goal"):
        grown_problems([], BLOCKS, {})
    placeless = Problem("p", "blocks", {"b1": "block"}, frozenset(), facts("holding b1"))
    with pytest.raises(BadInput, match="no object of type 'place'"):
        grow(placeless, BLOCKS, {"place": 2})


def test_cloning_puts_no_block_in_two_places_and_no_two_blocks_in_one() -> None:
    small = grown_problems(training_problems("swap"), shipped_domain("swap"), {"block": 3, "place": 3})
    assert {(len(problem.objects), size["place"]) for size, problem in small} >= {(3, 1), (7, 3)}
    for _, problem in small:
        at = [atom.terms for atom in problem.state if atom.predicate == "at"]
        taken = [place for _, place in at if place != "table"]
        assert len(at) == len({block for block, _ in at})
        assert len(taken) == len(set(taken))

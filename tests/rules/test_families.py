"""Families: how seeds grow, which goals there are, and what is the same up to names."""

from __future__ import annotations

from importlib.resources import files
from itertools import permutations

import pytest

from bilevel.rules.families import (
    Family,
    at_rest,
    check_family,
    distinct_goals,
    goals_of,
    grow,
    parse_counts,
    sizes,
    symmetries,
)
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Atom, BadInput, Facts, Problem
from bilevel.symbolic.pddl import parse_problem, read_domain
from bilevel.symbolic.semantics import substitute_all

BLOCKS = read_domain(str(files("bilevel.tabletop") / "worlds" / "blocks.pddl"))
COLOUR = read_domain(str(files("bilevel.tabletop") / "worlds" / "colour.pddl"))


def blocks(objects: str = "b1 - block l1 - place", init: str = "(clear b1) (clear l1) (gripper-free)") -> Problem:
    text = f"(define (problem p) (:domain blocks) (:objects {objects}) (:init {init}) (:goal (at b1 l1)))"
    return parse_problem(text, BLOCKS)


def facts(*texts: str) -> Facts:
    return frozenset(Atom(name, tuple(terms)) for name, *terms in (text.split() for text in texts))


def test_counts_are_read_from_text() -> None:
    assert parse_counts(["block=4", "colour+tray=3"]) == {"block": 4, "colour+tray": 3}
    for text in ("block", "=3", "block=", "block=-1", "block=x", "block=" + "9" * 5000):
        with pytest.raises(BadInput, match="is not a count of objects"):
            parse_counts([text])


def test_sizes_begin_with_the_fewest_objects() -> None:
    assert sizes({"block": 2, "place": 2}) == [
        {"block": 1, "place": 1},
        {"block": 1, "place": 2},
        {"block": 2, "place": 1},
        {"block": 2, "place": 2},
    ]
    assert sizes({}) == [{}]


def test_a_clone_has_the_facts_of_the_last() -> None:
    grown = grow(blocks(), BLOCKS, {"block": 3, "place": 2})
    assert grown.objects == {"b1": "block", "b2": "block", "b3": "block", "l1": "place", "l2": "place"}
    assert grown.state == facts("clear b1", "clear b2", "clear b3", "clear l1", "clear l2", "gripper-free")
    assert grown.goal == facts("at b1 l1")


def test_facts_over_several_growing_objects_go_together() -> None:
    placed = blocks(init="(at b1 l1) (clear b1) (gripper-free)")
    grown = grow(placed, BLOCKS, {"block": 3, "place": 2})
    assert {atom for atom in grown.state if atom.predicate == "at"} == facts("at b1 l1", "at b2 l2")


def test_the_seed_s_own_objects_come_first_and_what_is_left_out_takes_its_facts_along() -> None:
    seed = blocks("b1 c - block l1 m - place", "(clear b1) (at c l1) (clear l1) (gripper-free)")
    assert grow(seed, BLOCKS, {"block": 1, "place": 1}).state == facts("clear b1", "clear l1", "gripper-free")
    three = grow(seed, BLOCKS, {"block": 3})
    assert three.state == seed.state | facts("at c1 l1")
    assert three.objects["c1"] == "block"


def test_types_that_grow_together_stay_matched() -> None:
    seed = parse_problem(
        """(define (problem p) (:domain colour) (:objects b1 - block red - colour t1 - tray)
        (:init (unknown b1) (tray-colour t1 red)) (:goal (achieved-goal b1)))""",
        COLOUR,
    )
    grown = grow(seed, COLOUR, {"colour+tray": 3})
    assert {a for a in grown.state if a.predicate == "tray-colour"} == facts(
        "tray-colour t1 red", "tray-colour t2 red1", "tray-colour t3 red2"
    )


def every_at(blocks: int, places: int) -> list[Atom]:
    return [Atom("at", (f"b{b}", f"l{p}")) for b in range(1, blocks + 1) for p in range(1, places + 1)]


def test_goals_have_one_fact_for_each_first_argument() -> None:
    found = list(goals_of(every_at(2, 2)))
    assert len(found) == len(set(found)) == 3 * 3 - 1
    assert facts("at b1 l1", "at b2 l1") in found
    assert facts("at b1 l1", "at b1 l2") not in found


def test_goals_may_be_complete() -> None:
    complete = list(goals_of(every_at(2, 2), complete=True))
    assert len(complete) == 4
    assert all(len(goal) == 2 for goal in complete)


def test_symmetries_are_the_renamings_that_keep_the_state() -> None:
    problem = grow(blocks(), BLOCKS, {"block": 3, "place": 2})
    assert len(symmetries(problem, ())) == 6 * 2
    assert len(symmetries(problem, parse_rules("1: clear(b1) -> pick(b1)"))) == 2 * 2
    placed = grow(blocks(init="(at b1 l1) (clear b1) (gripper-free)"), BLOCKS, {"block": 3, "place": 2})
    pairs = facts("at b1 l1", "at b3 l2")
    assert [renaming(pairs) for renaming in symmetries(placed, ())] == [pairs, facts("at b2 l2", "at b3 l1")]


def test_distinct_goals_are_one_of_each_kind() -> None:
    problem = grow(blocks(), BLOCKS, {"block": 3, "place": 3})
    every = list(goals_of(every_at(3, 3)))

    def canonical(goal: Facts) -> list[Atom]:
        swaps = [
            dict(zip(("b1", "b2", "b3", "l1", "l2", "l3"), (*b, *p), strict=True))
            for b in permutations(("b1", "b2", "b3"))
            for p in permutations(("l1", "l2", "l3"))
        ]
        return min(sorted(substitute_all(goal, swap)) for swap in swaps)

    distinct = distinct_goals(every, symmetries(problem, ()))
    assert len(distinct) == len({tuple(canonical(goal)) for goal in every})
    assert {tuple(canonical(goal)) for goal in distinct} == {tuple(canonical(goal)) for goal in every}


def test_at_rest_means_facts_without_arguments_as_at_first() -> None:
    assert at_rest(facts("gripper-free", "clear b1"), facts("gripper-free"))
    assert not at_rest(facts("gripper-free", "clear b1"), facts("clear b1", "holding b2"))


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (Family((blocks(),), {"blok": 2}), "unknown type 'blok'"),
        (Family((blocks(),), {"block+plaice": 2}), "unknown type 'plaice'"),
        (Family((blocks(),), {"block": 0}), "at least one object"),
        (Family((blocks(),), {"block": 999_999_999, "place": 999_999_999}), "more than 10000 sizes"),
        (Family(()), "no seed problem has a goal"),
        (Family((Problem("p", "blocks", {}, frozenset(), facts("odd x")),)), "no predicate 'odd'"),
    ],
)
def test_a_family_that_makes_no_sense_is_refused(family: Family, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_family(family, BLOCKS)


def test_a_type_without_an_object_cannot_grow() -> None:
    placeless = Problem("p", "blocks", {"b1": "block"}, frozenset(), facts("holding b1"))
    with pytest.raises(BadInput, match="no object of type 'place'"):
        grow(placeless, BLOCKS, {"place": 2})

"""The nearest rule or action and what it lacks: golden answers, and agreement with every binding tried one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from notation import best_matches, facts

from bilevel.rules.nearest import how_it_differs, nearest_action, nearest_instances, why_not
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Parameter, Predicate
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import substitute
from bilevel.tabletop.problems import shipped_domain

BLOCKS = parse_rules(
    """
    variables: ?x - block, ?l - place
    1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
    2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)
    """
)
DOMAIN = shipped_domain("blocks")
OBJECTS = {"b1": "block", "b2": "block", "p1": "place", "p2": "place"}


def test_the_block_in_the_gripper_is_closer_than_any_other() -> None:
    state, goal = facts("holding b2, clear p1, clear b1"), facts("at b1 p1, at b2 p2")
    assert why_not(BLOCKS, DOMAIN, state, goal, OBJECTS) == (
        "rule 1 place(b2, p2): clear(p2) does not hold\nrule 2 pick(b1): gripper-free() does not hold"
    )


def test_achieved_goals_and_goals_nobody_speaks_about() -> None:
    at, clear = facts("at b1 p1"), facts("clear b1, clear b2")
    assert why_not(BLOCKS, DOMAIN, at, at, OBJECTS) == "every goal is achieved already"
    assert why_not((), DOMAIN, facts(""), at, OBJECTS) == "there are no rules"
    assert why_not(BLOCKS, DOMAIN, at, at | clear, OBJECTS, limit=1) == (
        "no rule speaks about an unachieved goal: clear(b1) (and 1 more)"
    )


def test_a_goal_that_waits_is_told() -> None:
    rules = parse_rules(
        """variables: ?x - block, ?y - block, ?z - block
        on(?x, ?y) after on(?y, ?z)
        1: holding(?x) & clear(?y) & goal on(?x, ?y) -> stack(?x, ?y)"""
    )
    state, objects = facts("holding a, clear b"), dict.fromkeys("abc", "block")
    assert why_not(rules, shipped_domain("blocksworld"), state, facts("on a b, on b c"), objects) == (
        "rule 1 stack(b, c): holding(b) does not hold (and 1 more unmet)\non(a, b) waits for on(b, c)"
    )


@pytest.mark.parametrize(
    ("rule", "state", "objects", "reason"),
    [
        ("clear(?l) & not clear(?m) & goal at(?x, ?l) -> go(?m)", "clear p1, clear p2", OBJECTS, "must be absent"),
        ("clear(?l) & goal at(?x, ?l) -> go(?l, ?m)", "clear p1", {"p1": "place"}, "?l and ?m are both p1"),
        ("at(?y, ?l) & goal at(?x, ?l) -> go(?l)", "", OBJECTS, "at(?y, p1) does not hold"),
        ("goal at(?x, ?l) -> go(?m)", "", {"b1": "block"}, "no place is left for ?m"),
        ("clear(?y) & goal at(?x, ?l) -> go()", "clear p1", OBJECTS, "clear(?y) does not hold"),
    ],
)
def test_every_kind_of_condition_may_lack(rule: str, state: str, objects: dict[str, str], reason: str) -> None:
    rules = parse_rules(f"variables: ?x - block, ?y - block, ?l - place, ?m - place\n1: {rule}")
    assert why_not(rules, DOMAIN, facts(state), facts("at b1 p1"), objects).endswith(reason)


def test_a_state_with_many_facts_still_gets_its_answer() -> None:
    count = 20_000
    objects = {f"b{i:05}": "block" for i in range(count)} | {f"p{i:05}": "place" for i in range(count)}
    goal = frozenset(Atom("at", (f"b{i:05}", f"p{i:05}")) for i in range(count))
    state = frozenset(Atom("clear", (name,)) for name in objects if name != "p19999") | facts("holding b19999")
    assert why_not(BLOCKS, DOMAIN, state, goal, objects, limit=1) == (
        "rule 1 place(b19999, p19999): clear(p19999) does not hold"
    )


SMALL = Domain(
    "small",
    {
        f"p{arity}": Predicate(f"p{arity}", tuple(Parameter(f"?{i}", "object") for i in range(arity)))
        for arity in range(3)
    },
    {},
)


def atoms(*terms: str) -> st.SearchStrategy[Atom]:
    term = st.sampled_from(terms)
    return st.lists(term, max_size=2).map(lambda terms: Atom(f"p{len(terms)}", tuple(terms)))


@given(
    st.frozensets(atoms("?x", "?y", "a"), max_size=4),
    st.frozensets(atoms("?x", "?y", "a"), max_size=2),
    st.frozensets(atoms("a", "b", "c"), max_size=8),
    st.frozensets(atoms("a", "b", "c"), max_size=4),
)
def test_no_binding_comes_closer(conditions: Facts, goals: Facts, state: Facts, goal: Facts) -> None:
    text = " & ".join([*map(str, sorted(conditions)), *(f"goal {g}" for g in sorted(goals))])
    (rule,) = parse_rules(f"1: {text} -> act()")
    objects = dict.fromkeys("abc", "object")
    assume(not best_matches([rule], SMALL, state, goal, objects))
    (miss,) = nearest_instances([rule], SMALL, state, goal, objects)
    counts = [unmet(rule, values, state, goal) for values in product("abc", repeat=len(rule.variables))]
    assert (miss.unmet_goals, len(miss.missing)) == min((goals, facts + goals) for facts, goals in counts)


def unmet(rule: Rule, values: tuple[str, ...], state: Facts, goal: Facts) -> tuple[int, int]:
    """How many facts and goals the rule lacks when its variables have these values."""
    binding = dict(zip((v.name for v in rule.variables), values, strict=True))
    return (
        sum(substitute(atom, binding) not in state for atom in rule.state_condition),
        sum(substitute(atom, binding) not in goal - state for atom in rule.goal_condition),
    )


# Changes that no action explains

DELIVERY = parse_domain("""
(define (domain delivery)
  (:requirements :strips :typing :negative-preconditions)
  (:types parcel spot)
  (:predicates (free) (lying ?p - parcel) (carrying ?p - parcel) (at ?p - parcel ?s - spot) (empty ?s - spot) (wet))
  (:action pick :parameters (?p - parcel)
    :precondition (and (free) (lying ?p))
    :effect (and (carrying ?p) (not (free)) (not (lying ?p))))
  (:action put :parameters (?p - parcel ?s - spot)
    :precondition (and (carrying ?p) (empty ?s) (not (wet)))
    :effect (and (at ?p ?s) (free) (not (carrying ?p)) (not (empty ?s)))))
""")
PARCELS = {"p1": "parcel", "p2": "parcel", "s1": "spot", "s2": "spot"}
CARRIED = "carrying p1, lying p2, empty s1, empty s2"
LYING = "free, lying p1, lying p2, empty s1, empty s2"


@pytest.mark.parametrize(
    ("before", "after", "action", "lacks"),
    [
        (CARRIED, "at p1 s2, lying p2, empty s1, empty s2, free", "put p1 s2", "empty(s2) did not become false"),
        (CARRIED, "at p1 s2, lying p2, empty s1", "put p1 s2", "free() did not become true"),
        (
            "carrying p1, lying p2, empty s1",
            "at p1 s2, lying p2, empty s1, free",
            "put p1 s2",
            "empty(s2) did not hold before",
        ),
        (CARRIED + ", wet", "at p1 s2, lying p2, empty s1, free, wet", "put p1 s2", "wet() held before"),
        (LYING, "carrying p2, lying p1, empty s1", "pick p2", "empty(s2) changed as well"),
    ],
)
def test_the_nearest_action_and_what_it_lacks(before: str, after: str, action: str, lacks: str) -> None:
    name, *arguments = action.split()
    found = nearest_action(DELIVERY, facts(before), facts(after), PARCELS)
    assert found is not None
    assert (found.action, str(found.lacks)) == (Action(name, tuple(arguments)), lacks)
    assert how_it_differs(DELIVERY, found.action, facts(before), facts(after)) == lacks


def test_what_nature_chose_is_not_lacking() -> None:
    domain = parse_domain("""
    (define (domain dice) (:types die number) (:predicates (shows ?d - die ?n - number) (thrown ?d - die) (loud))
      (:action throw :parameters (?d - die) :effect (and (thrown ?d) (exists (?n - number) (shows ?d ?n)))))
    """)
    objects = {"d": "die", "two": "number", "six": "number"}
    found = nearest_action(domain, facts(""), facts("thrown d, shows d six, loud"), objects)
    assert found is not None
    assert str(found.lacks) == "loud() changed as well"


@pytest.mark.parametrize("after", [CARRIED + ", at p2 s1, wet", CARRIED + ", wet", CARRIED])
def test_no_action_is_near_to_what_none_has_a_part_in(after: str) -> None:
    assert nearest_action(DELIVERY, facts(CARRIED), facts(after), PARCELS) is None

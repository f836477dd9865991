"""The engine chooses exactly what the definition says, with either executor."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bilevel.rules.engine import RuleEngine
from bilevel.rules.matching import Match, matches_in_order
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Facts, Problem
from bilevel.symbolic.pddl import parse_domain
from engine_cases import engine_for, follow, random_domain, random_facts, random_objects, random_rule


@pytest.mark.parametrize("is_compiled", [True, False])
@given(seed=st.integers(0, 2**32))
@example(seed=7_005_557)  # a rule without outputs whose paths have two lengths
@settings(max_examples=150, deadline=None)
def test_engine_agrees_with_the_definition(seed: int, is_compiled: bool) -> None:
    follow(seed, updates=12, is_compiled=is_compiled)


@pytest.mark.parametrize("seed", range(20))
def test_renaming_objects_renames_the_instances(seed: int) -> None:
    rng = random.Random(seed)
    domain = random_domain(rng)
    rules = [random_rule(rng, domain) for _ in range(3)]
    objects = random_objects(rng)
    state, goal = random_facts(rng, domain, objects, 14), random_facts(rng, domain, objects, 6)
    names = [name for name in objects if name != "c0"]
    renamed = dict(zip(names, rng.sample(names, len(names)), strict=True)) | {"c0": "c0"}

    def rename(facts: Facts) -> Facts:
        return frozenset(Atom(f.predicate, tuple(renamed[t] for t in f.terms)) for f in facts)

    def instances(matches: Iterator[Match]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        return {(str(m.rule), tuple(sorted(m.binding.items()))) for m in matches}

    before = matches_in_order(rules, domain, state, goal, objects)
    after = matches_in_order(
        rules, domain, rename(state), rename(goal), {renamed[o]: kind for o, kind in objects.items()}
    )
    expected = {(rule, tuple((v, renamed[o]) for v, o in binding)) for rule, binding in instances(before)}
    assert instances(after) == expected


SHELF = parse_domain(
    """
(define (domain shelf)
  (:types book reader)
  (:predicates (new ?b - book) (lent ?b - book ?r - reader) (read ?b - book ?r - reader))
  (:action lend :parameters (?b - book ?r - reader) :precondition (new ?b) :effect (and (lent ?b ?r) (not (new ?b)))))
"""
)
VARIABLES = "variables: ?b - book, ?c - book, ?d - book, ?r - reader\n"


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("order", ["drawn", "ascending", "descending"])
def test_the_first_of_many_is_found_whenever_their_names_came(order: str, is_compiled: bool) -> None:
    rng = random.Random(0)
    names = [f"b{number}" for number in rng.sample(range(100_000), 2500)]
    known, later = names[:1000], sorted(names[1000:], reverse=order == "descending")
    if order == "drawn":
        rng.shuffle(later)
    rules = parse_rules(f"{VARIABLES}2: new(?b) & goal read(?b, ?r) -> lend(?b, ?r)", domain=SHELF)
    goal = frozenset(Atom("read", (name, "r")) for name in names)
    state = frozenset(Atom("new", (name,)) for name in known)
    engine = engine_for(rules, SHELF, Problem("", "", {}, state, goal), is_compiled)
    for name in later:
        state |= {Atom("new", (name,))}
        if rng.random() < 0.7:
            state -= {min(state) if rng.random() < 0.5 else rng.choice(sorted(state))}
        engine.follow(state)
        match = engine.choose()
        assert match is not None
        assert match.action == Action("lend", (min(state).terms[0], "r"))


@pytest.mark.parametrize("is_compiled", [True, False])
def test_pairs_come_and_go(is_compiled: bool) -> None:
    rng = random.Random(1)
    rules = parse_rules(f"{VARIABLES}1: lent(?b, ?r) & not read(?b, ?r) -> lend(?b, ?r)", domain=SHELF)
    engine = engine_for(rules, SHELF, Problem("", "", {}, NO_FACTS, NO_FACTS), is_compiled)
    facts = NO_FACTS
    for _ in range(1000):
        facts ^= {Atom(rng.choice(["lent", "read"]), (f"b{rng.randrange(20)}", f"r{rng.randrange(20)}"))}
        engine.follow(facts)
        unread = [terms for name, terms in facts if name == "lent" and Atom("read", terms) not in facts]
        match = engine.choose()
        assert (match and match.action) == (Action("lend", min(unread)) if unread else None)


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(
    ("conditions", "head"),
    [
        (
            "lent(?b, ?r) & lent(?c, ?r) & lent(?d, ?r) & not lent(?b, ?c) & not lent(?c, ?d) & not lent(?b, ?d)",
            "?b, ?r",
        ),
        ("lent(?b, ?r) & not read(?c, ?d) & not read(?b, ?d)", "?b, ?c"),
    ],
)
def test_a_rule_with_too_many_combinations_is_named(
    conditions: str, head: str, is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bilevel.rules.engine.rule_engine.MOST_WORK", 10_000)
    text = f"{VARIABLES}\n1: {conditions} -> lend({head})".replace("not lent(?b, ?c)", "not read(?b, ?c)")
    state = frozenset(Atom("lent", (f"b{number}", "r")) for number in range(200))
    state |= {Atom("read", (f"b{one}", f"b{other}")) for one in range(200) for other in range(200)}
    problem = Problem("", "", {f"b{n}": "book" for n in range(200)}, state, NO_FACTS)
    with pytest.raises(BadInput, match=r"some\.rules:3: .* too many combinations"):
        engine_for(parse_rules(text, "some.rules"), SHELF, problem, is_compiled).choose()


def test_too_many_paths_are_an_error_that_names_the_predicate(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = parse_domain(
        """(define (domain roads) (:predicates (at ?x) (road ?x ?y)) (:action go :parameters (?x ?y)
        :precondition (and (at ?x) (road ?x ?y)) :effect (and (at ?y) (not (at ?x)))))"""
    )
    rules = parse_rules("1: at(?x) & road>(?x, ?y, ?z) & road(?x, ?y) & goal at(?z) -> go(?x, ?y)")
    roads = frozenset(Atom("road", (str(n), str(n + 1))) for n in range(9))
    monkeypatch.setattr("bilevel.rules.derived.MOST_PATHS", 40)
    problem = Problem("", "", dict.fromkeys(map(str, range(10)), "object"), roads, frozenset({Atom("at", ("9",))}))
    with pytest.raises(BadInput, match="'road' begin in more than 40 ways"):
        RuleEngine(rules, domain, problem)

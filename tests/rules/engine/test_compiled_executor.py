"""The compiled executor where it has ways of its own: large sets, new names, views that are let go of."""

from __future__ import annotations

import random

import pytest

from bilevel.compiled import find
from bilevel.rules.engine import RuleEngine
from bilevel.rules.engine.compiled_executor import CompiledExecutor
from bilevel.rules.engine.numbering import COMPILED
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import NO_FACTS, Atom
from bilevel.symbolic.pddl import parse_domain

if not find(COMPILED):
    pytest.skip("the compiled executor is not built", allow_module_level=True)

DOMAIN = parse_domain(
    """
(define (domain shelf)
  (:types book reader)
  (:predicates (new ?b - book) (lent ?b - book ?r - reader) (read ?b - book ?r - reader) (open))
  (:action lend :parameters (?b - book ?r - reader) :precondition (new ?b) :effect (and (lent ?b ?r) (not (new ?b))))
  (:action shut :parameters (?b - book) :precondition (open) :effect (and (not (open)) (new ?b))))
"""
)
LEND = "variables: ?b - book, ?r - reader\n2: new(?b) & goal read(?b, ?r) -> lend(?b, ?r)"
SHUT_OR_LEND = f"{LEND}\n1: open() & new(?b) -> shut(?b)"


def engine_for(text: str, state: frozenset[Atom], goal: frozenset[Atom]) -> tuple[RuleEngine, CompiledExecutor]:
    engine = RuleEngine(parse_rules(text), DOMAIN, state, goal, {})
    assert isinstance(engine.executor, CompiledExecutor)
    return engine, engine.executor


@pytest.mark.parametrize("order", ["drawn", "ascending", "descending"])
def test_the_first_of_many_is_found_whenever_their_names_came(order: str) -> None:
    rng = random.Random(0)
    names = [f"b{number}" for number in rng.sample(range(100_000), 2500)]
    known, later = names[:1000], sorted(names[1000:], reverse=order == "descending")
    if order == "drawn":
        rng.shuffle(later)
    goal = frozenset(Atom("read", (name, "r")) for name in names)
    engine, _ = engine_for(LEND, frozenset(Atom("new", (name,)) for name in known), goal)
    new = set(known)
    for name in later:
        engine.add(Atom("new", (name,)))
        new.add(name)
        if rng.random() < 0.7:
            gone = min(new) if rng.random() < 0.5 else rng.choice(sorted(new))
            engine.remove(Atom("new", (gone,)))
            new.discard(gone)
        assert engine.choose() == (0, (min(new), "r"))


def test_pairs_come_and_go() -> None:
    rng = random.Random(1)
    rule = "variables: ?b - book, ?r - reader\n1: lent(?b, ?r) & not read(?b, ?r) -> lend(?b, ?r)"
    engine, _ = engine_for(rule, NO_FACTS, NO_FACTS)
    facts: set[Atom] = set()
    for step in range(6000):
        fact = Atom(rng.choice(["lent", "read"]), (f"b{rng.randrange(60)}", f"r{rng.randrange(60)}"))
        (engine.remove if fact in facts else engine.add)(fact)
        facts ^= {fact}
        assert engine.holds(fact) == (fact in facts)
        if step % 20 == 0:
            unread = [terms for name, terms in facts if name == "lent" and Atom("read", terms) not in facts]
            assert engine.choose() == ((0, min(unread)) if unread else None)


def test_views_of_rules_that_are_not_asked_are_let_go_and_built_again() -> None:
    goal = frozenset(Atom("read", (f"b{number}", "r")) for number in range(200))
    engine, executor = engine_for(SHUT_OR_LEND, frozenset({Atom("new", ("b7",))}), goal)
    executor.it.rest_after(10)
    assert engine.choose() == (1, ("b7", "r"))
    assert executor.it.awake == 1
    engine.add(Atom("open"))
    for number in range(2000):
        (engine.add if number // 200 % 2 else engine.remove)(Atom("new", (f"b{number % 200}",)))
        if number % 400 > 200:
            assert (engine.choose() or (None,))[0] == 0
    assert executor.it.awake == 1
    engine.remove(Atom("open"))
    engine.remove(Atom("new", ("b0",)))
    assert engine.choose() == (1, ("b1", "r"))
    assert executor.it.awake == 2


def test_a_rule_is_planned_when_those_before_it_do_not_apply() -> None:
    goal = frozenset({Atom("read", ("b", "r"))})
    engine, executor = engine_for(SHUT_OR_LEND, frozenset({Atom("open"), Atom("new", ("b",))}), goal)
    assert executor.it.awake == 0
    assert engine.choose() == (0, ("b",))
    assert executor.it.awake == 1
    engine.remove(Atom("open"))
    assert engine.choose() == (1, ("b", "r"))
    assert executor.it.awake == 2

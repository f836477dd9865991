"""Closures say what follows from their predicate, in every part that reads rules."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from notation import facts

from bilevel.rules.derived import can_be_chained, closures_in, with_closures
from bilevel.rules.explanation import FORMATS
from bilevel.rules.learning import subsumes
from bilevel.rules.nearest import why_not
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules, parse_rules
from bilevel.rules.verify import Answer, verify
from bilevel.symbolic.domain import Atom, BadInput, Problem
from bilevel.tabletop.problems import shipped_domain

DOMAIN = shipped_domain("blocksworld")
VARIABLES = "variables: ?b - block, ?b2 - block, ?b3 - block, ?b4 - block\n\n"
DIG = (
    "1: clear(?b) & on(?b, ?b2) & on+(?b2, ?b3) & hand-empty() & goal clear(?b3) -> unstack(?b, ?b2)\n"
    "2: clear(?b) & on(?b, ?b2) & hand-empty() & goal clear(?b2) -> unstack(?b, ?b2)\n"
    "3: holding(?b) & goal clear(?b2) -> put-down(?b)\n"
)


def rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(VARIABLES + text, "f", DOMAIN)


def slowly(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    found = set(pairs)
    while new := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= new
    return found


@pytest.mark.parametrize("seed", range(50))
def test_a_closure_is_all_that_follows(seed: int) -> None:
    rng = random.Random(seed)
    pairs = {(rng.choice("abcdef"), rng.choice("abcdef")) for _ in range(rng.randint(0, 8))}
    state = frozenset(Atom("on", pair) for pair in pairs) | facts("clear a, on-table b")
    expected = state | {Atom("on+", pair) for pair in slowly(pairs)}
    assert with_closures(state, frozenset({"on"})) == expected
    assert with_closures(state, frozenset()) == state


def test_only_relations_within_a_type_can_be_chained() -> None:
    assert can_be_chained(DOMAIN.predicates["on"], DOMAIN)
    assert not can_be_chained(DOMAIN.predicates["clear"], DOMAIN)
    blocks = shipped_domain("blocks")
    assert not can_be_chained(blocks.predicates["at"], blocks)


def test_a_rule_file_with_closures_is_read_back() -> None:
    found = rules(DIG)
    assert closures_in(found, DOMAIN) == {"on"}
    assert parse_rules(format_rules(found, []), "g", DOMAIN) == found
    assert "on+(?b2, ?b3)" in format_rules(found, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1: clear+(?b) -> put-down(?b)", "unknown predicate 'clear+'"),
        ("1: on+(?b) -> put-down(?b)", "'on+' has 2 arguments, not 1"),
        ("1: holding(?b) & goal on+(?b, ?b2) -> put-down(?b)", "unknown predicate 'on+'"),
    ],
)
def test_what_is_no_closure_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        rules(text)
    assert message in str(error.value)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_closures(name: str) -> None:
    with_closure, without = rules(DIG), rules(DIG.replace("on+", "on"))
    assert FORMATS[name](with_closure) != FORMATS[name](without)


TOWER = "on-table a, on b a, on c b, on d c, clear d, hand-empty"
BLOCKS = dict.fromkeys("abcd", "block")


def test_rules_with_closures_are_verified() -> None:
    problem = Problem("p", "blocksworld", BLOCKS, facts(TOWER), facts("clear a"))
    assert verify(rules(DIG), DOMAIN, problem).answer is Answer.SOLVED
    assert verify(rules(DIG.replace("on+", "on")), DOMAIN, problem).answer is Answer.REFUTED


def test_why_not_knows_what_follows() -> None:
    state = facts(TOWER.replace("hand-empty", "holding e"))
    told = why_not(rules(DIG)[:1], DOMAIN, state, facts("clear a"), {**BLOCKS, "e": "block"})
    assert told == "rule 1 unstack(d, c): hand-empty() does not hold"


def test_a_closure_subsumes_its_steps() -> None:
    general, one, two = (
        rules(f"1: clear(?b) & on(?b, ?b2) & {text} & hand-empty() & goal clear(?b3) -> unstack(?b, ?b2)")[0]
        for text in ("on+(?b2, ?b3)", "on(?b2, ?b3)", "on(?b2, ?b4) & on(?b4, ?b3)")
    )
    assert subsumes(general, one, DOMAIN)
    assert subsumes(general, two, DOMAIN)
    assert not subsumes(one, general, DOMAIN)
    assert not subsumes(two, general, DOMAIN)

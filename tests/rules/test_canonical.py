"""One form for all rules that are equal up to the names of their variables, and different forms for others."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.rules.rule import Rule, canonical
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Action, Atom, Domain, Facts, Parameter, is_variable

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

TYPES = {"block": "item", "box": "item", "item": "object", "button": "object"}
DOMAIN = Domain("d", {}, {}, TYPES, {"home": "item"})
KINDS = (*TYPES, "object")


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Rules over few predicates and many variables, so that variables often look alike."""
    names = [f"?v{i}" for i in range(draw(st.integers(1, 6)))]
    kinds = draw(st.lists(st.sampled_from(KINDS[:3]), min_size=len(names), max_size=len(names)))
    terms = st.sampled_from([*names, "home"])
    atoms = st.one_of(
        st.builds(lambda a, b: Atom("r", (a, b)), terms, terms), st.builds(lambda a: Atom("p", (a,)), terms)
    )
    parts = st.frozensets(atoms, max_size=6)
    unequal = st.frozensets(st.builds(lambda a, b: Atom(EQUALITY, (a, b)), terms, terms), max_size=2)
    head = tuple(draw(st.lists(terms, max_size=2)))
    state, goal, absent = draw(parts), draw(st.frozensets(atoms, max_size=2)), draw(parts | unequal)
    used = {t for atom in state | goal | absent for t in atom.terms} | set(head)
    variables = tuple(Parameter(n, k) for n, k in zip(names, kinds, strict=True) if n in used)
    return Rule(draw(st.integers(1, 3)), variables, state, goal, Action("act", head), absent)


def renamed(rule: Rule, rng: random.Random) -> Rule:
    """The same rule with other names for its variables, listed in another order."""
    old = [variable.name for variable in rule.variables]
    rng.shuffle(old)
    new = [f"?{name}" for name in rng.sample("abcdefghijk", len(old))]
    return rule.renamed(dict(zip(old, new, strict=True)))


@PATIENT
@given(rules(), st.randoms(use_true_random=False))
def test_renaming_changes_nothing(rule: Rule, rng: random.Random) -> None:
    assert canonical(renamed(rule, rng), DOMAIN) == canonical(rule, DOMAIN)


@PATIENT
@given(rules())
def test_a_canonical_rule_stays_as_it_is(rule: Rule) -> None:
    once = canonical(rule, DOMAIN)
    assert canonical(once, DOMAIN) == once


@PATIENT
@given(rules())
def test_the_canonical_rule_is_the_rule_renamed(rule: Rule) -> None:
    """There is a renaming, one to one and keeping types, between the two: found by trying."""
    form = canonical(rule, DOMAIN)
    assert form.priority == rule.priority
    assert is_isomorphic(rule, form)


@PATIENT
@given(rules(), rules())
def test_rules_that_are_not_renamings_of_each_other_have_different_forms(one: Rule, other: Rule) -> None:
    other = replace(other, priority=one.priority)
    assert (canonical(one, DOMAIN) == canonical(other, DOMAIN)) == is_isomorphic(one, other)


def is_isomorphic(one: Rule, other: Rule) -> bool:
    """Whether some renaming makes one rule the other, by trying all that keep types."""
    types = {v.name: v.type for v in other.variables}

    def search(rest: list[Parameter], names: dict[str, str]) -> bool:
        if not rest:
            found = one.renamed(names)
            return replace(found, variables=()) == replace(other, variables=())
        choices = [n for n, kind in types.items() if kind == rest[0].type and n not in names.values()]
        return any(search(rest[1:], {**names, rest[0].name: name}) for name in choices)

    return len(one.variables) == len(other.variables) and search(list(one.variables), {})


def plain(rule: Rule) -> Rule:
    """The rule without the order of its variables and of the two sides of its inequalities."""
    pairs = {tuple(sorted(atom.terms)) for atom in rule.negative_condition - rule.absent}
    return replace(rule, variables=(), negative_condition=rule.absent | {Atom(EQUALITY, pair) for pair in pairs})


@PATIENT
@given(rules(), st.randoms(use_true_random=False))
def test_the_sides_of_an_inequality_may_be_exchanged(rule: Rule, rng: random.Random) -> None:
    inequalities = sorted(rule.negative_condition - rule.absent)
    turned = [atom._replace(terms=atom.terms[::-1]) for atom in inequalities if rng.random() < 0.5]
    other = replace(rule, negative_condition=rule.negative_condition | frozenset(turned))
    form = canonical(other, DOMAIN)
    assert form == canonical(rule, DOMAIN)
    assert len(form.negative_condition - form.absent) <= len(inequalities)


def symmetric(number: int) -> Rule:
    """Many variables that are all alike."""
    names = [f"?v{i}" for i in range(number)]
    state = frozenset(Atom("p", (name,)) for name in names)
    return Rule(1, tuple(Parameter(n, "block") for n in names), state, NO_FACTS, Action("act"))


def test_variables_that_are_all_alike_are_not_tried_in_every_order() -> None:
    assert canonical(symmetric(12), DOMAIN) == canonical(renamed_backwards(symmetric(12)), DOMAIN)


def test_alike_groups_of_variables_are_not_tried_in_every_order() -> None:
    """Passengers who are all in their own car: each pair is as good as any other."""
    pairs = [(f"?a{i}", f"?b{i}") for i in range(7)]
    variables = tuple(Parameter(name, "block") for pair in pairs for name in pair)
    rule = Rule(1, variables, frozenset(Atom("r", pair) for pair in pairs), NO_FACTS, Action("act"))
    assert canonical(rule, DOMAIN) == canonical(renamed_backwards(rule), DOMAIN)


def renamed_backwards(rule: Rule) -> Rule:
    names = [variable.name for variable in rule.variables]
    return rule.renamed(dict(zip(names, reversed(names), strict=True)))


def facts(*atoms: str) -> Facts:
    return frozenset(Atom(a.split()[0], tuple(a.split()[1:])) for a in atoms)


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        (("block", "block", "item"), ["?b", "?b2", "?i"]),
        (("block", "box", "button"), ["?b", "?bo", "?bu"]),
        (("object", "object", "item"), ["?x", "?x2", "?i"]),
    ],
)
def test_variables_are_named_after_their_types(kinds: tuple[str, ...], names: list[str]) -> None:
    variables = tuple(Parameter(name, kind) for name, kind in zip(("?k", "?l", "?m"), kinds, strict=True))
    rule = Rule(1, variables, NO_FACTS, NO_FACTS, Action("act", ("?k", "?l", "?m")))
    assert [v.name for v in canonical(rule, DOMAIN).variables] == names
    assert all(map(is_variable, names))


def test_the_actions_arguments_come_first() -> None:
    variables = (Parameter("?a", "block"), Parameter("?b", "block"), Parameter("?c", "block"))
    rule = Rule(1, variables, facts("r ?a ?b", "p ?c"), NO_FACTS, Action("act", ("?c", "?b")))
    assert str(canonical(rule, DOMAIN)) == "1: p(?b) & r(?b3, ?b2) -> act(?b, ?b2)"


def test_types_tell_variables_apart() -> None:
    one = Rule(1, (Parameter("?a", "block"),), facts("p ?a"), NO_FACTS, Action("act"))
    other = replace(one, variables=(Parameter("?a", "box"),))
    assert canonical(one, DOMAIN) != canonical(other, DOMAIN)


def test_a_state_condition_is_not_a_goal_and_not_an_absent_fact() -> None:
    variables = (Parameter("?a", "block"),)
    forms = {
        canonical(Rule(1, variables, facts("p ?a"), NO_FACTS, Action("act")), DOMAIN),
        canonical(Rule(1, variables, NO_FACTS, facts("p ?a"), Action("act")), DOMAIN),
        canonical(Rule(1, variables, NO_FACTS, NO_FACTS, Action("act"), facts("p ?a")), DOMAIN),
    }
    assert len(forms) == 3

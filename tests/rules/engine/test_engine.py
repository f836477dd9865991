"""The engine chooses exactly what the definition says, with either executor."""

from __future__ import annotations

import random

import pytest

from bilevel.rules.engine import RuleEngine
from bilevel.rules.matching import Match, best_matches
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Parameter, Predicate, Schema
from engine_cases import TYPES, follow, random_domain, random_facts, random_objects, random_rule
from executors import executor as executor

pytestmark = pytest.mark.usefixtures("executor")


@pytest.mark.parametrize("block", range(6))
def test_engine_agrees_with_the_definition(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        follow(seed, updates=12)


@pytest.mark.parametrize(
    "name",
    [
        "view0",
        "add-x",
        "x-by-1",
        "sorted-by-size",
        "goal-p",
        "is-box",
        "rule-0",
        "choose",
        "a0",
        "hash",
        "class",
        "b_1",
        "b-1",
        "1st",
        "0-0",
        "-",
    ],
)
def test_names_in_the_domain_do_not_clash_with_names_in_the_program(name: str) -> None:
    parameter = Parameter("?x", "box")
    predicates = {p: Predicate(p, (parameter,)) for p in (name, "p", "b_1", "b-1")}
    outcome = Outcome(frozenset({Atom("p", ("?x",))}), frozenset({Atom(name, ("?x",))}))
    domain = Domain("names", predicates, {name: Schema(name, (parameter,), frozenset(), (outcome,))}, TYPES)
    variable = f"?{name}"
    rule = Rule(
        1,
        (Parameter(variable, "box"),),
        frozenset({Atom(name, (variable,))}),
        frozenset({Atom("p", (variable,))}),
        Action(name, (variable,)),
    )
    state, goal = frozenset({Atom(name, ("o1",)), Atom("b-1", ("o1",))}), frozenset({Atom("p", ("o1",))})
    engine = RuleEngine([rule], domain, state, goal, {"o1": "box"}, commit=True)
    assert engine.choose() == engine.server("p")("o1") == (0, ("o1",))
    engine.applier(domain.schemas[name], 0)("o1")
    assert engine.choose() is None
    assert engine.open_goals() == 0


def test_variables_that_are_spelt_alike_stay_apart() -> None:
    box = Parameter("?x", "box")
    predicates = {"p": Predicate("p", (box, box)), "q": Predicate("q", (box, box))}
    pair = (Parameter("?b-1", "box"), Parameter("?b_1", "box"))
    outcome = Outcome(frozenset({Atom("q", ("?b-1", "?b_1"))}), frozenset())
    domain = Domain("names", predicates, {"act": Schema("act", pair, frozenset(), (outcome,))}, TYPES)
    atoms = frozenset({Atom("p", ("?b-1", "?b_1"))}), frozenset({Atom("q", ("?b-1", "?b_1"))})
    rule = Rule(1, pair, *atoms, Action("act", ("?b-1", "?b_1")))
    state, goal = frozenset({Atom("p", ("o1", "o2"))}), frozenset({Atom("q", ("o1", "o2")), Atom("q", ("o2", "o1"))})
    engine = RuleEngine([rule], domain, state, goal, {"o1": "box", "o2": "box"}, commit=True)
    assert engine.choose() == (0, ("o1", "o2"))
    engine.applier(domain.schemas["act"], 0)("o1", "o2")
    assert engine.open_goals() == 1


@pytest.mark.parametrize("seed", range(60))
def test_renaming_objects_renames_the_best_instances(seed: int) -> None:
    rng = random.Random(seed)
    domain = random_domain(rng)
    rules = [random_rule(rng, domain) for _ in range(3)]
    objects = random_objects(rng)
    state, goal = random_facts(rng, domain, objects, 14), random_facts(rng, domain, objects, 6)
    names = [name for name in objects if name != "c0"]
    renamed = dict(zip(names, rng.sample(names, len(names)), strict=True)) | {"c0": "c0"}

    def rename(facts: Facts) -> Facts:
        return frozenset(Atom(f.predicate, tuple(renamed[t] for t in f.terms)) for f in facts)

    def instances(matches: list[Match]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        return {(str(m.rule), tuple(sorted(m.binding.items()))) for m in matches}

    before = best_matches(rules, domain, state, goal, objects)
    after = best_matches(rules, domain, rename(state), rename(goal), {renamed[o]: kind for o, kind in objects.items()})
    expected = {(rule, tuple((v, renamed[o]) for v, o in binding)) for rule, binding in instances(before)}
    assert instances(after) == expected

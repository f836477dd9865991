"""Handed one state after another, the policy always does what the definition says of that state alone."""

from __future__ import annotations

import random

import pytest
from notation import best_matches, facts, golden_rules

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Predicate,
    Schema,
)
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import bind_outcome, ground_action, progress
from bilevel.tabletop.problems import shipped_domain

TYPES = {"box": "thing", "disc": "thing", "thing": "object", "spot": "object"}
KINDS = ("box", "disc", "thing", "spot", "object")


def random_atoms(rng: random.Random, domain: Domain, terms: dict[str, str], most: int) -> Facts:
    atoms = set()
    for _ in range(rng.randint(0, most)):
        predicate = domain.predicates[rng.choice(sorted(domain.predicates))]
        fitting = [[t for t, kind in terms.items() if domain.is_subtype(kind, p.type)] for p in predicate.parameters]
        if all(fitting):
            atoms.add(Atom(predicate.name, tuple(map(rng.choice, fitting))))
    return frozenset(atoms)


def random_domain(rng: random.Random) -> Domain:
    predicates = {
        f"p{i}": Predicate(f"p{i}", tuple(Parameter(f"?{k}", rng.choice(KINDS)) for k in range(arity)))
        for i, arity in enumerate([0, 1, 1, 2, 2])
    }
    nothing = Outcome(NO_FACTS, NO_FACTS)
    schemas = {}
    for name in ("do-a", "do-b"):
        parameters = tuple(Parameter(f"?v{i}", rng.choice(KINDS)) for i in range(rng.randint(1, 3)))
        schemas[name] = Schema(name, parameters, NO_FACTS, (nothing,))
    return Domain("random", predicates, schemas, TYPES, {"here": "spot"})


def random_rule(rng: random.Random, domain: Domain, negative: bool) -> Rule:
    schema = domain.schemas[rng.choice(sorted(domain.schemas))]
    types = {p.name: p.type for p in schema.parameters} | {"?s": rng.choice(KINDS), "?t": rng.choice(KINDS)}
    terms = {**types, "here": "spot"}
    state, goal = random_atoms(rng, domain, terms, 3), random_atoms(rng, domain, terms, 2)
    used = {t for atom in state | goal for t in atom.terms} | {p.name for p in schema.parameters}
    known = {name: kind for name, kind in terms.items() if name in used}
    absent = random_atoms(rng, domain, known, 2) if negative else NO_FACTS
    variables = [name for name in types if name in used]
    if len(variables) > 1 and rng.random() < 0.3:
        absent |= {Atom(EQUALITY, tuple(rng.sample(variables, 2)))}
    return Rule(
        priority=rng.randint(1, 3),
        variables=tuple(Parameter(name, types[name]) for name in variables),
        state_condition=state,
        goal_condition=goal,
        action=Action(schema.name, tuple(p.name for p in schema.parameters)),
        negative_condition=absent,
    )


def assert_agrees(policy: RulePolicy, state: Facts, goal: Facts, objects: dict[str, str]) -> bool:
    """Compare with the definition; whether some rule applied."""
    expected = next(
        iter(best_matches(policy.rules, policy.domain, state, goal, {**policy.domain.constants, **objects})), None
    )
    assert policy.choose(state, goal) == (expected.action if expected else None)
    assert policy.explain(state, goal) == expected
    return expected is not None


@pytest.mark.parametrize("block", range(4))
def test_the_policy_agrees_with_the_definition_whatever_happens(block: int) -> None:
    """Facts come and go by themselves, goals grow, objects appear, episodes begin anew."""
    applied = 0
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        domain = random_domain(rng)
        open_world = rng.random() < 0.5
        rules = [random_rule(rng, domain, negative=not open_world) for _ in range(3)]
        policy = RulePolicy(sorted(rules, key=lambda rule: rule.priority), domain, open_world=open_world)
        objects = {name: rng.choice(KINDS[:4]) for name in "uvw"}
        everything = {**objects, **domain.constants, **{name: rng.choice(KINDS[:4]) for name in "xyz"}}
        state, goal = random_atoms(rng, domain, everything, 14), random_atoms(rng, domain, everything, 6)
        policy.reset(state, goal, objects)
        for _ in range(12):
            applied += assert_agrees(policy, state, goal, objects)
            state ^= random_atoms(rng, domain, everything, 4)
            if rng.random() < 0.15:
                goal |= random_atoms(rng, domain, everything, 3)
            if rng.random() < 0.15:
                name = rng.choice("xyz")
                objects[name] = everything[name]
                policy.declare({name: everything[name]})
            if rng.random() < 0.05:
                policy.reset(state, goal, objects)
    assert applied > 100


def test_the_policy_follows_gacha_with_teleports_growing_goals_and_new_blocks() -> None:
    domain = shipped_domain("gacha")
    objects = {f"c{i}": "colour" for i in range(3)} | {f"t{i}": "tray" for i in range(3)}
    objects |= {"box": "box", "button": "button"}
    policy = RulePolicy(golden_rules("gacha"), domain)
    for seed in range(5):
        rng = random.Random(seed)
        nature = Nature(domain, objects, rng)
        state = facts("gripper-free, clear box, closed box, tray-colour t0 c0, tray-colour t1 c1, tray-colour t2 c2")
        goal = facts("achieved-goal c0")
        policy.reset(state, goal, objects)
        while True:
            while goal <= state and len(goal) < 3:
                goal |= {Atom("achieved-goal", (f"c{len(goal)}",))}
            if goal <= state:
                break
            assert assert_agrees(policy, state, goal, nature.objects)
            action = policy.choose(state, goal)
            assert action is not None
            move = nature.move(domain.schemas[action.name])
            state = progress(state, bind_outcome(ground_action(domain, action).outcomes[move.outcome], move.binding))
            policy.declare(nature.objects)
            achieved = sorted(fact for fact in state if fact.predicate == "achieved-goal")
            if achieved and rng.random() < 0.1:
                state -= {rng.choice(achieved)}  # someone took the block away
        assert policy.choose(state, goal) is None
        assert policy.explain(state, goal) is None


def test_the_choice_stays_the_same_while_state_and_goal_do() -> None:
    policy = RulePolicy(golden_rules("blocks"), shipped_domain("blocks"))
    state = facts("gripper-free, clear a, clear b, clear l, clear m")
    goal = facts("at a l, at b m")
    policy.reset(state, goal, {"a": "block", "b": "block", "l": "place", "m": "place"})
    assert [policy.choose(state, goal) for _ in range(3)] == [Action("pick", ("a",))] * 3
    holding = facts("holding b, clear a, clear l, clear m")
    assert policy.choose(holding, goal) == Action("place", ("b", "m"))
    assert policy.choose(state, goal) == Action("pick", ("a",))


def test_the_policy_can_be_asked_without_a_reset_and_knows_the_domains_constants() -> None:
    domain = parse_domain(
        "(define (domain d) (:types town) (:constants home - town) (:predicates (lit) (done))"
        "(:action go :parameters (?t - town) :effect (done)))"
    )
    rules = parse_rules("variables: ?t - town\n1: lit() & goal done() -> go(?t)")
    policy = RulePolicy(rules, domain)
    assert policy.choose(facts("lit"), facts("done")) == Action("go", ("home",))
    policy.declare({"away": "town"})
    assert policy.choose(facts("lit"), facts("done")) == Action("go", ("away",))
    policy.reset(facts("lit"), facts("done"))
    assert policy.choose(facts("lit"), facts("done")) == Action("go", ("home",))


def test_rules_that_test_for_absence_are_refused_in_an_open_world() -> None:
    domain = shipped_domain("blocks")
    absent = parse_rules("variables: ?b - block\n1: clear(?b) & not holding(?b) & gripper-free() -> pick(?b)")
    with pytest.raises(BadInput, match=r"absent fact holding\(\?b\)"):
        RulePolicy(absent, domain)
    closed = RulePolicy(absent, domain, open_world=False)
    closed.declare({"a": "block"})
    assert closed.choose(facts("clear a, gripper-free"), NO_FACTS) == Action("pick", ("a",))
    assert closed.choose(facts("clear a, holding a, gripper-free"), NO_FACTS) is None


def test_other_rules_are_followed_from_the_next_choice_on_unless_they_are_refused() -> None:
    domain = shipped_domain("blocks")
    state, goal = facts("clear b, clear p, gripper-free"), facts("at b p")
    policy = RulePolicy(parse_rules("variables: ?b - block\n1: clear(?b) -> pick(?b)", domain=domain), domain)
    policy.reset(state, goal, {"b": "block", "p": "place"})
    assert policy.choose(state, goal) == Action("pick", ("b",))
    policy.follow(parse_rules("variables: ?b - block, ?p - place\n1: goal at(?b, ?p) -> place(?b, ?p)", domain=domain))
    assert policy.choose(state, goal) == Action("place", ("b", "p"))
    with pytest.raises(BadInput, match="absent fact"):
        policy.follow(parse_rules("variables: ?b - block\n1: clear(?b) & not holding(?b) -> pick(?b)", domain=domain))
    assert policy.choose(state, goal) == Action("place", ("b", "p"))


def test_an_object_of_a_type_nobody_declared_passes_no_check() -> None:
    """Of `clear(a)` alone nobody knows whether a is a block; `holding(a)` says so."""
    rules = parse_rules("variables: ?b - block\n1: clear(?b) -> pick(?b)\n2: holding(?b) -> pick(?b)")
    policy = RulePolicy(rules, shipped_domain("blocks"))
    assert policy.choose(facts("clear a"), NO_FACTS) is None
    assert policy.choose(facts("holding a"), NO_FACTS) == Action("pick", ("a",))
    policy.declare({"a": "block"})
    assert policy.choose(facts("clear a"), NO_FACTS) == Action("pick", ("a",))


def test_inequalities_are_welcome_in_an_open_world() -> None:
    rules = parse_rules("variables: ?b - block, ?c - block\n1: clear(?b) & clear(?c) & ?b != ?c -> pick(?b)")
    policy = RulePolicy(rules, shipped_domain("blocks"))
    policy.declare({"a": "block", "b": "block"})
    assert policy.choose(facts("clear a"), NO_FACTS) is None
    assert policy.choose(facts("clear a, clear b"), NO_FACTS) == Action("pick", ("a",))

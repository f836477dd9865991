"""Random domains, rules, states and updates on which engine and definition are compared, decision by decision."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from bilevel.rules.derived import PATH, can_be_chained, closure, path_predicates, static_predicates
from bilevel.rules.engine import RuleEngine, effects_of, rule_engine
from bilevel.rules.matching import Match, matches_in_order, output_variables
from bilevel.rules.rule import GoalOrder, Rule
from bilevel.symbolic.domain import (
    EQUALITY,
    Action,
    Atom,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Predicate,
    Problem,
    Schema,
)

TYPES = {"box": "thing", "disc": "thing", "thing": "object", "spot": "object"}
KINDS = ["box", "disc", "thing", "spot", "object"]


def random_domain(rng: random.Random) -> Domain:
    predicates = {}
    for number in range(rng.randint(2, 5)):
        arity = rng.choice([0, 1, 1, 2, 2, 2, 3])
        parameters = tuple(Parameter(f"?{i}", rng.choice(KINDS)) for i in range(arity))
        predicates[f"p-{number}"] = Predicate(f"p-{number}", parameters)
    domain = Domain("random", predicates, {}, TYPES, {"c0": "spot"})
    schemas = {}
    for number in range(rng.randint(1, 3)):
        parameters = tuple(Parameter(f"?v{i}", rng.choice(KINDS)) for i in range(rng.randint(0, 3)))
        outcome = Outcome(random_atoms(rng, domain, parameters, 3), random_atoms(rng, domain, parameters, 3))
        schemas[f"do-{number}"] = Schema(f"do-{number}", parameters, frozenset(), (outcome,))
    return Domain("random", predicates, schemas, TYPES, {"c0": "spot"})


def random_atoms(rng: random.Random, domain: Domain, parameters: Sequence[Parameter], most: int) -> Facts:
    """Atoms over the parameters and the constant whose types may fit."""
    atoms = set()
    for _ in range(rng.randint(0, most)):
        predicate = domain.predicates[rng.choice(sorted(domain.predicates))]
        terms = []
        for wanted in predicate.parameters:
            fitting = [p.name for p in parameters if related(domain, p.type, wanted.type)]
            if domain.is_subtype("spot", wanted.type) and rng.random() < 0.15:
                fitting = ["c0"]
            terms.append(rng.choice(fitting) if fitting else None)
        if None not in terms:
            atoms.add(Atom(predicate.name, tuple(t for t in terms if t is not None)))
    return frozenset(atoms)


def related(domain: Domain, one: str, other: str) -> bool:
    return domain.is_subtype(one, other) or domain.is_subtype(other, one)


def random_rule(rng: random.Random, domain: Domain) -> Rule:
    variables = tuple(Parameter(f"?{name}", rng.choice(KINDS)) for name in "xyzuv"[: rng.randint(1, 5)])
    schema = domain.schemas[rng.choice(sorted(domain.schemas))]
    arguments = []
    for parameter in schema.parameters:
        fitting = [v.name for v in variables if related(domain, v.type, parameter.type)]
        arguments.append(rng.choice([*fitting, *(["c0"] if rng.random() < 0.1 else [])] or ["c0"]))
    state = with_random_closures(rng, domain, random_atoms(rng, domain, variables, 4))
    goal = random_atoms(rng, domain, variables, 2)
    used = {t for atom in state | goal for t in atom.terms} | set(arguments)
    negative = {
        a for a in sorted(random_atoms(rng, domain, variables, 2)) if set(a.terms) <= used and rng.random() < 0.5
    }
    negative = set(with_random_closures(rng, domain, frozenset(negative)))
    names = [v.name for v in variables if v.name in used]
    if len(names) > 1 and rng.random() < 0.3:
        negative.add(Atom(EQUALITY, tuple(rng.sample(names, 2))))
    return Rule(
        priority=rng.randint(1, 3),
        variables=tuple(v for v in variables if v.name in used),
        state_condition=state,
        goal_condition=goal,
        action=Action(schema.name, tuple(arguments)),
        negative_condition=frozenset(negative),
    )


def with_random_closures(rng: random.Random, domain: Domain, atoms: Facts) -> Facts:
    """The atoms, some of them as closures where that makes sense."""

    def chained(atom: Atom) -> bool:
        return can_be_chained(domain.predicates[atom.predicate], domain) and rng.random() < 0.3

    return frozenset(closure(atom) if chained(atom) else atom for atom in sorted(atoms))


def with_random_path(rng: random.Random, domain: Domain, rule: Rule) -> Rule:
    """The rule, perhaps with a path in place of one of its facts."""
    paths = path_predicates(domain)
    links = [atom for atom in sorted(rule.state_condition) if atom.predicate + PATH in paths]
    if not links or rng.random() < 0.5:
        return rule
    kind = paths[links[0].predicate + PATH].parameters[-1].type
    path = Atom(links[0].predicate + PATH, (*links[0].terms, "?there"))
    condition = rule.state_condition - {links[0]} | {path}
    return replace(rule, variables=(*rule.variables, Parameter("?there", kind)), state_condition=condition)


def random_orders(rng: random.Random, domain: Domain) -> tuple[GoalOrder, ...]:
    """Orders of goals, perhaps, with conditions that never change."""
    variables = tuple(Parameter(f"?{name}", rng.choice(KINDS)) for name in "xyz")
    orders = []
    for _ in range(rng.choice([0, 0, 1, 2])):
        goals = sorted(random_atoms(rng, domain, variables, 6))
        static = static_predicates(domain)
        condition = frozenset(a for a in random_atoms(rng, domain, variables, 1) if a.predicate in static)
        if len(goals) > 1:
            used = {term for atom in (*goals[:2], *condition) for term in atom.terms}
            named = tuple(variable for variable in variables if variable.name in used)
            later, earlier = rng.sample(goals[:2], 2)
            orders.append(GoalOrder(named, later, earlier, condition))
    return tuple(orders)


def random_facts(rng: random.Random, domain: Domain, objects: dict[str, str], most: int) -> Facts:
    facts = set()
    for _ in range(rng.randint(0, most)):
        predicate = domain.predicates[rng.choice(sorted(domain.predicates))]
        choices = [
            [o for o, kind in sorted(objects.items()) if domain.is_subtype(kind, parameter.type)]
            for parameter in predicate.parameters
        ]
        if all(choices):
            facts.add(Atom(predicate.name, tuple(rng.choice(c) for c in choices)))
    return frozenset(facts)


def random_objects(rng: random.Random) -> dict[str, str]:
    names = [f"o{i}" for i in range(rng.randint(1, 6))]
    rng.shuffle(names)
    return {"c0": "spot", **{name: rng.choice(KINDS[:4]) for name in names}}


def outputs(match: Match) -> tuple[int, tuple[str, ...]]:
    """What is compared of a match: which rule, of perhaps equal ones, and the values of its outputs."""
    return id(match.rule), tuple(match.binding[v] for v in output_variables(match.rule))


def follow(seed: int, updates: int, is_compiled: bool) -> None:
    """Compare engine and definition along one random sequence of actions, facts, goals and objects."""
    rng = random.Random(seed)
    domain = random_domain(rng)
    orders = random_orders(rng, domain)
    rules = [with_random_path(rng, domain, random_rule(rng, domain)) for _ in range(rng.choice([1, 2, 3, 4, 8]))]
    rules = [replace(rule, orders=orders) for rule in rules]
    fixed = static_predicates(domain) if orders else []
    objects = random_objects(rng)
    state, goal = random_facts(rng, domain, objects, 14), random_facts(rng, domain, objects, 6)
    engine = engine_for(rules, domain, Problem("", "", objects, state, goal), is_compiled)
    for _ in range(updates):
        matches = list(matches_in_order(rules, domain, state, goal, objects))
        expected = list(dict.fromkeys(map(outputs, matches)))
        match = engine.choose()
        assert (match and outputs(match)) == next(iter(expected), None), seed
        assert [outputs(match) for match in engine.matches()] == expected, seed
        assert engine.executor.open_goals == len(goal - state), seed
        engine.follow(state)  # after an action it is told what it knows already
        if matches and rng.random() < 0.5:
            state = apply(engine, domain, state, matches[0])
            continue
        if rng.random() < 0.2:
            name = f"o{rng.randint(0, 99)}"
            objects = {name: rng.choice(KINDS[:4]), **objects}
        state ^= frozenset(fact for fact in random_facts(rng, domain, objects, 3) if fact.predicate not in fixed)
        if rng.random() < 0.3:
            goal ^= random_facts(rng, domain, objects, 3)
        engine.follow(state, goal, objects)


def engine_for(rules: Sequence[Rule], domain: Domain, problem: Problem, is_compiled: bool) -> RuleEngine:
    """An engine with one of the executors."""
    with patch.object(rule_engine, "FEW_OBJECTS", -1 if is_compiled else sys.maxsize):
        return RuleEngine(rules, domain, problem)


def apply(engine: RuleEngine, domain: Domain, state: Facts, match: Match) -> Facts:
    added, deleted = effects_of(domain, match.action)
    engine.apply(added, deleted)
    return (state - deleted) | added

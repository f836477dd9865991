"""Random domains and rules with a single goal atom each, for tests against the definition."""

from __future__ import annotations

import random

from bilevel.rules.derived import can_be_chained, closure
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Predicate,
    Schema,
)

TYPES = {"box": "thing", "disc": "thing", "thing": "object", "spot": "object"}
OBJECTS = {"u": "box", "v": "box", "w": "disc", "x": "disc", "y": "spot", "z": "spot"}
KINDS = ("box", "thing", "spot", "object")


def random_atoms(rng: random.Random, domain: Domain, terms: dict[str, str], most: int) -> Facts:
    atoms = set()
    for _ in range(rng.randint(0, most)):
        predicate = domain.predicates[rng.choice(sorted(domain.predicates))]
        fitting = [[t for t, kind in terms.items() if domain.is_subtype(kind, p.type)] for p in predicate.parameters]
        if all(fitting):
            atoms.add(Atom(predicate.name, tuple(map(rng.choice, fitting))))
    return frozenset(atoms)


def random_domain(rng: random.Random) -> Domain:
    arities = [0, 1, 1, 2, 2]
    predicates = {
        f"p{i}": Predicate(f"p{i}", tuple(Parameter(f"?{k}", rng.choice(KINDS)) for k in range(arity)))
        for i, arity in enumerate(arities)
    }
    domain = Domain("random", predicates, {}, TYPES)
    schemas = {}
    for name in ("do-a", "do-b", "do-c"):
        terms = {f"?v{i}": rng.choice(KINDS) for i in range(rng.randint(1, 2))}
        negative = random_atoms(rng, domain, terms, 1)
        if len(terms) == 2 and rng.random() < 0.3:
            negative |= {Atom(EQUALITY, ("?v0", "?v1"))}
        outcome = Outcome(random_atoms(rng, domain, terms, 3), random_atoms(rng, domain, terms, 3))
        parameters = tuple(Parameter(name, kind) for name, kind in terms.items())
        schemas[name] = Schema(name, parameters, random_atoms(rng, domain, terms, 1), (outcome,), negative)
    return Domain("random", predicates, schemas, TYPES)


def random_rule(rng: random.Random, domain: Domain) -> Rule:
    """A rule with a single goal atom, or none, mostly one that asks for its action's precondition."""
    schema = domain.schemas[rng.choice(sorted(domain.schemas))]
    types = {p.name: p.type for p in schema.parameters} | {"?s": rng.choice(KINDS)}
    safe = rng.random() < 0.8
    state = random_atoms(rng, domain, types, 1) | (schema.precondition if safe else NO_FACTS)
    goal = frozenset(sorted(random_atoms(rng, domain, types, 3))[: rng.random() < 0.9])
    used = {t for atom in state | goal for t in atom.terms} | {p.name for p in schema.parameters}
    chained = [a for a in sorted(state - schema.precondition) if can_be_chained(domain.predicates[a.predicate], domain)]
    if chained and rng.random() < 0.5:
        state = state - {chained[0]} | {closure(chained[0])}
    return Rule(
        priority=rng.randint(1, 3),
        variables=tuple(Parameter(name, kind) for name, kind in types.items() if name in used),
        state_condition=state,
        goal_condition=goal,
        action=Action(schema.name, tuple(p.name for p in schema.parameters)),
        negative_condition=schema.negative_precondition if safe else NO_FACTS,
    )

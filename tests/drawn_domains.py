"""Any domain and problem that can be written, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, Outcome, Parameter, Predicate, Problem, Schema
from bilevel.symbolic.pddl import RESERVED

Draw = Callable[[st.SearchStrategy[Any]], Any]
# A busy machine is no error.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NOISE = st.sampled_from(
    ["", "(", ")", "-", "=", ";", ":", "?x", " ", "\n", "A", "(= (f a) 1)", "not", "(and)", "\0", "é"]
)
NAMES = st.from_regex(r"[a-zé0-9_@][a-z0-9_é.-]{0,6}", fullmatch=True).filter(lambda name: name not in RESERVED)


def draw_typed(draw: Draw, names: Sequence[str], types: dict[str, str]) -> dict[str, str]:
    return {name: draw(st.sampled_from([ROOT_TYPE, *types])) for name in names}


def draw_parameters(draw: Draw, prefix: str, types: dict[str, str]) -> tuple[Parameter, ...]:
    names = [f"?{prefix}{i}" for i in range(draw(st.integers(0, 3)))]
    return tuple(Parameter(name, kind) for name, kind in draw_typed(draw, names, types).items())


def draw_facts(draw: Draw, domain: Domain, terms: dict[str, str], most: int = 4) -> Facts:
    """Atoms whose arguments are of the very type declared or below."""
    facts = set()
    for _ in range(draw(st.integers(0, most)) if domain.predicates else 0):
        predicate = domain.predicates[draw(st.sampled_from([*domain.predicates]))]
        fitting = [[t for t, kind in terms.items() if domain.is_subtype(kind, p.type)] for p in predicate.parameters]
        if all(fitting):
            facts.add(Atom(predicate.name, tuple(draw(st.sampled_from(choices)) for choices in fitting)))
    return frozenset(facts)


def draw_outcome(draw: Draw, domain: Domain, terms: dict[str, str]) -> Outcome:
    chosen = draw_parameters(draw, "n", dict(domain.types))
    everything = {**terms, **{variable.name: variable.type for variable in chosen}}
    new = frozenset(variable.name for variable in chosen if "new" not in domain.predicates and draw(st.booleans()))
    return Outcome(draw_facts(draw, domain, everything), draw_facts(draw, domain, everything), chosen, new)


def draw_schema(draw: Draw, name: str, domain: Domain) -> Schema:
    parameters = draw_parameters(draw, "p", dict(domain.types))
    terms = {**domain.constants, **{parameter.name: parameter.type for parameter in parameters}}
    pair = st.lists(st.sampled_from([*terms]), min_size=2, max_size=2).map(tuple) if terms else st.nothing()
    equalities = st.frozensets(st.builds(Atom, st.just("="), pair), max_size=2) if terms else st.just(frozenset())
    outcomes = tuple(draw_outcome(draw, domain, terms) for _ in range(draw(st.integers(1, 3))))
    positive = draw_facts(draw, domain, terms) | draw(equalities)
    return Schema(name, parameters, positive, outcomes, draw_facts(draw, domain, terms) | draw(equalities))


@st.composite
def domains(draw: Draw) -> Domain:
    types: dict[str, str] = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=4)):
        if name != ROOT_TYPE:
            types[name] = draw(st.sampled_from([ROOT_TYPE, *types]))
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    predicates = {name: Predicate(name, draw_parameters(draw, "x", types)) for name in names}
    constants = draw_typed(draw, draw(st.lists(NAMES, unique=True, max_size=2)), types)
    domain = Domain(draw(NAMES), predicates, {}, types, constants)
    schemas = {name: draw_schema(draw, name, domain) for name in draw(st.lists(NAMES, unique=True, max_size=4))}
    events = {name: schemas.pop(name) for name in [*schemas][3:]}
    return Domain(domain.name, predicates, schemas, types, constants, events=events)


@st.composite
def problems(draw: Draw) -> tuple[Domain, Problem]:
    domain = draw(domains())
    names = [name for name in draw(st.lists(NAMES, unique=True, max_size=6)) if name not in domain.constants]
    objects = draw_typed(draw, names, dict(domain.types))
    terms = {**domain.constants, **objects}
    state, goal = draw_facts(draw, domain, terms, most=8), draw_facts(draw, domain, terms)
    return domain, Problem(draw(NAMES), domain.name, objects, state, goal)


def draw_mutated(draw: Draw, text: str) -> str:
    """The text with something wrong or unusual at one place or a few."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(NOISE) + text[start + draw(st.integers(0, 3)) :]
    return text

"""Written and read again, a value is the same; the bulk reader and the careful one agree; nothing crashes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import (
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Predicate,
    Problem,
    Schema,
)
from bilevel.symbolic.expressions import Misread
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.symbolic.pddl_parts import RESERVED
from bilevel.symbolic.pddl_problem import problem_from_text, problem_in_bulk
from bilevel.symbolic.plans import NaturesMove, Plan, parse_plan, write_plan

FUZZER = Path(__file__).parents[2] / "benchmarks" / "fuzz_pddl.py"

# A busy machine is no error.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Draw = Callable[[st.SearchStrategy[Any]], Any]
NAMES = st.from_regex(r"[a-zé0-9_@][a-z0-9_é.-]{0,6}", fullmatch=True).filter(lambda name: name not in RESERVED)
NOISE = st.sampled_from(
    ["", "(", ")", "-", "=", ";", ":", "?x", " ", "\n", "A", "(= (f a) 1)", "not", "(and)", "\0", "é"]
)


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


@settings(PATIENT, max_examples=150)
@given(problems())
def test_a_domain_and_a_problem_written_and_read_are_the_same(given_problem: tuple[Domain, Problem]) -> None:
    domain, problem = given_problem
    assert parse_domain(write_domain(domain)) == domain
    text = write_problem(problem, domain)
    assert parse_problem(text, domain) == problem
    assert problem_from_text(text, domain) == problem
    assert (problem_in_bulk(text, domain) == problem) == text.isascii()


@settings(PATIENT, max_examples=150)
@given(problems(), st.data())
def test_both_readers_agree_on_mutated_problems(given_problem: tuple[Domain, Problem], data: st.DataObject) -> None:
    domain, problem = given_problem
    text = write_problem(problem, domain)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + data.draw(NOISE) + text[start + data.draw(st.integers(0, 3)) :]
    in_bulk = problem_in_bulk(text, domain)
    try:
        with_care = problem_from_text(text, domain)
    except Misread:
        assert in_bulk is None
    else:
        assert in_bulk in (None, with_care)


def error_of(text: str) -> str | None:
    try:
        parse_domain(text)
    except BadInput as error:
        return str(error)
    return None


@settings(PATIENT)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    sections = "(:predicates (p)) (:action a :effect"
    for wrapped in (text, f"(define (domain d) {text})", f"(define (domain d) {sections} {text}))"):
        error = error_of(wrapped)
        assert error is None or re.fullmatch(r"<domain>:\d+:\d+: .+", error)


@settings(PATIENT)
@given(st.lists(st.sampled_from(["b1", "b2", "b-1"]), max_size=8), st.data())
def test_a_plan_written_and_read_is_the_same(names: list[str], data: st.DataObject) -> None:
    domain = parse_domain(
        "(define (domain d) (:predicates (p ?x)) (:action a :parameters (?x)"
        " :effect (oneof (p ?x) (exists (?n ?m) (and (new ?n) (p ?n) (p ?m))))))"
    )
    possible = [NaturesMove(0, {}), NaturesMove(1, {"?n": "n1", "?m": "b1"}), None]
    drawn = [data.draw(st.sampled_from(possible)) for _ in names]
    moves = {step: move for step, move in enumerate(drawn) if move is not None}
    plan = Plan([Action("a", (name,)) for name in names], moves)
    assert parse_plan(write_plan(plan), domain) == plan


def test_the_fuzzer_finds_nothing() -> None:
    run = subprocess.run([sys.executable, FUZZER, "--files", "1000", "--seed", "1"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1000 files" in run.stdout

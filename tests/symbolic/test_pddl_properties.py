"""Written and read again, a value is the same; the bulk reader and the careful one agree; nothing crashes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import Action, BadInput, Domain, Problem
from bilevel.symbolic.expressions import Misread
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.symbolic.pddl_problem import problem_from_text, problem_in_bulk
from bilevel.symbolic.plans import NaturesMove, Plan, parse_plan, write_plan
from drawn_domains import NAMES, Draw, domains, draw_facts, draw_typed

FUZZER = Path(__file__).parents[2] / "benchmarks" / "fuzz_pddl.py"

# A busy machine is no error.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NOISE = st.sampled_from(
    ["", "(", ")", "-", "=", ";", ":", "?x", " ", "\n", "A", "(= (f a) 1)", "not", "(and)", "\0", "é"]
)


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

"""Written and read again, a value is the same; nothing crashes."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import Action, BadInput, Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem, problem_from_text, write_domain, write_problem
from bilevel.symbolic.plans import NaturesMove, Plan, parse_plan, write_plan
from drawn_domains import PATIENT, problems


@settings(PATIENT, max_examples=150)
@given(problems())
def test_a_domain_and_a_problem_written_and_read_are_the_same(given_problem: tuple[Domain, Problem]) -> None:
    domain, problem = given_problem
    assert parse_domain(write_domain(domain)) == domain
    text = write_problem(problem, domain)
    assert parse_problem(text, domain) == problem
    assert problem_from_text(text, domain) == problem


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

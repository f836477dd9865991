"""Problems as integers: the compiled reader reads what the ordinary one reads, or leaves it to that one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.expressions import Misread
from bilevel.symbolic.pddl import parse_domain, problem_from_text, write_problem
from drawn_domains import PATIENT, draw_mutated, problems

reading = pytest.importorskip("bilevel.native.text")

DELIVERY = parse_domain(
    """(define (domain delivery)
      (:types truck drone - vehicle parcel vehicle - movable movable spot)
      (:constants depot - spot)
      (:predicates (at ?m - movable ?s - spot) (seen ?x) (between ?a ?b ?c - spot) (done))
      (:functions (total-cost) (distance ?a ?b - spot))
      (:action drive :parameters (?v - vehicle ?s - spot) :effect (at ?v ?s)))"""
)
TEXT = """
(define (problem one) (:domain delivery)
  (:objects t2 t1 - truck p1 - parcel a b - spot something)
  (:init (at t1 depot) (at p1 b) (seen something) (between b a depot) (between a b depot))
  (:goal (and (at p1 depot) (seen t1))))
"""


def read(text: str, domain: Domain = DELIVERY) -> Problem | None:
    """The problem that the compiled reader reads, if it does, which is then the one that the careful reader reads."""
    packed = reading.packed_problem(text.encode(), domain)
    if packed is None:
        return None
    problem = problem_from_text(text, domain)
    assert packed.unpacked == problem
    assert list(packed.unpacked.objects) == list(problem.objects)
    return problem


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(at t1 depot)", "( AT\tT1\r\nDepot ) ; comment (at\n"),
        ("(at t1 depot)", "(at t1 depot) (at t1 depot) (done) (done)"),
        ("(at t1 depot)", "(= (total-cost) 0) (= (distance a b) 3.5e-2) (at t1 depot)"),
        ("(and (at p1 depot) (seen t1))", "(and)"),
        ("a b - spot", "a b depot - spot"),
    ],
)
def test_what_is_plain_is_read(old: str, new: str) -> None:
    assert old in TEXT
    assert read(TEXT.replace(old, new)) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(at t1 depot)", "(at t1 p1)"),
        ("(at t1 depot)", "(at t1 nowhere)"),
        ("(at t1 depot)", "(not (at t1 a))"),
        ("(at p1 depot)", "(= t1 t1)"),
        ("t2 t1 - truck", "t1 t1 - truck"),
        ("t2 t1 - truck", "t1 - (either truck drone)"),
        ("a b - spot", "a b - spot depot - truck"),
        ("(:domain delivery)", "(:domain deliveries)"),
        ("(:objects", "(:init) (:goal (done)) (:objects"),
        ("something", "sömething"),
        ("(seen t1))))", "(seen t1)))) more"),
    ],
)
def test_what_is_not_plain_is_left_to_the_ordinary_reader(old: str, new: str) -> None:
    assert old in TEXT
    assert reading.packed_problem(TEXT.replace(old, new).encode(), DELIVERY) is None


@settings(PATIENT, max_examples=200)
@given(problems(), st.data())
def test_both_readers_agree(given_problem: tuple[Domain, Problem], data: st.DataObject) -> None:
    domain, problem = given_problem
    text = write_problem(problem, domain)
    if text.isascii():
        assert read(text, domain) == problem
    try:
        read(draw_mutated(data.draw, text), domain)
    except Misread as error:
        raise AssertionError("the compiled reader reads what the careful one refuses") from error

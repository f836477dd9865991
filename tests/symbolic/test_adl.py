"""What only planning reads, what it is compiled into, and what it refuses."""

from __future__ import annotations

import re

import pytest

from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_for_planning, write_domain

DOMAIN = """(define (domain d) (:types cup) (:constants red - cup) (:functions (f))
  (:predicates (p ?x - cup) (q ?x - cup) (near ?x ?y - cup) (done))
  {actions})"""
PROBLEM = "(define (problem p) (:domain d) (:objects {objects}) (:init {init}) (:goal {goal}))"


def compiled(
    actions: str = "", objects: str = "a b - cup", init: str = "(p a)", goal: str = "(done)", effect: str = ""
) -> tuple[Domain, Problem]:
    actions = actions or f"(:action act :parameters (?x - cup)\n    :effect {effect})"
    problem = PROBLEM.format(objects=objects, init=init, goal=goal)
    return parse_for_planning(DOMAIN.format(actions=actions), problem, "domain.pddl", "problem.pddl")


@pytest.mark.parametrize(
    ("goal", "ways"), [("(or (p a) (done))", 2), ("(exists (?x - cup) (p ?x))", 3), ("(imply (p a) (done))", 2)]
)
def test_goals_with_a_choice_are_refused(goal: str, ways: int) -> None:
    with pytest.raises(BadInput, match=rf"problem.pddl:1:\d+: goals with a choice are .* met in {ways} ways"):
        compiled(effect="(and (done) (p ?x))", goal=goal)


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        ("(when (p ?x))", "4:13: 'when' takes a condition and an effect, not 1"),
        ("(when (pp ?x) (done))", "4:20: undeclared predicate 'pp'"),
        ("(forall (?y - cop) (p ?y))", "4:27: unknown type 'cop'"),
        ("(exists (?y - cup) (when (p ?y) (q ?y)))", "4:13: 'when' is not supported"),
        ("(forall (?y - cup) (exists (?z - cup) (near ?y ?z)))", "4:32: '?z' is chosen twice in one outcome"),
    ],
)
def test_mistakes_are_named_with_their_place(effect: str, message: str) -> None:
    with pytest.raises(BadInput, match=rf"^domain.pddl:{re.escape(message)}"):
        compiled(effect=effect)


@pytest.mark.parametrize(
    "effect",
    [
        "(forall (?y - cup) (when (p ?y) (not (p ?y))))",
        "(forall (?y - cup) (oneof (p ?y) (q ?y)))",
        "(when (forall (?1 ?2 ?3 ?4 - cup) (near ?1 ?4)) (done))",
    ],
)
def test_what_would_never_end_is_refused(effect: str) -> None:
    with pytest.raises(BadInput, match=r"domain.pddl:4:1\d: .* more than \d+ (cases|outcomes)"):
        compiled(init="", objects=f"{' '.join(f'c{i}' for i in range(20))} - cup", effect=effect)


ADL_TEXT = """(define (domain d) (:requirements :adl) (:types lamp)
  (:predicates (lit ?l - lamp))
  (:action flip :parameters (?l - lamp) :effect (and (when (lit ?l) (not (lit ?l))) (when (not (lit ?l)) (lit ?l)))))"""


def test_a_domain_in_adl_keeps_its_text_for_planners_and_the_names_of_its_actions_for_all() -> None:
    domain = parse_domain(ADL_TEXT, adl=True)
    assert write_domain(domain) == ADL_TEXT
    assert [parameter.type for parameter in domain.schemas["flip"].parameters] == ["lamp"]


def test_mistakes_in_a_domain_are_pointed_at_in_adl_and_without() -> None:
    with pytest.raises(BadInput, match=r"^d.pddl:3:\d+: undeclared predicate 'litt'"):
        parse_domain(ADL_TEXT.replace("(not (lit ?l))) (when", "(not (litt ?l))) (when"), "d.pddl", adl=True)
    with pytest.raises(BadInput, match="'when' is not supported"):
        parse_domain(ADL_TEXT, "d.pddl")

"""What the PDDL readers accept, and what they make of it."""

from __future__ import annotations

import re

import pytest

from bilevel.symbolic.domain import Atom, Domain, Outcome, Parameter, Problem, Schema
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.pddl_reader import problem_from_text

OWN_DOMAINS = ["blocks", "colour", "gacha", "pick-place"]

DELIVERY = """
(define (domain delivery)
  (:requirements :strips)
  (:types truck drone - vehicle  parcel vehicle - movable  spot)
  (:constants depot - spot)
  (:predicates (at ?m - movable ?s - spot) (broken ?v - vehicle) (seen ?x) (done))
  (:functions (total-cost) - number (distance ?a ?b - spot) - number)
  (:action move
    :parameters (?v - vehicle ?from ?to - spot)
    :precondition (and (at ?v ?from) (not (= ?from ?to)) (and (not (broken ?v)) (= ?to depot)))
    :effect (and (at ?v ?to) (not (at ?v ?from)) (increase (total-cost) (distance ?from ?to)))))
"""


def domain_with(action: str) -> Domain:
    """A domain with two types, a few predicates and this action."""
    return parse_domain(
        "(define (domain d) (:types block colour) (:constants red - colour)"
        f" (:predicates (p) (q) (r) (hue ?x - block ?c - colour) (any ?x)) {action})"
    )


def outcomes(effect: str) -> tuple[Outcome, ...]:
    return domain_with(f"(:action a :parameters (?x - block) :effect {effect})").schemas["a"].outcomes


def does(add: str = "", delete: str = "") -> Outcome:
    """An outcome that adds and deletes predicates without arguments."""
    return Outcome(frozenset(map(Atom, add.split())), frozenset(map(Atom, delete.split())))


def test_types_constants_and_conditions() -> None:
    domain = parse_domain(DELIVERY)
    assert domain.types == {
        "truck": "vehicle",
        "drone": "vehicle",
        "parcel": "movable",
        "vehicle": "movable",
        "spot": "object",
        "movable": "object",
    }
    assert domain.constants == {"depot": "spot"}
    assert domain.predicates["seen"].parameters == (Parameter("?x", "object"),)
    assert domain.schemas["move"] == Schema(
        "move",
        (Parameter("?v", "vehicle"), Parameter("?from", "spot"), Parameter("?to", "spot")),
        frozenset({Atom("at", ("?v", "?from")), Atom("=", ("?to", "depot"))}),
        (Outcome(frozenset({Atom("at", ("?v", "?to"))}), frozenset({Atom("at", ("?v", "?from"))})),),
        frozenset({Atom("=", ("?from", "?to")), Atom("broken", ("?v",))}),
    )


def test_several_choices_multiply_and_the_last_varies_fastest() -> None:
    assert outcomes("(and (oneof (p) (not (p))) (r) (oneof (q) (and)))") == (
        does("p r q"),
        does("p r"),
        does("r q", "p"),
        does("r", "p"),
    )


def test_existential_effects_bind_natures_variables() -> None:
    colour, block = Parameter("?c", "colour"), Parameter("?y", "block")
    hue = Atom("hue", ("?x", "?c"))
    assert outcomes("(exists (?c - colour) (hue ?x ?c))") == (Outcome(frozenset({hue}), frozenset(), (colour,)),)
    both = outcomes("(oneof (exists (?c - colour) (hue ?x ?c)) (exists (?y - block) (and (new ?y) (hue ?y red))))")
    assert both == (
        Outcome(frozenset({hue}), frozenset(), (colour,)),
        Outcome(frozenset({Atom("hue", ("?y", "red"))}), frozenset(), (block,), frozenset({"?y"})),
    )
    (nested,) = outcomes("(exists (?y - block) (and (new ?y) (exists (?c - colour) (hue ?y ?c))))")
    assert nested.chosen == (block, colour)
    assert nested.new == {"?y"}


def test_events_are_read_and_are_no_actions() -> None:
    text = (
        "(define (domain d) (:types block) (:predicates (on ?x - block) (lost ?x - block))"
        " (:event fall :parameters (?x - block) :precondition (on ?x) :effect (oneof (lost ?x) (not (on ?x))))"
        " (:action a :parameters (?x - block) :effect (on ?x)))"
    )
    domain = parse_domain(text)
    assert [*domain.schemas] == ["a"]
    on, lost = (Atom(name, ("?x",)) for name in ("on", "lost"))
    outcomes = Outcome(frozenset({lost}), frozenset()), Outcome(frozenset(), frozenset({on}))
    assert domain.events == {"fall": Schema("fall", (Parameter("?x", "block"),), frozenset({on}), outcomes)}
    assert domain.is_deterministic  # for whoever acts in it


PROBLEM = """
(define (problem one) (:domain delivery)
  (:objects t1 - truck d - drone p1 p2 - parcel a b - spot something)
  (:init (at t1 depot) (at d a)(at p1 b) (= (total-cost) 0) (= (distance a b) 3.5) (at t1 depot) (seen something))
  (:goal (and (at p1 depot) (seen d)))
  (:metric minimize (total-cost)))
"""
EXPECTED_PROBLEM = Problem(
    "one",
    "delivery",
    {"t1": "truck", "d": "drone", "p1": "parcel", "p2": "parcel", "a": "spot", "b": "spot", "something": "object"},
    frozenset(
        {Atom("at", ("t1", "depot")), Atom("at", ("d", "a")), Atom("at", ("p1", "b")), Atom("seen", ("something",))}
    ),
    frozenset({Atom("at", ("p1", "depot")), Atom("seen", ("d",))}),
)
PLAIN_PROBLEM = re.sub(r"\(= .*?\) [0-9.]+\)|\(:metric .*\)(?=\))", "", PROBLEM)


def test_both_readers_read_a_problem() -> None:
    domain = parse_domain(DELIVERY)
    assert parse_problem(PLAIN_PROBLEM, domain) == EXPECTED_PROBLEM
    assert problem_from_text(PROBLEM, domain) == EXPECTED_PROBLEM


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(at d a)", "( AT D a ) ; comment\n"),
        ("(at d a)", "(not (at t1 a)) (at d a)"),
        ("(at p1 depot) (seen d)", "(and (at p1 depot)) (and (seen d) (and))"),
        ("(total-cost)))", "(+ (total-cost) (* 2 (total-cost)))))"),
        (" (:metric minimize (total-cost))", ""),
        ("(:objects", "(:requirements :typing) (:objects"),
        ("\n", "\r\n"),
    ],
)
def test_unusual_problems_are_read_alike(old: str, new: str) -> None:
    assert old in PROBLEM
    assert parse_problem(PROBLEM.replace(old, new), parse_domain(DELIVERY)) == EXPECTED_PROBLEM

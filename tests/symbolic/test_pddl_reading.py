"""What the PDDL reader accepts, and what it makes of it."""

from __future__ import annotations

from math import inf

import pytest

from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Outcome, Parameter, Schema
from bilevel.symbolic.pddl import parse_domain, parse_problem, write_domain, write_problem
from bilevel.symbolic.semantics import cost_of

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
    :effect (and (at ?v ?to) (not (at ?v ?from)))))
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
    parents = {"truck": "vehicle", "drone": "vehicle", "parcel": "movable", "vehicle": "movable"}
    assert domain.types == {**parents, "spot": "object", "movable": "object"}
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
    expected = does("p r q"), does("p r"), does("r q", "p"), does("r", "p")
    assert outcomes("(and (oneof (p) (not (p))) (r) (oneof (q) (and)))") == expected


def test_existential_effects_bind_natures_variables() -> None:
    colour, block = Parameter("?c", "colour"), Parameter("?y", "block")
    hue = Outcome(frozenset({Atom("hue", ("?x", "?c"))}), frozenset(), (colour,))
    made = Outcome(frozenset({Atom("hue", ("?y", "red"))}), frozenset(), (block,), frozenset({"?y"}))
    both = "(oneof (exists (?c - colour) (hue ?x ?c)) (exists (?y - block) (and (new ?y) (hue ?y red))))"
    assert outcomes(both) == (hue, made)
    (nested,) = outcomes("(exists (?y - block) (and (new ?y) (exists (?c - colour) (hue ?y ?c))))")
    assert nested.chosen == (block, colour)
    assert nested.new == {"?y"}


def test_events_are_read_and_are_no_actions() -> None:
    event = "(:event fall :parameters (?x - block) :precondition (any ?x) :effect (oneof (p) (not (any ?x))))"
    domain = domain_with(f"{event} (:action a :parameters (?x - block) :effect (any ?x))")
    assert [*domain.schemas] == ["a"]
    gone = Atom("any", ("?x",))
    expected = does("p"), Outcome(frozenset(), frozenset({gone}))
    assert domain.events == {"fall": Schema("fall", (Parameter("?x", "block"),), frozenset({gone}), expected)}
    assert domain.is_deterministic  # for whoever acts in it


def test_what_is_false_or_numeric_at_first_is_left_out() -> None:
    problem = parse_problem(
        """(define (problem one) (:domain delivery) (:requirements :typing)
        (:objects t1 - truck d - drone a b - spot something)
        (:init (at t1 depot) (not (at t1 a)) (= (total-cost) 0) (= (distance a b) 3.5) (seen something))
        (:goal (and (and (at t1 depot)) (and (seen d) (and)))) (:metric minimize (+ (total-cost) (total-cost))))""",
        parse_domain(DELIVERY),
    )
    assert problem.objects == {"t1": "truck", "d": "drone", "a": "spot", "b": "spot", "something": "object"}
    assert problem.state == {Atom("at", ("t1", "depot")), Atom("seen", ("something",))}
    assert problem.goal == {Atom("at", ("t1", "depot")), Atom("seen", ("d",))}


def test_costs_are_read_where_there_is_a_metric() -> None:
    effect = "(and (increase (total-cost) (distance ?from ?to)) (increase (total-cost) 2)"
    domain = parse_domain(DELIVERY.replace(":effect (and", f":effect {effect}"))
    assert parse_domain(write_domain(domain)) == domain
    text = """(define (problem p) (:domain delivery) (:objects a - spot t - truck)
        (:init (= (total-cost) 0) (= (distance a depot) 3)) (:goal (done)) {metric})"""
    assert parse_problem(text.format(metric=""), domain).costs is None
    problem = parse_problem(text.format(metric="(:metric minimize (total-cost))"), domain)
    assert parse_problem(write_problem(problem, domain), domain) == problem
    moves = [Action("move", ("t", *way)) for way in (("a", "depot"), ("depot", "a"))]
    assert [cost_of(move, domain, problem) for move in moves] == [5, inf]
    with pytest.raises(BadInput, match=r"undeclared function '\(distanse ...\)'; did you mean 'distance'"):
        parse_domain(DELIVERY.replace(":effect (and", f":effect {effect}".replace("distance", "distanse")))


def test_a_type_may_be_one_of_several() -> None:
    text = DELIVERY.replace("(broken ?v - vehicle)", "(broken ?v - (either truck parcel))")
    domain = parse_domain(text.replace("(?v - vehicle ?from", "(?v - (either truck drone) ?from"))
    assert parse_domain(write_domain(domain)) == domain
    kind = domain.schemas["move"].parameters[0].type
    assert [domain.is_subtype(each, kind) for each in ("truck", "drone", "parcel", "vehicle")] == [
        True,
        True,
        False,
        False,
    ]
    assert [domain.is_subtype(kind, each) for each in ("vehicle", "truck", kind)] == [True, False, True]
    problem = (
        "(define (problem p) (:domain delivery) (:objects p - parcel t - truck d - drone e - (either truck drone))"
    )
    read = parse_problem(f"{problem} (:init (broken p) (broken t) (at e depot)) (:goal (done)))", domain)
    assert {atom.terms[0] for atom in read.state} == {"p", "t", "e"}
    assert parse_problem(write_problem(read, domain), domain) == read
    with pytest.raises(BadInput, match="'d' is of type 'drone' but argument 1 of 'broken' is of type 'truck/parcel'"):
        parse_problem(f"{problem} (:init (broken d)) (:goal (done)))", domain)

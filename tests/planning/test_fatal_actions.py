"""Schemas that no strong-cyclic policy uses are left out before grounding, and only these."""

from __future__ import annotations

from exact_fond import has_policy
from fond_families import made
from fond_problems import random_problem

from bilevel.planning.fatal_actions import without_fatal_actions
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem


def test_what_the_drowned_do_is_left_out() -> None:
    domain, problem = made("crossing", 4)
    assert sorted(without_fatal_actions(domain, problem).schemas) == ["right", "up"]


def lamps(goal: str) -> tuple[Domain, Problem]:
    domain = parse_domain(
        """(define (domain lamps) (:requirements :non-deterministic) (:predicates (lit ?x) (spare) (dark))
        (:action smash :parameters (?x) :precondition (lit ?x) :effect (oneof (not (lit ?x)) (not (spare))))
        (:action mourn :parameters (?x) :precondition (not (spare)) :effect (lit ?x))
        (:action wait :parameters (?x) :precondition (lit ?x) :effect (dark)))"""
    )
    text = f"(define (problem p) (:domain lamps) (:objects a) (:init (lit a) (spare)) (:goal {goal}))"
    return domain, parse_problem(text, domain)


def test_a_goal_that_cannot_be_achieved_again_must_be_kept() -> None:
    domain, problem = lamps("(and (spare) (dark))")
    assert list(without_fatal_actions(domain, problem).schemas) == ["wait"]


def test_a_goal_that_can_be_achieved_again_may_be_lost_for_a_while() -> None:
    domain, problem = lamps("(and (lit a) (dark))")
    assert list(without_fatal_actions(domain, problem).schemas) == ["smash", "mourn", "wait"]


def test_whether_there_is_a_policy_stays_the_same() -> None:
    fewer = 0
    for seed in range(0, 300, 2):
        domain, problem = random_problem(seed)
        without = without_fatal_actions(domain, problem)
        if len(without.schemas) < len(domain.schemas):
            fewer += 1
            assert has_policy(without, problem, 300) in (has_policy(domain, problem, 300), None)
    assert fewer > 0

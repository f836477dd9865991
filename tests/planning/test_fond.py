"""The strong-cyclic planner: right by the definition, small policies, within its time, always the same."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from exact_fond import has_policy
from fond_problems import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel.planning.fond import fond
from bilevel.planning.planner import ContingentPolicy, Deadline, Status
from bilevel.planning.strong_cyclic import PolicyKind, check_policy, is_proved
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.pddl import parse_for_planning
from bilevel.tabletop.problems import colour_problem, shipped_domain


def policy_for(domain: Domain, problem: Problem) -> ContingentPolicy:
    result = fond(domain, problem, 60)
    assert result.status is Status.SOLVED, result
    assert result.policy is not None
    verdict = check_policy(domain, problem, result.policy.choose)
    assert verdict.kind is PolicyKind.STRONG_CYCLIC, verdict
    return result.policy


def test_a_policy_for_colour_grows_with_blocks_and_colours_not_with_their_states() -> None:
    domain = shipped_domain("colour")
    assert len(policy_for(domain, colour_problem(2, random.Random(0))).decisions) <= 2 * (3 + 2 * 10)
    many = fond(domain, colour_problem(10, random.Random(0)), 60).policy
    assert many is not None
    assert len(many.decisions) <= 10 * (3 + 2 * 10)


def answer(domain: Domain, problem: Problem) -> Status:
    """What the planner says, which is what the definition says; a policy is checked in both ways."""
    expected = has_policy(domain, problem, most_states=300)
    result = fond(domain, problem, 60)
    if result.policy is not None:
        assert check_policy(domain, problem, result.policy.choose).kind is PolicyKind.STRONG_CYCLIC
        assert is_proved(domain, problem, result.policy, Deadline(60))
    if expected is not None:
        assert result.status is (Status.SOLVED if expected else Status.UNSOLVABLE)
    return result.status


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.booleans())
def test_random_problems_are_answered_as_the_definition_says(seed: int, negative: bool) -> None:
    domain, problem = random_problem(seed)
    if negative:
        kept, gone = sorted(problem.goal)[1:], sorted(problem.state)[:2]
        problem = replace(problem, goal=frozenset(kept), negative_goal=frozenset(gone) - frozenset(kept))
    answer(domain, problem)


# Each job may break the next of as many machines; the last must be whole in the end.
WORKSHOP = """(define (domain workshop) (:requirements :typing :negative-preconditions :non-deterministic)
(:types job slot) (:predicates (open ?j - job) (done ?j - job) (broken ?s - slot) (whole ?s - slot)
  (spoilt ?j - job ?s - slot) (latest ?s - slot) (after ?s ?t - slot) (first ?s - slot) (last ?s - slot) (shipped))
(:action work-first :parameters (?j - job ?s - slot) :precondition (and (open ?j) (first ?s) (whole ?s))
  :effect (and (done ?j) (not (open ?j))
    (oneof (and) (and (broken ?s) (not (whole ?s)) (spoilt ?j ?s) (latest ?s)))))
(:action work :parameters (?j - job ?s ?t - slot)
  :precondition (and (open ?j) (after ?s ?t) (broken ?s) (whole ?t) (latest ?s))
  :effect (and (done ?j) (not (open ?j))
    (oneof (and) (and (broken ?t) (not (whole ?t)) (spoilt ?j ?t) (latest ?t) (not (latest ?s))))))
(:action mend-first :parameters (?j - job ?s - slot) :precondition (and (spoilt ?j ?s) (latest ?s) (first ?s))
  :effect (and (open ?j) (not (done ?j)) (whole ?s) (not (broken ?s)) (not (latest ?s)) (not (spoilt ?j ?s))))
(:action mend :parameters (?j - job ?s ?t - slot) :precondition (and (spoilt ?j ?t) (latest ?t) (after ?s ?t))
  :effect (and (open ?j) (not (done ?j)) (whole ?t) (not (broken ?t)) (latest ?s) (not (latest ?t))
    (not (spoilt ?j ?t))))
(:action ship :parameters (?s - slot)
  :precondition (and (last ?s) (not (latest ?s)) (forall (?j - job) (done ?j))) :effect (shipped)))"""


def workshop(size: int) -> tuple[Domain, Problem]:
    jobs, slots = [f"j{i}" for i in range(size)], [f"s{i}" for i in range(size)]
    state = [f"(open {job})" for job in jobs] + [f"(whole {slot})" for slot in slots]
    state += [f"(first {slots[0]})", f"(last {slots[-1]})", *(f"(after {a} {b})" for a, b in pairwise(slots))]
    objects = f"{' '.join(jobs)} - job {' '.join(slots)} - slot"
    head = f"(define (problem p) (:domain workshop) (:objects {objects})"
    return parse_for_planning(WORKSHOP, f"{head} (:init {' '.join(state)}) (:goal (shipped)))")


def test_mending_bad_luck_takes_few_decisions() -> None:
    """A decision or two for each job, not for each set of jobs that may have gone wrong."""
    assert answer(*workshop(3)) is Status.SOLVED
    assert len(policy_for(*workshop(12)).decisions) == 24
    assert fond(*workshop(40), 0.05).status is Status.TIMED_OUT

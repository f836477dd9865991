"""The strong-cyclic planner: right on problems made by hand, small policies, within its time, always the same."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from exact_fond import has_policy
from fond_problems import tireworld

from bilevel.planning.fond import fond
from bilevel.planning.planner import ContingentPolicy, Decision, Status
from bilevel.planning.strong_cyclic import check_policy
from bilevel.symbolic.domain import Action, Atom, Domain, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.semantics import Condition
from bilevel.tabletop.problems import colour_problem, shipped_domain


def facts(text: str) -> str:
    """`p, q a` as PDDL facts."""
    return " ".join(f"({part.strip()})" for part in text.split(",") if part.strip())


def propositional(actions: str, state: str, goal: str) -> tuple[Domain, Problem]:
    """A problem without objects; a line of `actions` reads `name: precondition -> effect`, the latter two in PDDL."""
    lines = [line.strip() for line in actions.strip().splitlines()]
    schemas = []
    for line in lines:
        name, _, rest = line.partition(":")
        precondition, _, effect = rest.partition("->")
        schemas.append(f"(:action {name} :parameters () :precondition {precondition} :effect {effect})")
    letters = " ".join(f"({letter})" for letter in "abcdefgh")
    domain = parse_domain(f"(define (domain letters) (:predicates {letters}) {' '.join(schemas)})")
    text = f"(define (problem p) (:domain letters) (:init {facts(state)}) (:goal (and {facts(goal)})))"
    return domain, parse_problem(text, domain)


def policy_for(domain: Domain, problem: Problem) -> ContingentPolicy:
    result = fond(domain, problem, 60)
    assert result.status is Status.SOLVED, result
    assert result.policy is not None
    verdict = check_policy(domain, problem, result.policy.choose)
    assert verdict.is_strong_cyclic, verdict
    return result.policy


def test_decisions_say_what_matters_nearest_to_the_goal_first() -> None:
    domain, problem = propositional(
        """first: (and (a) (not (c))) -> (and (b) (not (a)))
        second: (b) -> (oneof (g) (and))""",
        "a, d, e",
        "g",
    )
    second, first = policy_for(domain, problem).decisions
    assert second == Decision(Condition(frozenset({Atom("b")})), Action("second"), distance=1)
    assert first == Decision(Condition(frozenset({Atom("a")})), Action("first"), distance=2)


def test_drives_around_the_triangle_where_there_are_spare_tyres() -> None:
    small = tireworld(2)
    assert has_policy(*small)
    policy_for(*small)
    domain, problem = tireworld(8)
    policy = fond(domain, problem, 60).policy
    assert policy is not None
    visited = {decision.action.arguments[-1] for decision in policy.decisions if decision.action.name == "drive"}
    assert "p8-8" in visited
    assert not visited & {f"p{x}-0" for x in range(1, 16)}


def test_a_policy_for_colour_grows_with_blocks_and_colours_not_with_their_states() -> None:
    domain = shipped_domain("colour")
    assert len(policy_for(domain, colour_problem(2, random.Random(0))).decisions) <= 2 * (3 + 2 * 10)
    many = fond(domain, colour_problem(10, random.Random(0)), 60).policy
    assert many is not None
    assert len(many.decisions) <= 10 * (3 + 2 * 10)


@pytest.mark.parametrize("time_limit", [0.0, 0.05])
def test_stops_when_its_time_is_up(time_limit: float) -> None:
    started = time.monotonic()
    result = fond(*tireworld(60), time_limit)
    assert (result.status, result.policy) == (Status.TIMED_OUT, None)
    assert time.monotonic() - started < 10  # alone, grounding takes longer


def test_is_the_same_under_every_hash_seed() -> None:
    program = (
        "import random; from bilevel.tabletop.problems import *; from bilevel.planning.fond import fond; "
        "print([(d.action, d.distance, sorted(d.condition.positive), sorted(d.condition.negative)) "
        "for d in fond(shipped_domain('colour'), colour_problem(3, random.Random(0)), 60).policy.decisions])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parent,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1

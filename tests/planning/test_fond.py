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
from bilevel.planning.planners import PLANNERS
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


SOLVABLE = {
    "try again": ("flip: (a) -> (oneof (b) (and))", "a", "b"),
    "two choices in one effect": (
        """throw: (a) -> (and (oneof (b) (not (b))) (oneof (c) (not (c))))""",
        "a",
        "b, c",
    ),
    "a choice within a choice": (
        """throw: (a) -> (and (not (a)) (oneof (b) (oneof (c) (and (d) (oneof (e) (and))))))
        from-c: (c) -> (b)
        from-e: (and (d) (e)) -> (b)
        from-d: (and (d) (not (e))) -> (b)""",
        "a",
        "b",
    ),
    "outcomes that are the same": ("go: (a) -> (oneof (b) (b) (and (b) (b)))", "a", "b"),
    "only by a detour is it safe": (
        """jump: (a) -> (and (not (a)) (oneof (d) (h)))
        walk: (a) -> (and (not (a)) (b))
        walk-on: (b) -> (and (not (b)) (oneof (c) (a)))
        arrive: (c) -> (and (not (c)) (d))""",
        "a",
        "d",
    ),
    "what is not there must stay away": (
        """spill: (not (b)) -> (and (b) (c))
        careful: (and (not (b)) (not (c))) -> (oneof (d) (and))
        wipe: (b) -> (not (b))
        drink: (and (d) (not (b))) -> (e)""",
        "b",
        "e",
    ),
    "a way that looks good ends after two steps": (
        """short: (a) -> (and (not (a)) (oneof (b) (c)))
        on: (b) -> (and (not (b)) (g))
        trap: (c) -> (and (not (c)) (oneof (g) (d)))
        lost: (d) -> (and (not (d)) (e))
        back: (e) -> (and (not (e)) (d))
        long: (a) -> (and (not (a)) (f))
        longer: (f) -> (and (not (f)) (oneof (g) (a)))""",
        "a",
        "g",
    ),
}
UNSOLVABLE = {
    "nature may always refuse for good": ("flip: (a) -> (and (not (a)) (oneof (b) (c)))", "a", "b"),
    "not even if nature is kind": ("go: (b) -> (c)", "a", "c"),
    "two goals of which one destroys the other": (
        """one: (a) -> (oneof (and (b) (not (a))) (and (c) (not (a))))
        two: (a) -> (and (c) (not (a)))""",
        "a",
        "b, c",
    ),
    "every way may end in a loop without an exit": (
        """out: (a) -> (and (not (a)) (oneof (g) (b)))
        round: (b) -> (and (not (b)) (c))
        and-round: (c) -> (and (not (c)) (b))""",
        "a",
        "g",
    ),
}


@pytest.mark.parametrize("name", SOLVABLE)
def test_finds_a_policy(name: str) -> None:
    domain, problem = propositional(*SOLVABLE[name])
    assert has_policy(domain, problem)
    policy_for(domain, problem)


@pytest.mark.parametrize("name", UNSOLVABLE)
def test_says_that_there_is_no_policy(name: str) -> None:
    domain, problem = propositional(*UNSOLVABLE[name])
    assert has_policy(domain, problem) is False
    result = fond(domain, problem, 60)
    assert (result.status, result.policy) == (Status.UNSOLVABLE, None)
    assert result.message == "no strong-cyclic policy exists"


def test_where_the_goal_holds_already_there_is_nothing_to_decide() -> None:
    domain, problem = propositional("flip: (a) -> (oneof (b) (and))", "a, b", "b")
    assert fond(domain, problem, 60).policy == ContingentPolicy(())


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


def test_without_spare_tyres_there_is_no_policy() -> None:
    domain, problem = tireworld(2)
    bare = Problem(
        "bare", "tyres", problem.objects, frozenset(f for f in problem.state if f.predicate != "spare"), problem.goal
    )
    assert has_policy(domain, bare) is False
    assert fond(domain, bare, 60).status is Status.UNSOLVABLE


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


def test_is_in_the_table() -> None:
    domain, problem = propositional(*SOLVABLE["try again"])
    assert PLANNERS["fond"](domain, problem, 60) == fond(domain, problem, 60)

"""Every planner of the table, on the package's own domains and on small ones; all plans are executed."""

from __future__ import annotations

import pytest
from exact_fond import achieves_goal

from bilevel.planning.planner import Planner, PlanStep, Status
from bilevel.planning.planners import PLANNERS, planner_named
from bilevel.symbolic.domain import Action, Domain
from bilevel.symbolic.pddl import parse_problem
from bilevel.tabletop.problems import shipped_domain


@pytest.fixture(params=[name for name in PLANNERS if name != "fond"])
def planner(request: pytest.FixtureRequest) -> Planner:
    return planner_named(request.param)


def solve(planner: Planner, domain: Domain, problem_text: str) -> list[str]:
    """The plan as text, after checking that it works."""
    problem = parse_problem(problem_text, domain, "problem")
    result = planner(domain, problem, 60)
    assert result.status is Status.SOLVED, result
    assert achieves_goal(domain, problem, result.steps)
    return [str(step.action) for step in result.steps]


def test_colour_counts_on_the_colour_that_has_a_tray(planner: Planner) -> None:
    domain = shipped_domain("colour")
    text = """(define (problem p) (:domain colour)
        (:objects x - block red blue - colour t - tray s - table p - platform b - button)
        (:init (gripper-free) (on x s) (free p) (unknown x) (tray-colour t blue)) (:goal (achieved-goal x)))"""
    assert len(solve(planner, domain, text)) == 5
    steps = planner(domain, parse_problem(text, domain, "problem"), 60).steps
    assert steps[2] == PlanStep(Action("press", ("x", "b", "p")), 0, (("?c", "blue"),))


def test_gacha_counts_on_a_new_block() -> None:
    domain = shipped_domain("gacha")
    text = """(define (problem p) (:domain gacha)
        (:objects red blue - colour t - tray d - box b - button block1 - block)
        (:init (gripper-free) (clear d) (closed d) (tray-colour t blue)) (:goal (achieved-goal blue)))"""
    assert solve(planner_named("search"), domain, text) == [
        "roll(d, b)",
        "open(d)",
        "pick(block2, d)",
        "place-goal(block2, t, blue)",
    ]


def test_unsolvable(planner: Planner) -> None:
    domain = shipped_domain("blocks")
    text = """(define (problem p) (:domain blocks) (:objects a b - block l - place)
           (:init (gripper-free) (clear a) (clear b) (clear l)) (:goal (and (holding a) (holding b))))"""
    result = planner(domain, parse_problem(text, domain), 60)
    assert (result.status, result.plan, result.message) == (Status.UNSOLVABLE, None, "no plan exists")

"""Every planner of the table, on the package's own domains and on small ones; all plans are executed."""

from __future__ import annotations

import pytest
from exact_fond import achieves_goal

from bilevel.planning.grounding import Grounding
from bilevel.planning.planner import Deadline, Planner, PlanResult, PlanStep, Status
from bilevel.planning.planners import PLANNERS, planner_named
from bilevel.symbolic.domain import Action, Domain, Problem
from bilevel.symbolic.pddl import parse_problem
from bilevel.tabletop.problems import shipped_domain, training_problems


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


def test_pick_place(planner: Planner) -> None:
    plan = solve(
        planner,
        shipped_domain("pick-place"),
        """(define (problem p) (:domain pick-place) (:objects x y - item r0 r1 r2 r3 - location)
           (:init (robot-at r0) (free) (at x r1) (at y r2)) (:goal (and (at x r3))))""",
    )
    assert plan == ["move(r0, r1)", "pick(x, r1)", "move(r1, r3)", "place(x, r3)"]


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


def test_the_search_goes_first_and_fast_downward_takes_over_what_it_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, float]] = []

    def answering(name: str, status: Status) -> Planner:
        def planner(
            domain: Domain, problem: Problem, time_limit: float, grounding: Grounding | None = None
        ) -> PlanResult:
            asked.append((name, round(time_limit, 2)))
            return PlanResult(status)

        return planner

    def searching(deadline: Deadline, domain: Domain, problem: Problem, grounding: Grounding | None) -> PlanResult:
        return answering("search", Status.TIMED_OUT)(domain, problem, deadline.seconds_left)

    monkeypatch.setattr("bilevel.planning.planners.search", answering("search", Status.TIMED_OUT))
    monkeypatch.setattr("bilevel.planning.planners.search_until", searching)
    monkeypatch.setattr("bilevel.planning.planners.fast_downward", answering("fast-downward", Status.SOLVED))
    domain, problem = shipped_domain("blocks"), training_problems("blocks")[0]
    assert PLANNERS["auto"](domain, problem, 10.0).status is Status.SOLVED
    assert asked == [("search", 2.0), ("fast-downward", 8.0)]
    asked.clear()
    domain, problem = shipped_domain("gacha"), training_problems("gacha")[0]
    assert PLANNERS["auto"](domain, problem, 10.0).status is Status.TIMED_OUT
    assert asked == [("search", 10.0)]

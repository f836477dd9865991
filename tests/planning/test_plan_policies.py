"""Policies that follow plans, on made-up planners and small states."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bilevel.planning.planner import PlanResult, PlanStep, Status
from bilevel.planning.planners import NO_PLAN, PLAN_BROKEN, PlannedPolicy, planner_named
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import ground_action, progress
from bilevel.tabletop.problems import shipped_domain

BLOCKS = shipped_domain("blocks")
OBJECTS = {"block1": "block", "block2": "block", "place1": "place", "place2": "place"}
PICK1, PLACE1 = Action("pick", ("block1",)), Action("place", ("block1", "place1"))
PICK2, PLACE2 = Action("pick", ("block2",)), Action("place", ("block2", "place2"))
PLAN = (PICK1, PLACE1, PICK2, PLACE2)
GOAL = frozenset({Atom("at", ("block1", "place1")), Atom("at", ("block2", "place2"))})
START = frozenset(Atom("clear", (name,)) for name in OBJECTS) | {Atom("gripper-free")}


class Planner:
    """Answers with the given results in turn, and keeps the problems that it was asked about."""

    def __init__(self, *results: PlanResult) -> None:
        self.results, self.problems = list(results), list[Problem]()

    def __call__(self, domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
        self.problems.append(problem)
        return self.results.pop(0)


def plan(*actions: Action) -> PlanResult:
    return PlanResult(Status.SOLVED, tuple(PlanStep(action) for action in actions))


def after(state: Facts, *actions: Action) -> Facts:
    for action in actions:
        grounded = ground_action(BLOCKS, action)
        assert grounded.condition.holds(state)
        state = progress(state, grounded.outcomes[0])
    return state


def follower(planner: Planner, *, replan: bool) -> PlannedPolicy:
    policy = PlannedPolicy(BLOCKS, planner, replan=replan, time_limit=5)
    policy.reset(START, GOAL, OBJECTS)
    return policy


def choices(policy: PlannedPolicy, states: Sequence[Facts]) -> list[Action | None]:
    return [policy.choose(state, GOAL) for state in states]


def test_a_plan_is_followed_while_its_preconditions_hold() -> None:
    policy = follower(Planner(plan(*PLAN)), replan=False)
    states = [after(START, *PLAN[:done]) for done in range(4)]
    seen = [states[0], states[0], states[1], states[2], states[3], states[3]]
    assert choices(policy, seen) == [PICK1, PICK1, PLACE1, PICK2, PLACE2, PLACE2]
    assert policy.failure is None
    assert policy.plans == 1


def test_a_plan_never_goes_back_or_jumps() -> None:
    policy = follower(Planner(plan(*PLAN)), replan=False)
    assert choices(policy, [START, after(START, PICK1), after(START, PICK2)]) == [PICK1, PLACE1, None]
    lacks = "step 2 of 4, place(block1, place1): holding(block1) does not hold"
    next_lacks = "step 3 of 4, pick(block2): clear(block2) does not hold, gripper-free() does not hold"
    assert policy.failure == (PLAN_BROKEN, f"{lacks}; {next_lacks}")


@pytest.mark.parametrize("replan", [False, True])
@pytest.mark.parametrize("status", [Status.UNSOLVABLE, Status.TIMED_OUT, Status.OUT_OF_MEMORY])
def test_no_plan_is_a_failure_with_its_reason(status: Status, replan: bool) -> None:
    answer = PlanResult(status, message="so it is")
    policy = follower(Planner(answer, answer), replan=replan)
    assert policy.choose(START, GOAL) is None
    assert policy.failure == (NO_PLAN, "so it is")


LAMPS = parse_domain(
    """(define (domain lamps) (:requirements :adl) (:types lamp)
  (:predicates (lit ?l - lamp) (dark ?l - lamp))
  (:action flip :parameters (?l - lamp)
    :effect (and (when (lit ?l) (and (dark ?l) (not (lit ?l))))
                 (when (not (lit ?l)) (and (lit ?l) (not (dark ?l)))))))""",
    adl=True,
)


def lamps(*lit: str) -> Facts:
    return frozenset(Atom("lit" if name in lit else "dark", (name,)) for name in "abc")


def test_a_plan_in_adl_is_followed_in_the_words_of_the_domain_and_made_anew_only_where_it_breaks() -> None:
    policy = PlannedPolicy(LAMPS, planner_named("search"), replan=True, time_limit=60)
    goal = lamps("a", "b", "c")
    policy.reset(lamps(), goal, dict.fromkeys("abc", "lamp"))
    assert [policy.choose(lamps(*lit), goal) for lit in ("", "", "a", "ab")] == [
        Action("flip", (name,)) for name in "aabc"
    ]
    assert policy.plans == 1
    assert policy.choose(lamps("b", "c"), goal) == Action("flip", ("a",))  # one has gone out again
    assert policy.plans == 2

"""What a planner is, what it answers, and the planners there are."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground_action, is_solved, progress


class TimeUp(Exception):
    """A deadline has passed; planners turn it into a result."""


class NoModel(BadInput):
    """The planner cannot express what may happen in the domain."""


class Deadline:
    """A moment on the wall clock."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return self._end - time.monotonic()

    def check(self) -> None:
        if time.monotonic() >= self._end:
            raise TimeUp


class Step(NamedTuple):
    """An action of a plan and what it is meant to bring about: the index of an outcome and nature's choices in it.

    A plan for a nondeterministic domain is a hope, not a promise: it says which outcome it counts on at each step.
    """

    action: Action
    outcome: int = 0
    choice: tuple[tuple[str, str], ...] = ()

    def ground(self, domain: Domain) -> tuple[GroundAction, Outcome]:
        """The ground action and the outcome that the plan counts on, with nature's variables bound."""
        action = ground_action(domain, self.action)
        return action, bind_outcome(action.outcomes[self.outcome], dict(self.choice))


class Status(Enum):
    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan, or why there is none; `message` says more, on one line, where there is more to say."""

    status: Status
    steps: tuple[Step, ...] = ()
    message: str = ""

    @property
    def plan(self) -> tuple[Action, ...] | None:
        return tuple(step.action for step in self.steps) if self.status is Status.SOLVED else None


def solved(steps: Sequence[Step]) -> PlanResult:
    return PlanResult(Status.SOLVED, tuple(steps))


class Planner(Protocol):
    def __call__(self, domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
        """Plan for at most `time_limit` seconds by the wall clock; the problem is read as a closed world."""
        ...


@dataclass(frozen=True, slots=True)
class _World:
    """What holds, and the objects there are: nature's new ones cannot be used before they are made."""

    state: Facts
    objects: frozenset[str]

    def after(self, move: _Move) -> _World | None:
        """The world after the step, with the outcome it counts on, or `None` where it cannot be done."""
        step, action, outcome = move
        if not action.condition.holds(self.state) or not self.objects.issuperset(step.action.arguments):
            return None
        return _World(progress(self.state, outcome), self.objects.union(value for _, value in step.choice))


class _Move(NamedTuple):
    """A step with its ground action and outcome."""

    step: Step
    action: GroundAction
    outcome: Outcome


def _first_world(domain: Domain, problem: Problem) -> _World:
    return _World(problem.state, frozenset(problem.all_objects(domain)))


def achieves_goal(domain: Domain, problem: Problem, steps: Sequence[Step]) -> bool:
    """Whether the steps can be done one after the other and, with the outcomes they count on, reach the goal."""
    world: _World | None = _first_world(domain, problem)
    for step in steps:
        world = world and world.after(_Move(step, *step.ground(domain)))
    return world is not None and is_solved(problem, world.state)


def without_needless_steps(
    domain: Domain, problem: Problem, steps: Sequence[Step], deadline: Deadline
) -> tuple[Step, ...]:
    """The plan less every step that, left out together with those that then cannot be done, is not missed.

    Steps that have not been looked at by the deadline stay.
    """
    kept: list[_Move] = []
    rest = [_Move(step, *step.ground(domain)) for step in steps]
    world = _first_world(domain, problem)
    while rest and deadline.seconds_left > 0:
        shorter = _feasible(problem, world, rest[1:])
        if shorter is not None:
            rest = shorter
            continue
        after = world.after(rest[0])
        assert after is not None, f"step {rest[0].step.action} of a plan cannot be done"
        world = after
        kept.append(rest.pop(0))
    return tuple(move.step for move in kept + rest)


def _feasible(problem: Problem, world: _World, moves: Sequence[_Move]) -> list[_Move] | None:
    """Those of the moves that can be done from here on, if they reach the goal."""
    done = []
    for move in moves:
        after = world.after(move)
        if after is not None:
            world = after
            done.append(move)
    return done if is_solved(problem, world.state) else None


# Each planner's module is imported at its first use, as it imports the types above.


def _fast_downward(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    from bilevel.planning.fast_downward import fast_downward

    return fast_downward(domain, problem, time_limit)


def _lama(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    """The first plan of LAMA, Fast Downward's quick search: what the paper compares with on large problems."""
    from bilevel.planning.fast_downward import fast_downward

    return fast_downward(domain, problem, time_limit, optimal=False)


def _search(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    from bilevel.planning.search import search

    return search(domain, problem, time_limit)


def _search_first(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    """The built-in search for a fifth of the time and then, where it is installed, Fast Downward.

    Small problems, as one learns from, are a hundred times faster without starting a process, and the plans are as
    short; what the search cannot do in that time the other planner often can.
    """
    from bilevel.planning.grounding import makes_new_objects

    # Fast Downward knows nothing of new objects.
    if default_planner_name() == "search" or makes_new_objects(domain, problem):
        return _search(domain, problem, time_limit)
    result = _search(domain, problem, time_limit / 5)
    return _fast_downward(domain, problem, time_limit * 4 / 5) if result.status is Status.TIMED_OUT else result


PLANNERS: Mapping[str, Planner] = {
    "auto": _search_first,
    "fast-downward": _fast_downward,
    "lama": _lama,
    "search": _search,
}


def default_planner_name() -> str:
    """Fast Downward where it is installed, else the built-in search."""
    return "fast-downward" if importlib.util.find_spec("up_fast_downward") else "search"


def default_planner() -> Planner:
    return PLANNERS[default_planner_name()]


def planner_named(name: str) -> Planner:
    if name not in PLANNERS:
        raise BadInput(f"unknown planner '{name}'; known planners: {', '.join(PLANNERS)}")
    return PLANNERS[name]


GroundPlan = list[tuple[GroundAction, Outcome]]


def plan_function(planner: Planner, time_limit: float) -> Callable[[Domain, Problem], GroundPlan | None]:
    """The planner as a function to a plan spelt out, or `None` where it finds none in time; its failure is an error."""

    def plan_for(domain: Domain, problem: Problem) -> GroundPlan | None:
        result = planner(domain, problem, time_limit)
        if result.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{problem.name}': {result.message}")
        return [step.ground(domain) for step in result.steps] if result.status is Status.SOLVED else None

    return plan_for

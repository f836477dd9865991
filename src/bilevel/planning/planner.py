"""What planners are and what they answer: plans, or policies that say what to do whatever nature does."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.semantics import Condition, GroundAction, bind_outcome, ground_action, is_solved, progress


class TimeUp(Exception):
    """A deadline has passed; planners turn it into a result."""


@contextmanager
def limited_memory(more: float) -> Iterator[None]:
    """While planning on Linux, let the process, and those that it starts, take only so many bytes more than it has.

    What would take more raises `MemoryError`.
    """
    if more == math.inf or sys.platform != "linux":
        yield
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = int(pages * resource.getpagesize() + more)
    resource.setrlimit(resource.RLIMIT_AS, (limit if soft < 0 else min(limit, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class NoModel(BadInput):
    """The planner cannot express what may happen in the domain."""


class Deadline:
    """A time on a clock or, where `checks` are given, an effort: so many checks, always at the same place.

    Planners check their deadline once for each state and each operator that they take up.
    """

    def __init__(self, seconds: float, checks: float = math.inf, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._end, self._checks = now, now() + seconds, checks

    @property
    def seconds_left(self) -> float:
        """How many seconds are left; none where the effort is spent."""
        return self._end - self._now() if self._checks > 0 else 0.0

    def check(self) -> None:
        """Count a piece of work; raise `TimeUp` where that was the last, or the time is up."""
        self._checks -= 1
        if self._checks <= 0 or self._now() >= self._end:
            raise TimeUp


class PlanStep(NamedTuple):
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
    """How planning ended."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do where the condition holds; if nature is kind, the goal is then `distance` steps away."""

    condition: Condition
    action: Action
    distance: int


class Placeholder(NamedTuple):
    """An object that stands for the one that an action, `maker`, has made last."""

    name: str
    type: str
    maker: str

    def __str__(self) -> str:
        return f"{self.name} stands for the {self.type} that {self.maker} has made last"


@dataclass(frozen=True)
class ContingentPolicy:
    """Decisions, nearest to the goal first: the first whose condition holds counts.

    They may speak of placeholders, where actions make new objects.
    """

    decisions: tuple[Decision, ...]
    placeholders: tuple[Placeholder, ...] = ()

    def choose(self, state: Facts) -> Action | None:
        """What to do in a state; `None` where the policy says nothing about it, or the goal is reached."""
        return next((decision.action for decision in self.decisions if decision.condition.holds(state)), None)


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan or a strong-cyclic policy, or why there is none: `message`, one line, where there is more to say."""

    status: Status
    steps: tuple[PlanStep, ...] = ()
    policy: ContingentPolicy | None = None
    message: str = ""

    @property
    def plan(self) -> tuple[Action, ...] | None:
        """The actions of the plan; `None` where there is none."""
        is_plan = self.status is Status.SOLVED and self.policy is None
        return tuple(step.action for step in self.steps) if is_plan else None


# Plans for at most so many seconds by the wall clock; the problem is read as a closed world.
Planner = Callable[[Domain, Problem, float], PlanResult]


def without_needless_steps(
    domain: Domain, problem: Problem, steps: Sequence[PlanStep], deadline: Deadline
) -> tuple[PlanStep, ...]:
    """The plan less every step that, left out together with those that then cannot be done, is not missed.

    Steps that have not been looked at by the deadline stay.
    """
    moves = [(step, *step.ground(domain)) for step in steps]
    looked_at = 0
    while looked_at < len(moves) and deadline.seconds_left > 0:
        state, objects, shorter = problem.state, {*problem.all_objects(domain)}, []
        for move in moves[:looked_at] + moves[looked_at + 1 :]:
            step, action, outcome = move
            # nature's new objects cannot be used before they are made
            if action.condition.holds(state) and objects.issuperset(step.action.arguments):
                state = progress(state, outcome_in(state, outcome, domain, problem.all_objects(domain)))
                objects.update(value for _, value in step.choice)
                shorter.append(move)
        if is_solved(problem, state):
            moves = shorter
        else:
            looked_at += 1
    return tuple(step for step, _, _ in moves)

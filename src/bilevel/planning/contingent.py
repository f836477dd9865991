"""Policies for one problem that say what to do whatever nature does, as planners for nondeterministic domains make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bilevel.planning.planner import Status
from bilevel.symbolic.domain import Action, Domain, Facts, Problem
from bilevel.symbolic.semantics import Condition


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do where the condition holds; if nature is kind, the goal is then `distance` steps away."""

    condition: Condition
    action: Action
    distance: int


@dataclass(frozen=True)
class ContingentPolicy:
    """Decisions, nearest to the goal first: the first whose condition holds counts."""

    decisions: tuple[Decision, ...]

    def choose(self, state: Facts) -> Action | None:
        """What to do in a state; `None` where the policy says nothing about it, or the goal is reached."""
        return next((decision.action for decision in self.decisions if decision.condition.holds(state)), None)


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A strong-cyclic policy, or why there is none; `message` says more, on one line, where there is more to say."""

    status: Status
    policy: ContingentPolicy | None = None
    message: str = ""


class ContingentPlanner(Protocol):
    def __call__(self, domain: Domain, problem: Problem, time_limit: float) -> PolicyResult:
        """Plan for at most `time_limit` seconds by the wall clock; the problem is read as a closed world."""
        ...

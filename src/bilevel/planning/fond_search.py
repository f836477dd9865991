"""Weak plans: ways to the goal if nature is kind, by steps none of whose outcomes is known to be hopeless."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Set
from typing import NamedTuple

from bilevel.planning.bit_masks import GroundOperator, applicable_in, apply
from bilevel.planning.fond_task import FondAction, FondTask
from bilevel.planning.planner import Deadline
from bilevel.planning.search import RelaxedPlans


class WeakStep(NamedTuple):
    """An action in a state, and the outcome that is hoped for."""

    state: int
    action: FondAction
    hoped: GroundOperator


Parents = dict[int, WeakStep | None]
Estimate = tuple[int, Set[int]]


class WeakPlanner:
    """Searches for weak plans and remembers what it learns about states.

    A state is dead if no strong-cyclic policy starts in it: because no relaxed plan does, or because every way from it
    to the goal has a step one of whose outcomes is dead.
    """

    def __init__(self, task: FondTask, deadline: Deadline) -> None:
        self._task = task
        self._deadline = deadline
        self._applicable = applicable_in(task.determinised)
        self._relaxed_plans = RelaxedPlans(task.determinised)
        self._estimates: dict[int, Estimate | None] = {}

    def is_dead(self, state: int) -> bool:
        return self._estimate(state) is None

    def _estimate(self, state: int) -> Estimate | None:
        """How far the goal seems to be, and the operators that look helpful; `None` where the state is dead."""
        if state not in self._estimates:
            self._deadline.check()
            self._estimates[state] = self._relaxed_plans(state)
        return self._estimates[state]

    def find(self, start: int, is_covered: Callable[[int], bool]) -> list[WeakStep] | None:
        """Steps from the state to one that is covered, or `None` where there are none: the state is dead then."""
        parents: Parents = {}
        every: list[tuple[int, int, int, int]] = [(0, 0, start, -1)]  # estimate, serial number, state, operator
        helpful: list[tuple[int, int, int, int]] = []
        serial = 0
        while every or helpful:
            self._deadline.check()
            queue = helpful if helpful and (serial % 2 or not every) else every
            *_, before, index = heapq.heappop(queue)
            serial += 1
            step = self._step(before, index)
            state = before if step is None else apply(before, step.hoped)
            if state in parents or (step is not None and not self._is_safe(step)):
                continue
            estimate = self._estimate(state)
            parents[state] = step
            if is_covered(state):
                return _plan_to(state, parents)
            if estimate is None:
                continue
            for operator in self._applicable(state):
                serial += 1
                entry = (estimate[0], serial, state, operator)
                heapq.heappush(every, entry)
                if operator in estimate[1]:
                    heapq.heappush(helpful, entry)
        self._estimates.update(dict.fromkeys(parents))  # none of them leads to the goal
        return None

    def _step(self, state: int, index: int) -> WeakStep | None:
        if index < 0:
            return None
        return WeakStep(state, self._task.owners[index], self._task.determinised.operators[index])

    def _is_safe(self, step: WeakStep) -> bool:
        """Whether it may bring something, and no outcome is dead."""
        if not step.hoped.add & ~step.state:
            return False
        return not any(self.is_dead(apply(step.state, outcome)) for outcome in step.action.outcomes)


def _plan_to(state: int, parents: Parents) -> list[WeakStep]:
    plan = []
    while (step := parents[state]) is not None:
        plan.append(step)
        state = step.state
    return plan[::-1]

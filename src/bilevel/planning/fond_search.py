"""Weak plans: ways to the goal if nature is kind, by steps none of whose outcomes is known to be dead."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from math import inf
from operator import or_
from typing import NamedTuple

from bilevel.planning.bit_masks import FondAction, GroundOperator, Task, applicable_in, apply
from bilevel.planning.dead_ends import DeadEnds
from bilevel.planning.planner import Deadline
from bilevel.planning.search import HELPFUL_BOOST, Estimate, relaxed_plans
from bilevel.planning.symmetry import Symmetry
from bilevel.symbolic.domain import Action

PATIENCE = 1_000  # states that are looked at before novel ones get turns
LOCAL_STATES = 100  # that are looked at on the way back to a state that is covered


class WeakStep(NamedTuple):
    """An action in a state, and the outcome that is hoped for."""

    state: int
    action: FondAction
    hoped: GroundOperator


Parents = dict[int, WeakStep | None]


class Frontier:
    """The steps that wait to be tried, in three queues that take turns: all, helpful ones, and ones from novel states.

    In the first two, those from the states that look nearest to the goal go first. Helpful steps get more turns while
    they do well. A state is novel if it has a bit that no state before it has that has the same gains, which are bits
    that are never cleared; those with most gains go first. They get turns when the search has taken a while: where
    estimates mislead, it helps to go where nobody was, and to make what progress there is that cannot be undone.
    """

    def __init__(self, start: int, gains: int) -> None:
        self._all: list[tuple[float, int, int, int]] = [(0, 0, start, -1)]  # estimate, serial number, state, operator
        self._helpful: list[tuple[float, int, int, int]] = []
        self._novel: list[tuple[int, float, int, int, int]] = []
        self._gains, self._known_bits = gains, dict[int, int]()
        self._serial, self._states, self._nearest = 0, 0, inf
        self._turns, self._is_novels_turn = 0, False

    def __bool__(self) -> bool:
        return bool(self._all or self._helpful or self._novel)

    def pop(self) -> tuple[int, int]:
        """The next step: a state, and the index of an operator, -1 for the first state itself."""
        self._is_novels_turn = self._states > PATIENCE and not self._is_novels_turn
        if self._novel and (self._is_novels_turn or not (self._all or self._helpful)):
            return heapq.heappop(self._novel)[-2:]
        queue = self._helpful if self._helpful and (self._turns >= 0 or not self._all) else self._all
        self._turns += -1 if queue is self._helpful else 1
        return heapq.heappop(queue)[-2:]

    def push(self, state: int, estimate: Estimate, operators: Iterable[int]) -> None:
        """Add the steps from a state."""
        distance, helpful = estimate
        if distance < self._nearest:
            self._nearest = distance
            self._turns += HELPFUL_BOOST
        gains, self._states = state & self._gains, self._states + 1
        is_novel = bool(state & ~self._known_bits.get(gains, 0))
        self._known_bits[gains] = self._known_bits.get(gains, 0) | state
        for operator in operators:
            self._serial += 1
            heapq.heappush(self._all, (distance, self._serial, state, operator))
            if operator in helpful:
                heapq.heappush(self._helpful, (distance, self._serial, state, operator))
            if is_novel:
                heapq.heappush(self._novel, (-gains.bit_count(), distance, self._serial, state, operator))


class WeakPlanner:
    """Searches for weak plans and remembers what it learns about states and actions.

    A state is dead if no strong-cyclic policy starts in it: because no relaxed plan does, or because every way from it
    to the goal has a step one of whose outcomes is dead. An action is hopeless if one of its outcomes is dead wherever
    it is taken; relaxed plans do without it, which is a great help in finding a way around dead ends.
    """

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self._task = task
        self._deadline = deadline
        self._applicable = applicable_in(task, deadline)
        self._relaxed_plans = relaxed_plans(task, deadline)
        self._symmetry = Symmetry(task, deadline)
        again = reduce(or_, (operator.add for operator in task.operators), self._symmetry.mask)
        self._supplies = ~again  # bits that are never set again, of which more are better
        cleared = (outcome.delete for owner in task.owners for outcome in owner.outcomes)
        self._gains = ~reduce(or_, cleared, 0)  # bits that are never cleared again
        self._estimates: dict[int, Estimate | None] = {}
        self._dead_ends = DeadEnds(
            task,
            self._applicable,
            may_do=lambda action: action.action not in self._hopeless,
            is_dead=lambda state: self._estimate(state) is None,
            deadline=deadline,
        )
        self._operators_of: dict[Action, list[int]] = {}
        for index, owner in enumerate(task.owners):
            self._operators_of.setdefault(owner.action, []).append(index)
        self._hopeless: set[Action] = set()
        self._judged: set[Action] = set()  # since the last action was found hopeless

    def find(self, start: int, is_covered: Callable[[int], bool], nearby: int) -> list[WeakStep] | None:
        """Steps from the state to one that is covered, or `None` where there are none: the state is dead then.

        First it is tried for a while to get to where the bits of `nearby` are set, which are those of a covered state.
        """
        parents: Parents = {}
        end = self._search(start, is_covered, parents, lambda state: self._estimate_to(state, nearby), LOCAL_STATES)
        if end is not None:
            return _plan_to(end, parents)
        while True:
            known = len(self._hopeless)
            parents = {}
            end = self._search(start, is_covered, parents, self._estimate)
            if end is not None:
                return _plan_to(end, parents)
            if len(self._hopeless) == known:
                self._estimates.update(dict.fromkeys(parents))  # none of them leads to the goal
                self._dead_ends.learn(list(parents))
                return None

    def _search(
        self,
        start: int,
        is_covered: Callable[[int], bool],
        parents: Parents,
        estimate: Callable[[int], Estimate | None],
        most_states: float = inf,
    ) -> int | None:
        """A state that is covered, by greedy search.

        Given up when an action is found hopeless: what was thought of states before is of little use then. A state that
        is like one seen before, or differs from it only in having fewer supplies, is not looked at.
        """
        seen: dict[Hashable, list[int]] = {}  # the supplies with which states were seen, by the rest of the state
        frontier, known = Frontier(start, self._gains), len(self._hopeless)
        while frontier and len(self._hopeless) == known and len(parents) < most_states:
            self._deadline.check()
            before, index = frontier.pop()
            step = WeakStep(before, self._task.owners[index], self._task.operators[index]) if index >= 0 else None
            state = before if step is None else apply(before, step.hoped)
            supplies = seen.setdefault(self._symmetry.key(state & ~self._supplies), [])
            if any(not state & self._supplies & ~more for more in supplies):
                continue
            if step is not None and not self._is_safe(step):
                continue
            supplies.append(state & self._supplies)
            parents[state] = step
            if is_covered(state):
                return state
            estimated = estimate(state)
            if estimated is not None:
                frontier.push(state, estimated, self._applicable(state))
        return None

    def _estimate(self, state: int) -> Estimate | None:
        """How far the goal seems to be, and the operators that look helpful; `None` where the state is dead."""
        if state not in self._estimates:
            self._deadline.check()
            self._estimates[state] = None if self._dead_ends.include(state) else self._relaxed_plans(state)
        return self._estimates[state]

    def _estimate_to(self, state: int, goal: int) -> Estimate | None:
        """The same for another goal; `None` where that is out of reach."""
        return self._relaxed_plans(state, goal)

    def _is_safe(self, step: WeakStep) -> bool:
        """Whether the step may bring something, and no outcome is dead."""
        if step.action.action in self._hopeless or not step.hoped.add & ~step.state:
            return False
        if all(self._estimate(apply(step.state, outcome)) for outcome in step.action.outcomes):
            return True
        self._judge(step.action)
        return False

    def _judge(self, action: FondAction) -> None:
        """Find out whether the action is hopeless; if so, its namesakes often are too, so these are judged as well."""
        if action.action in self._judged:
            return
        self._judged.add(action.action)
        if not self._is_hopeless(action):
            return
        self._forbid(action)
        for name, (index, *_) in self._operators_of.items():
            if name.name == action.action.name and name not in self._hopeless:
                self._deadline.check()
                if self._is_hopeless(self._task.owners[index]):
                    self._forbid(self._task.owners[index])
        self._judged.clear()
        self._estimates = {state: None for state, estimate in self._estimates.items() if estimate is None}

    def _is_hopeless(self, action: FondAction) -> bool:
        """Judged from what may be true after each outcome at best."""
        at_best = [self._dead_ends.companions.after(outcome) for outcome in action.outcomes]
        return not all(self._relaxed_plans(state) for state in at_best)

    def _forbid(self, action: FondAction) -> None:
        self._hopeless.add(action.action)
        for index in self._operators_of[action.action]:
            self._relaxed_plans.forbid(index)


def _plan_to(state: int, parents: Parents) -> list[WeakStep]:
    plan = []
    while (step := parents[state]) is not None:
        plan.append(step)
        state = step.state
    return plan[::-1]

"""Weak plans: ways to the goal if nature is kind, by steps none of whose outcomes is known to be hopeless.

A dead end is known in general terms: which bits a state must have one of, not to be dead for the same reason. Which
bits can be set together is known as far as pairs can tell (the h² of Haslum and Geffner, AIPS 2000).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf
from operator import or_
from typing import NamedTuple

from bilevel.planning.bit_masks import FondAction, GroundOperator, Task, applicable_in, apply
from bilevel.planning.condition_index import bits_of, condition_index
from bilevel.planning.planner import Deadline
from bilevel.planning.search import HELPFUL_BOOST, Estimate, relaxed_plans
from bilevel.planning.symmetry import Symmetry
from bilevel.symbolic.domain import Action


class Companions:
    """For each bit those that may be set along with it in a state that can be reached."""

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self.together = [task.state if task.state >> bit & 1 else 0 for bit in range(len(task.literals))]
        self._everything = (1 << len(task.literals)) - 1
        changed = task.state
        everywhere = True  # operators are looked at again only where something has changed
        while changed or everywhere:
            changed = self._extend([o for o in task.operators if everywhere or o.precondition & changed], deadline)
            everywhere = False

    def _extend(self, operators: Sequence[GroundOperator], deadline: Deadline) -> int:
        """Add the pairs that the operators bring together; the bits that have got new companions."""
        changed = 0
        for operator in operators:
            deadline.check()
            after = self.after(operator)
            for bit in bits_of(operator.add if after else 0):
                new = after & ~self.together[bit]
                if new:
                    changed |= 1 << bit | new
                    self.together[bit] |= new
                    for other in bits_of(new):
                        self.together[other] |= 1 << bit
        return changed

    def after(self, operator: GroundOperator) -> int:
        """Every bit that may be set after the operator, 0 where it can never apply."""
        before = self._everything
        for bit in bits_of(operator.precondition):
            before &= self.together[bit]
        if before & operator.precondition != operator.precondition:
            return 0
        return before & ~operator.delete | operator.add


LOCAL_STATES = 100  # that are looked at on the way back to a state that is covered
MOST_STATES = 30  # of a set of dead states that is generalised


@dataclass(eq=False)
class DeadEnds:
    """Known dead ends, each as the bits that it lacks: a state that has none of them is dead too.

    `applicable` gives the operators that apply in a state, `may_do` tells whether an action may be part of a policy at
    all, and `is_dead` whether a state is known to be dead.
    """

    task: Task
    applicable: Callable[[int], list[int]]
    may_do: Callable[[FondAction], bool]
    is_dead: Callable[[int], bool]
    deadline: Deadline

    def __post_init__(self) -> None:
        self._everything = (1 << len(self.task.literals)) - 1
        self._opposites = _opposites(self.task)
        self._lacking = condition_index(len(self.task.literals))
        self._known = 0

    @cached_property
    def companions(self) -> Companions:
        """Costly, and of use only where there are dead ends."""
        return Companions(self.task, self.deadline)

    def include(self, state: int) -> bool:
        return self._lacking.first(self._everything & ~state) is not None

    def learn(self, states: Sequence[int]) -> None:
        """Note that the states, which lead nowhere but to each other and to dead ends, are dead.

        As many bits as possible are set in all of them as long as they lead nowhere else.
        """
        if len(states) > MOST_STATES or not self._is_closed(states):
            return
        more = 0
        waiting = [self._candidates(states)]
        while waiting:
            bits = waiting.pop()
            mask = sum(1 << bit for bit in bits)
            if self._is_closed([state | more | mask for state in states]):
                more |= mask
            elif len(bits) > 1:
                half = len(bits) // 2
                waiting += [bits[half:], bits[:half]]
        for state in states:
            self._add(self._everything & ~(state | more))

    def _add(self, lacking: int) -> None:
        """Note what a dead end lacks, unless a known one lacks no more."""
        if not self.include(self._everything & ~lacking):
            self._lacking.put(self._known, lacking)
            self._known += 1

    def _candidates(self, states: Iterable[int]) -> list[int]:
        """Bits not set in the states that could be, were it not for the opposite literal."""
        found = self._everything
        for state in states:
            possible = state
            for bit in range(len(self._opposites)):
                conflicts = state & ~self.companions.together[bit]
                possible |= (conflicts & ~self._opposites[bit] == 0) << bit
            found &= possible & ~state
        return list(bits_of(found))

    def _is_closed(self, states: Sequence[int]) -> bool:
        """Whether no step that may be taken leads from the states to one that has other bits set."""
        self.deadline.check()
        goal = self.task.goal
        return not any(goal & state == goal or self._has_exit(state, states) for state in states)

    def _has_exit(self, state: int, states: Sequence[int]) -> bool:
        for index in self.applicable(state):
            action = self.task.owners[index]
            after = apply(state, self.task.operators[index])
            if any(not after & ~inside for inside in states) or not self.may_do(action):
                continue
            if not any(self.is_dead(apply(state, outcome)) for outcome in action.outcomes):
                return True
        return False


def _opposites(task: Task) -> list[int]:
    """For each bit the mask of the bit that stands for the opposite literal, 0 where there is none."""
    bits = {literal: 1 << bit for bit, literal in enumerate(task.literals)}
    return [bits.get(literal.opposite, 0) for literal in task.literals]


class WeakStep(NamedTuple):
    """An action in a state, and the outcome that is hoped for."""

    state: int
    action: FondAction
    hoped: GroundOperator


Parents = dict[int, WeakStep | None]


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
        """A state that is covered, by greedy search that takes turns between all steps and those that look helpful.

        Given up when an action is found hopeless: what was thought of states before is of little use then. A state that
        is like one seen before, or differs from it only in having fewer supplies, is not looked at.
        """
        seen: dict[Hashable, list[int]] = {}  # the supplies with which states were seen, by the rest of the state
        every: list[tuple[float, int, int, int]] = [(0, 0, start, -1)]  # estimate, serial number, state, operator
        helpful: list[tuple[float, int, int, int]] = []
        serial, known = 0, len(self._hopeless)
        turns, nearest = 0, inf
        while (every or helpful) and len(self._hopeless) == known and len(parents) < most_states:
            self._deadline.check()
            serial += 1
            queue = helpful if helpful and (turns >= 0 or not every) else every
            turns += -1 if queue is helpful else 1
            *_, before, index = heapq.heappop(queue)
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
            distance, looks_helpful = estimate(state) or (inf, None)
            if distance < nearest:
                nearest = distance
                turns += HELPFUL_BOOST
            for operator in self._applicable(state) if looks_helpful is not None else ():
                serial += 1
                heapq.heappush(every, (distance, serial, state, operator))
                if looks_helpful and operator in looks_helpful:
                    heapq.heappush(helpful, (distance, serial, state, operator))
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

"""A small planner of our own: shortest plans for small problems, greedy heuristic search for larger ones.

Rules are learned from plans, and a detour in a plan becomes a bad rule. So regression goes first and breadth-first
search after it, which find the same shortest plan; when the latter has seen `BREADTH_FIRST_STATES` states, greedy
best-first search with the FF heuristic takes over, and steps that its plan can do without are dropped.
Everything is ordered, so that the same problem gives the same plan; only a deadline may change the answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Set

from bilevel.planning.flips import plan_by_flips
from bilevel.planning.grounding import (
    Ground,
    GroundOperator,
    Task,
    applicable_in,
    ground_task,
    makers_of_new_objects,
)
from bilevel.planning.planner import Deadline, PlanResult, Status, TimeUp, bits_of, without_needless_steps
from bilevel.planning.regression import shortest_by_regression
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.semantics import is_solved

BREADTH_FIRST_STATES = 100_000
STATES_PER_CONDITION = 5  # a condition takes regression about as long as so many states take breadth-first search
HELPFUL_BOOST = 1000  # turns that the queue of helpful operators gains when the estimate improves, as in LAMA
POOL_DOUBLINGS = 3  # how often a problem is tried again with twice as many objects for nature to make

Operators = list[GroundOperator]


def search(
    domain: Domain,
    problem: Problem,
    time_limit: float,
    breadth_first_states: int = BREADTH_FIRST_STATES,
    ground: Ground = ground_task,
) -> PlanResult:
    """Plan with the built-in search; the plan is a shortest one if regression or breadth-first search get that far."""
    return search_until(Deadline(time_limit), domain, problem, breadth_first_states, ground)


def search_until(
    deadline: Deadline,
    domain: Domain,
    problem: Problem,
    breadth_first_states: int = BREADTH_FIRST_STATES,
    ground: Ground = ground_task,
) -> PlanResult:
    """The same until a deadline of the caller's, which may be one of effort instead of time."""
    if is_solved(problem, problem.state):
        return PlanResult(Status.SOLVED)
    pools = [0]
    if makers_of_new_objects(domain, problem):
        goals = len(problem.goal) + len(problem.negative_goal)
        pools = [goals << doubling for doubling in range(POOL_DOUBLINGS + 1)]
    try:
        for pool in pools:
            task = ground(domain, problem, deadline, pool)
            finished, plan = plan_by_flips(task, deadline) if task else (True, None)
            if task and not finished:
                # A goal of many facts can be achieved in many orders, and regression goes through all of them.
                conditions = breadth_first_states // (STATES_PER_CONDITION * max(task.goal.bit_count(), 1))
                finished, plan = shortest_by_regression(task, deadline, conditions)
            if task and not finished:
                finished, plan = breadth_first(task, deadline, breadth_first_states)
            if task and not finished:
                plan = greedy_best_first(task, deadline)
            if plan is not None:
                steps = [operator.step for operator in plan]
                return PlanResult(Status.SOLVED, without_needless_steps(domain, problem, steps, deadline))
    except TimeUp:
        return PlanResult(Status.TIMED_OUT)
    bound = f" that makes at most {pools[-1]} new objects of a type" if pools[-1] else ""
    return PlanResult(Status.UNSOLVABLE, message=f"no plan exists{bound}")


Parents = dict[int, tuple[int, int]]  # a state to the state before it and the index of the operator between


def _plan_to(task: Task, state: int, parents: Parents) -> Operators:
    plan = []
    while state != task.state:
        state, index = parents[state]
        plan.append(task.operators[index])
    return plan[::-1]


def breadth_first(task: Task, deadline: Deadline, most_states: int) -> tuple[bool, Operators | None]:
    """Whether the search came to an end within `most_states`, and if so a shortest plan if there is one."""
    applicable = applicable_in(task, deadline)
    parents: Parents = {task.state: (task.state, -1)}
    frontier = [task.state]
    for state in frontier:  # grows while it is read
        deadline.check()
        if len(parents) > most_states:
            return False, None
        for index in applicable(state):
            after = task.operators[index].apply(state)
            if after not in parents:
                parents[after] = (state, index)
                if after & task.goal == task.goal:
                    return True, _plan_to(task, after, parents)
                frontier.append(after)
    return True, None


def greedy_best_first(task: Task, deadline: Deadline) -> Operators | None:
    """Always the step from the state that looks nearest to the goal; states are estimated when they are taken up.

    Steps that begin a relaxed plan (helpful ones) also wait in a queue of their own, which gets more turns while it
    does well.
    """
    applicable, estimate = applicable_in(task, deadline), RelaxedPlans(task, deadline)
    parents: Parents = {}
    queues: tuple[list[tuple[int, int, int, int]], ...] = ([(0, 0, task.state, -1)], [])  # all steps, helpful ones
    turns = [0, 0]
    nearest, serial = len(task.literals) * len(task.operators) + 1, 0
    while any(queues):
        deadline.check()
        which = 1 if queues[1] and (turns[1] <= turns[0] or not queues[0]) else 0
        turns[which] += 1
        *_, before, index = heapq.heappop(queues[which])
        state = before if index < 0 else task.operators[index].apply(before)
        if state in parents:
            continue
        parents[state] = (before, index)
        if state & task.goal == task.goal:
            return _plan_to(task, state, parents)
        estimated = estimate(state)
        if estimated is None:
            continue
        distance, helpful = estimated
        if distance < nearest:
            nearest = distance
            turns[1] -= HELPFUL_BOOST
        for step in applicable(state):
            serial += 1
            entry = (distance, serial, state, step)
            heapq.heappush(queues[0], entry)
            if step in helpful:
                heapq.heappush(queues[1], entry)
    return None


Estimate = tuple[int, Set[int]]  # the length of a relaxed plan and its operators that apply now


class RelaxedPlans:
    """The FF heuristic: how many operators a plan needs if nothing is ever deleted."""

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self._goal = task.goal
        self._conditions = [list(bits_of(operator.precondition)) for operator in task.operators]
        self._adds = [operator.add for operator in task.operators]
        self._groups: list[list[int]] = []  # of operators with the same condition
        self._group_adds: list[int] = []  # at least all that the operators of each group add
        self._counts: list[int] = []  # the sizes of the groups' conditions
        self._waiting: list[list[int]] = [[] for _ in task.literals]  # for each bit the groups whose condition has it
        numbers: dict[int, int] = {}
        for index, operator in enumerate(task.operators):
            deadline.check()
            number = numbers.setdefault(operator.precondition, len(self._groups))
            if number == len(self._groups):
                self._groups.append([])
                self._group_adds.append(0)
                self._counts.append(len(self._conditions[index]))
                for bit in self._conditions[index]:
                    self._waiting[bit].append(number)
            self._groups[number].append(index)
            self._group_adds[number] |= operator.add
        self._without_condition = numbers.get(0)

    def __call__(self, state: int, goal: int | None = None) -> Estimate | None:
        """The length of a relaxed plan and its operators that apply now, or `None` where there is none."""
        goal = self._goal if goal is None else goal
        supporter, needed = self._supporters(state, goal), list(bits_of(goal))
        if any(bit not in supporter for bit in needed):
            return None
        plan: set[int] = set()
        wanted = set(needed)
        while needed:
            index = supporter[needed.pop()]
            if index is not None and index not in plan:
                plan.add(index)
                new = [bit for bit in self._conditions[index] if bit not in wanted]
                needed.extend(new)
                wanted.update(new)
        helpful = {i for i in plan if all(supporter[bit] is None for bit in self._conditions[i])}
        return len(plan), helpful

    def _supporters(self, state: int, goal: int) -> dict[int, int | None]:
        """Each bit that is set, or can be before the goal is reached, and the first operator to set it, if any."""
        supporter: dict[int, int | None] = dict.fromkeys(bits_of(state))
        queue, reached, missing = list(supporter), state, self._counts.copy()
        for index in self._groups[self._without_condition] if self._without_condition is not None else ():
            reached = _support(supporter, queue, reached, index, self._adds[index])
        for bit in queue:  # grows while it is read
            if reached & goal == goal:
                break
            for number in self._waiting[bit]:
                missing[number] -= 1
                if missing[number] == 0 and self._group_adds[number] & ~reached:
                    for index in self._groups[number]:
                        if self._adds[index] & ~reached:
                            reached = _support(supporter, queue, reached, index, self._adds[index])
        return supporter


def _support(supporter: dict[int, int | None], queue: list[int], reached: int, index: int, add: int) -> int:
    """Note the operator as the first to set its new bits, and return all that are reached then."""
    for bit in bits_of(add & ~reached):
        supporter[bit] = index
        queue.append(bit)
    return reached | add

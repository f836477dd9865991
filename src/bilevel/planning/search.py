"""A small planner of our own: shortest plans for small problems, greedy heuristic search for larger ones.

Rules are learned from plans, and a detour in a plan becomes a bad rule. So breadth-first search goes first, which finds
a shortest plan; when it has seen `BREADTH_FIRST_STATES` states, greedy best-first search with the FF heuristic takes
over, and steps that its plan can do without are dropped. Everything is ordered, so that the same problem gives the same
plan; only a deadline may change the answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence, Set
from math import inf

from bilevel.planning.grounding import (
    ConditionIndex,
    Grounding,
    GroundOperator,
    GroundTask,
    bits_of,
    makers_of_new_objects,
)
from bilevel.planning.planner import Deadline, PlanResult, Status, TimeUp, without_needless_steps
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.semantics import is_solved

BREADTH_FIRST_STATES = 100_000
HELPFUL_BOOST = 1000  # turns that the queue of helpful operators gains when the estimate improves, as in LAMA
POOL_DOUBLINGS = 3  # how often a problem is tried again with twice as many objects for nature to make


def search(
    domain: Domain,
    problem: Problem,
    time_limit: float | Deadline,
    breadth_first_states: int = BREADTH_FIRST_STATES,
    grounding: Grounding | None = None,
) -> PlanResult:
    """Plan with the built-in search, within a time or an effort; the shortest way if breadth-first search finds it."""
    deadline = time_limit if isinstance(time_limit, Deadline) else Deadline(time_limit)
    if is_solved(problem, problem.state):
        return PlanResult(Status.SOLVED)
    grounding = grounding or Grounding()
    pools = [0]
    if makers_of_new_objects(domain, problem):
        goals = len(problem.goal) + len(problem.negative_goal)
        pools = [goals << doubling for doubling in range(POOL_DOUBLINGS + 1)]
    try:
        for pool in pools:
            task = grounding.task(domain, problem, deadline, pool)
            plan = plan_for_task(task, deadline, breadth_first_states) if task else None
            if plan is not None:
                steps = [operator.step for operator in plan]
                return PlanResult(Status.SOLVED, without_needless_steps(domain, problem, steps, deadline))
    except TimeUp:
        return PlanResult(Status.TIMED_OUT)
    bound = f" that makes at most {pools[-1]} new objects of a type" if pools[-1] else ""
    return PlanResult(Status.UNSOLVABLE, message=f"no plan exists{bound}")


def plan_for_task(task: GroundTask, deadline: Deadline, breadth_first_states: int) -> list[GroundOperator] | None:
    """Return a plan, by the first way that comes to an end; `None` where there is none."""
    flips = None if task.has_costs or task.axioms else flips_of(task, deadline)
    if flips is not None:
        return plan_by_flips(task, flips, deadline)
    found = cheapest_first(task, deadline, breadth_first_states)
    if found is None:
        estimate = RelaxedPlans(task, deadline)
        found = BestFirst(task, deadline).run(task.state, lambda state: state & task.goal == task.goal, estimate)
    parents, end = found
    return None if end is None else [task.operators[index] for _, index in path_to(end, parents)]


Parents = dict[int, tuple[int, int]]  # a state to the state before it and the index of the operator between, or -1
Searched = tuple[Parents, int | None]  # the states that were met, and the end that was found, if there is one


def path_to(state: int, parents: Parents) -> list[tuple[int, int]]:
    """Return the states on the way to this one, each with the index of the operator that is applied there."""
    path = []
    while parents[state][1] >= 0:
        path.append(parents[state])
        state = parents[state][0]
    return path[::-1]


def cheapest_first(task: GroundTask, deadline: Deadline, most_states: int) -> Searched | None:
    """Search for the goal that costs least to reach; `None` where there are more than `most_states` on the way.

    Where all actions cost the same it is breadth first, and the plan a shortest one.
    """
    applicable = ConditionIndex(operator.precondition for operator in task.operators)
    parents: Parents = {task.state: (task.state, -1)}
    costs: dict[int, float] = {task.state: 0}
    queue, serial = [(0.0, 0, task.state)], 0
    while queue:
        cost, _, state = heapq.heappop(queue)
        deadline.check()
        if len(parents) > most_states:
            return None
        if costs[state] < cost:  # as a cheaper way was found
            continue
        if state & task.goal == task.goal:
            return parents, state
        for index in applicable.holding(state):
            operator = task.operators[index]
            after, total = operator.apply(state), cost + operator.cost
            if total < costs.get(after, inf):
                costs[after], parents[after] = total, (state, index)
                if after & task.goal == task.goal and not task.has_costs:
                    return parents, after
                serial += 1
                heapq.heappush(queue, (total, serial, after))
    return parents, None


Estimate = tuple[float, Set[int]]  # the cost of a relaxed plan and its operators that apply now


class BestFirst:
    """Greedy best-first search: always the step from the state that looks nearest; states are estimated when taken up.

    Steps that begin a relaxed plan (helpful ones) also wait in a queue of their own, which gets more turns while it
    does well.
    """

    def __init__(self, task: GroundTask, deadline: Deadline) -> None:
        self._task, self._deadline = task, deadline
        self._applicable = ConditionIndex(operator.precondition for operator in task.operators)

    def run(
        self,
        start: int,
        is_end: Callable[[int], bool],
        estimate: Callable[[int], Estimate | None],
        is_allowed: Callable[[int, int], bool] = lambda state, index: True,
        most_states: float = inf,
    ) -> Searched:
        """Search for the first state that is an end, among `most_states` at most.

        `is_allowed` says whether the operator of an index may be applied in a state.
        """
        parents: Parents = {}
        every = [(0.0, 0, start, -1)]  # an estimate, a serial number, a state, the index of an operator
        helpful: list[tuple[float, int, int, int]] = []
        serial, turns, nearest = 0, 0, inf
        while (every or helpful) and len(parents) < most_states:
            self._deadline.check()
            queue = helpful if helpful and (turns >= 0 or not every) else every
            turns += -1 if queue is helpful else 1
            *_, before, index = heapq.heappop(queue)
            state = before if index < 0 else self._task.operators[index].apply(before)
            if state in parents or (index >= 0 and not is_allowed(before, index)):
                continue
            parents[state] = before, index
            if is_end(state):
                return parents, state
            estimated = estimate(state)
            if estimated is None:
                continue
            distance, best = estimated
            if distance < nearest:
                nearest = distance
                turns += HELPFUL_BOOST
            for step in self._applicable.holding(state):
                serial += 1
                heapq.heappush(every, (distance, serial, state, step))
                if step in best:
                    heapq.heappush(helpful, (distance, serial, state, step))
        return parents, None


class RelaxedPlans:
    """The FF heuristic: how many operators a plan needs if nothing is ever deleted."""

    def __init__(self, task: GroundTask, deadline: Deadline) -> None:
        self._goal, operators = task.goal, [*task.operators, *task.axioms]
        self._costs = [operator.cost for operator in operators] if task.has_costs else None
        self._adds = [operator.add for operator in operators]
        self._conditions = [[*bits_of(operator.precondition)] for operator in operators]
        groups: dict[int, list[int]] = {}
        for index, operator in enumerate(operators):
            deadline.check()
            groups.setdefault(operator.precondition, []).append(index)
        self._groups = [*groups.values()]  # of operators with the same condition
        self._counts = [condition.bit_count() for condition in groups]
        self._unconditional = groups.get(0, [])
        self._waiting: list[list[int]] = [[] for _ in range(2 * len(task.atoms))]  # the groups that ask for each bit
        for number, condition in enumerate(groups):
            for bit in bits_of(condition):
                self._waiting[bit].append(number)

    def __call__(self, state: int, goal: int | None = None) -> Estimate | None:
        """The length of a relaxed plan and its operators that apply now, or `None` where there is none."""
        goal = self._goal if goal is None else goal
        supporter, needed = self._supporters(state, goal), [*bits_of(goal)]
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
        return len(plan) if self._costs is None else sum([self._costs[i] for i in plan]), helpful

    def _supporters(self, state: int, goal: int) -> dict[int, int | None]:
        """Each bit that is set, or can be before the goal is reached, and the first operator to set it, if any."""
        supporter: dict[int, int | None] = dict.fromkeys(bits_of(state))
        reached, missing, ready = state, self._counts.copy(), self._unconditional
        queue = [*supporter]
        taken = iter(queue)  # which grows meanwhile
        while reached & goal != goal:
            for index in ready:
                new = self._adds[index] & ~reached
                if new:
                    reached |= new
                    for bit in bits_of(new):
                        supporter[bit] = index
                        queue.append(bit)
            bit = next(taken, -1)
            if bit < 0:
                break
            ready = []
            for number in self._waiting[bit]:
                missing[number] -= 1
                if not missing[number]:
                    ready += self._groups[number]
        return supporter


# Problems in which actions only flip facts, such as switches of lamps, are linear equations modulo two. An action that
# can always be done and always flips the same facts may be done in any order with others of that kind, and twice is as
# good as not at all. So a plan is a set of actions, and which sets lead to the goal is a matter of elimination, where a
# search would have to go through the states: there may be two to the power of the actions of them.

MOST_IDLE = 12  # sets of actions that together flip nothing: with and without each of these, the shortest plan is taken

Flips = dict[int, dict[int, GroundOperator]]  # the bits that are flipped, those of them that were set, the operator


def flips_of(task: GroundTask, deadline: Deadline) -> Flips | None:
    """The operators by what they flip, or `None` unless each flip can be done at any time, whatever was done before."""
    flips: Flips = {}
    for operator in task.operators:
        if operator.precondition & ~operator.delete or operator.add & operator.delete:
            return None
        flips.setdefault(operator.add | operator.delete, {}).setdefault(operator.delete, operator)
    for flip, ways in flips.items():
        met = [task.state & flip]  # which of its bits are set at first, and after any other flips
        for before in met:  # grows while it is read
            deadline.check()
            if before not in ways:
                return None
            met += {before ^ other & flip for other in flips}.difference(met)
    return flips


def plan_by_flips(task: GroundTask, flips: Flips, deadline: Deadline) -> list[GroundOperator] | None:
    """Return a plan if there is one, a shortest one in most cases."""
    chosen, plan, state = _solve(list(flips), ~task.state & task.goal, task.goal, deadline), [], task.state
    if chosen is None:
        return None
    for flip in chosen:
        plan.append(flips[flip][state & flip])
        state ^= flip
    return plan


def _solve(flips: Sequence[int], wanted: int, goal: int, deadline: Deadline) -> list[int] | None:
    """Those of the flips that together flip, of the bits of the goal, just the wanted ones; few of them."""
    pivots: list[tuple[int, int, int]] = []  # a bit, a sum of flips that has it and no earlier pivot, and whose sum
    idle: list[int] = []  # sums that flip nothing

    def reduced(mask: int, members: int) -> tuple[int, int]:
        for bit, other, its in pivots:
            if mask & bit:
                mask, members = mask ^ other, members ^ its
        return mask, members

    for number, flip in enumerate(flips):
        deadline.check()
        mask, members = reduced(flip & goal, 1 << number)
        if mask:
            pivots.append((mask & -mask, mask, members))
        else:
            idle.append(members)
    mask, members = reduced(wanted, 0)
    if mask:
        return None
    sums = [members]
    for other in idle[:MOST_IDLE]:
        sums = [total ^ other for total in sums] + sums
    best = min(sums, key=lambda total: (total.bit_count(), total))
    return [flip for number, flip in enumerate(flips) if best >> number & 1]

"""Shortest plans by regression: backwards from the goal, guided by what can hold together after so many steps.

Rules are learned from one goal fact at a time, and few objects matter for it. Search forward from the state goes
through all that the others could do meanwhile; regression asks only for what the goal needs. Its nodes are conditions,
that is, sets of bits that must be set. Before it begins, it is found out which pairs of bits can be set after each
number of steps: a condition needs at least as many steps as its last pair (the heuristic h² of Haslum and Geffner),
and one with a pair that never comes up is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bilevel.planning.grounding import GroundOperator, Task, applicable_in
from bilevel.planning.planner import Deadline, bits_of

MOST_BITS = 500  # of a task; the pairs are that many squared

Masks = list[int]  # for each bit the bits that can be set together with it


class Layers(NamedTuple):
    """What can be set together after 0, 1, 2, … steps.

    `pairs` has it for each number of steps, `beside` for each operator: from how many steps on it can apply, and what
    can be set then, with another entry whenever that becomes more.
    """

    pairs: list[Masks]
    beside: list[list[tuple[int, int]]]

    def distance(self, condition: int, least: int = 0, most: int | None = None) -> int:
        """Return how many steps, from `least` up to `most`, at least lead to the condition; `most` where none do."""
        bits = [*bits_of(condition)]
        most = len(self.pairs) if most is None else most
        for steps in range(least, most):
            pairs = self.pairs[steps]
            for bit in bits:
                if condition & ~pairs[bit]:
                    break
            else:
                return steps
        return most


def shortest_by_regression(
    task: Task, deadline: Deadline, most_conditions: int
) -> tuple[bool, list[GroundOperator] | None]:
    """Whether the search came to an end within so many conditions, and if so a shortest plan if there is one.

    Of all shortest plans it is the first in the order of the operators, which is the one of breadth-first search.
    """
    if not most_conditions or len(task.literals) > MOST_BITS:
        return False, None
    steps_to = conditions_of_shortest_plans(task, deadline, most_conditions)
    if steps_to is None:
        return False, None
    lengths = [steps for condition, steps in steps_to.items() if condition & task.state == condition]
    return True, _first_plan(task, steps_to, min(lengths), deadline) if lengths else None


def reached_pairs(task: Task, deadline: Deadline) -> Layers:
    """Return the pairs of bits that can be set after each number of steps, until no more come up."""
    operators, reached = task.operators, task.state
    conditions = [list(bits_of(operator.precondition)) for operator in operators]
    pairs = [reached if reached >> bit & 1 else 0 for bit in range(len(task.literals))]
    layers = Layers([pairs], [[] for _ in operators])
    changed = reached
    while True:
        new = pairs.copy()
        for index, operator in enumerate(operators):
            deadline.check()
            if not operator.precondition & changed and operator.precondition:
                continue
            beside = reached
            for bit in conditions[index]:
                beside &= pairs[bit]
            known = layers.beside[index]
            if operator.precondition & ~beside or (known and known[-1][1] == beside):
                continue
            known.append((len(layers.pairs) - 1, beside))
            after = beside & ~operator.delete | operator.add
            for bit in bits_of(operator.add):
                for other in bits_of(after & ~new[bit]):
                    new[bit] |= 1 << other
                    new[other] |= 1 << bit
        changed = sum(1 << bit for bit, others in enumerate(new) if others != pairs[bit])
        if not changed:
            return layers
        pairs = new
        layers.pairs.append(pairs)
        reached |= changed


def conditions_of_shortest_plans(task: Task, deadline: Deadline, most_conditions: int) -> dict[int, int] | None:
    """Return the conditions that can come up on a shortest plan, and others, with their numbers of steps to the goal.

    Conditions are taken up in the order of the least length of a plan through them, until one of them holds in the
    task's state; then the others of that length are, too. `None` where there are more than `most_conditions`.
    """
    layers = reached_pairs(task, deadline)
    achievers = _Achievers(task, layers)
    length = layers.distance(task.goal)
    steps_to = {task.goal: 0}
    waiting = {length: [task.goal]} if length < len(layers.pairs) else {}
    found = False
    while waiting and not found:
        length = min(waiting)
        queue = waiting.pop(length)
        for condition in queue:  # grows while it is read
            deadline.check()
            most_conditions -= 1
            if most_conditions < 0:
                return None
            if condition & task.state == condition:
                found = True
                continue
            steps = steps_to[condition] + 1
            far = length - steps + 1  # the condition's own distance, as `length` is the least through it
            for index in achievers(condition):
                operator = task.operators[index]
                rest = condition & ~operator.add
                before = rest | operator.precondition
                if before not in steps_to:
                    steps_to[before] = steps
                    applies = next(first for first, beside in layers.beside[index] if not rest & ~beside)
                    through = steps + (applies if applies >= far else layers.distance(rest, applies, far))
                    (queue if through <= length else waiting.setdefault(through, [])).append(before)
    return steps_to


class _Achievers:
    """Gives the operators that can be the last before a condition: bit i of a mask stands for operator i.

    One that sets a bit of it will do if it clears no other, and if the others can be set where it applies.
    """

    def __init__(self, task: Task, layers: Layers) -> None:
        self._setting, self._excluding = [0] * len(task.literals), [0] * len(task.literals)
        everything = (1 << len(task.literals)) - 1
        for index, (operator, beside) in enumerate(zip(task.operators, layers.beside, strict=True)):
            if beside:
                for bit in bits_of(operator.add):
                    self._setting[bit] |= 1 << index
                for bit in bits_of((operator.delete | everything & ~beside[-1][1]) & ~operator.add):
                    self._excluding[bit] |= 1 << index

    def __call__(self, condition: int) -> Iterator[int]:
        setting = excluding = 0
        for bit in bits_of(condition):
            setting |= self._setting[bit]
            excluding |= self._excluding[bit]
        return bits_of(setting & ~excluding)


def _first_plan(task: Task, steps_to: dict[int, int], length: int, deadline: Deadline) -> list[GroundOperator]:
    """Return the first shortest plan: at each step the first operator after which the goal is a step nearer."""
    nearer: list[list[int]] = [[] for _ in range(length)]
    for condition, steps in steps_to.items():
        if steps < length:
            nearer[steps].append(condition)
    applicable, state, plan = applicable_in(task, deadline), task.state, []
    for conditions in reversed(nearer):
        deadline.check()
        for index in applicable(state):
            after = task.operators[index].apply(state)
            if any(condition & after == condition for condition in conditions):
                plan.append(task.operators[index])
                state = after
                break
    return plan

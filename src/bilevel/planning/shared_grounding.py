"""Ground a problem once, for plans from many of its states to many goals.

`ground_task` of `bit_masks` does it for one state and one goal, and is what this must agree with.
"""

from __future__ import annotations

from collections.abc import Set

from bilevel.planning.bit_masks import GroundOperator, Task
from bilevel.planning.grounding import Literal, literals, reachable_instances
from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import Domain, Problem


class SharedGrounding:
    """Makes tasks as `ground_task` does, and grounds anew only where the problem is another one.

    What can be reached from a state that can be reached itself is known already; operators that cannot be reached from
    it do no harm. So plans are as good as those for `ground_task`, and shortest plans the same.
    """

    def __init__(self) -> None:
        self._grounded: GroundProblem | None = None

    def __call__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Task | None:
        if self._grounded is None or not self._grounded.covers(domain, problem, new_objects):
            self._grounded = GroundProblem(domain, problem, deadline, new_objects)
        return self._grounded.task(problem, deadline)


class GroundProblem:
    """The instances of a problem's actions, with literals by their number in the order of literals."""

    def __init__(self, domain: Domain, problem: Problem, deadline: Deadline, new_objects: int) -> None:
        instances, self._reached = reachable_instances(domain, problem, deadline, new_objects)
        self._domain, self._objects, self._new_objects = domain, problem.objects, new_objects
        known = {literal for i in instances for part in (i.condition, i.add, i.delete) for literal in part}
        self._literals = sorted(known)
        self._numbers = {literal: number for number, literal in enumerate(self._literals)}
        self._instances: list[tuple[PlanStep, Set[int], Set[int], Set[int]]] = []
        self._achievers: dict[int, list[int]] = {}
        for index, instance in enumerate(instances):
            deadline.check()
            condition, add, delete = map(self._numbered, (instance.condition, instance.add, instance.delete))
            self._instances.append((instance.step, condition, add, delete))
            for number in add:
                self._achievers.setdefault(number, []).append(index)
        self._changing = frozenset[int]().union(*(delete for _, _, _, delete in self._instances))
        self._opposites = [self._numbers.get(literal.opposite, -1) for literal in self._literals]

    def _numbered(self, part: Set[Literal]) -> frozenset[int]:
        return frozenset([self._numbers[literal] for literal in part])

    def covers(self, domain: Domain, problem: Problem, new_objects: int) -> bool:
        """Whether the problem differs from the one that was grounded in the goal and in what holds by now only."""
        same = self._domain is domain and self._objects == problem.objects and self._new_objects == new_objects
        return same and problem.state <= self._reached

    def task(self, problem: Problem, deadline: Deadline) -> Task | None:
        """Return the problem over bit masks, without what cannot matter; `None` where it is plain that it has no plan.

        A literal that never changes needs no bit, and an action that asks for one that is never true is no operator.
        """
        state = problem.state
        goal = literals(problem.goal, problem.negative_goal)
        unsettled = {literal for literal in goal if (literal.atom in state) is not literal.present}
        if any(literal not in self._numbers for literal in unsettled):
            return None
        wanted = {self._numbers[literal] for literal in goal if literal in self._numbers}
        true = {n for n, (atom, present) in enumerate(self._literals) if (atom in state) is present}
        constant = true - self._changing
        impossible = {n for n, other in enumerate(self._opposites) if n not in true and other not in self._changing}
        if wanted & impossible:
            return None
        possible = [condition.isdisjoint(impossible) for _, condition, _, _ in self._instances]
        relevant = self._relevant(wanted - constant, constant, possible, deadline)
        bits = {number: 1 << place for place, number in enumerate(sorted(relevant))}

        def mask(numbers: Set[int]) -> int:
            return sum([bits[number] for number in numbers if number in bits])

        operators: dict[tuple[int, int, int], GroundOperator] = {}
        for (step, *parts), is_possible in zip(self._instances, possible, strict=True):
            if is_possible and not relevant.isdisjoint(parts[1]):
                precondition, add, delete = map(mask, parts)
                if add & ~precondition:
                    made = GroundOperator(step, precondition, add, delete)
                    operators.setdefault((precondition, add, delete), made)
        kept = tuple([self._literals[number] for number in bits])
        return Task(kept, tuple(operators.values()), mask(true), mask(wanted))

    def _relevant(
        self, wanted: Set[int], constant: Set[int], possible: list[bool], deadline: Deadline
    ) -> frozenset[int]:
        """Return the changing literals that are wanted, or that what adds a relevant one asks for."""
        relevant, unexplored = set(wanted), list(wanted)
        seen: set[int] = set()
        while unexplored:
            deadline.check()
            for index in self._achievers.get(unexplored.pop(), ()):
                if possible[index] and index not in seen:
                    seen.add(index)
                    new = self._instances[index][1] - constant - relevant
                    relevant |= new
                    unexplored.extend(new)
        return frozenset(relevant)

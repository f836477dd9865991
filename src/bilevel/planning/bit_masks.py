"""A planning problem over bit masks: states, conditions and effects are integers, and bit i stands for a literal.

Having more bits set never hurts: every literal that a condition tests has its own bit, present and absent ones alike.
So where a policy works in a state it works in every state that has more bits set, and an outcome that sets no bit that
was not set already brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from itertools import groupby

from bilevel import compiled
from bilevel.planning.condition_index import bits_of
from bilevel.planning.grounding import Literal, NumberedInstance, reachable
from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import Action, Domain, Problem
from bilevel.symbolic.pddl_problem import no_garbage_collection


@dataclass(frozen=True, slots=True)
class GroundOperator:
    """One way a step can go: where the `precondition` bits are set it clears `delete`, then sets `add`."""

    step: PlanStep
    precondition: int
    add: int
    delete: int

    @property
    def is_useful(self) -> bool:
        """Whether it can set a bit that was not set before."""
        return bool(self.add & ~self.precondition)


@dataclass(frozen=True, slots=True)
class FondAction:
    """An action and all that it may do: its outcomes have its precondition, and no two of them are the same."""

    action: Action
    precondition: int
    outcomes: tuple[GroundOperator, ...]


@dataclass(frozen=True)
class Task:
    """A planning problem over bit masks; bit i stands for `literals[i]`.

    Where actions may turn out in several ways, operators are their useful outcomes, and `owners[i]` is the action of
    operator i.
    """

    literals: tuple[Literal, ...]
    operators: tuple[GroundOperator, ...]
    state: int
    goal: int
    owners: tuple[FondAction, ...] = ()


def apply(state: int, operator: GroundOperator) -> int:
    """Return the state after an operator."""
    return state & ~operator.delete | operator.add


ApplicableIn = Callable[[int], list[int]]  # from a state to the indices of its applicable operators, in order


def applicable_in(task: Task, deadline: Deadline) -> ApplicableIn:
    """The function for a task, compiled where that part was built."""
    fast = compiled.find("bilevel.planning._bit_masks")
    make: Callable[[Task, Deadline], ApplicableIn] = fast.Applicable if fast else filed_operators
    return make(task, deadline)


def filed_operators(task: Task, deadline: Deadline) -> ApplicableIn:
    """The function in Python.

    Operators are filed under their rarest condition, so that most of those that do not apply are never looked at.
    """
    uses: dict[int, int] = {}
    for operator in task.operators:
        deadline.check()
        for bit in bits_of(operator.precondition):
            uses[bit] = uses.get(bit, 0) + 1
    filed: dict[int, list[tuple[int, int]]] = {}
    always = []
    for index, operator in enumerate(task.operators):
        deadline.check()
        if operator.precondition:
            rarest = min(bits_of(operator.precondition), key=lambda bit: (uses[bit], bit))
            filed.setdefault(rarest, []).append((operator.precondition, index))
        else:
            always.append(index)
    keys = sum(1 << bit for bit in filed)

    def applicable(state: int) -> list[int]:
        found = [index for bit in bits_of(state & keys) for needs, index in filed[bit] if needs & state == needs]
        return sorted(always + found)

    return applicable


def ground_task(domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Task | None:
    """The problem over bit masks without useless operators, or `None` where not even its relaxation is solvable."""
    task = determinised_task(domain, problem, deadline, new_objects)
    if task is None:
        return None
    operators: dict[tuple[int, int, int], GroundOperator] = {}
    for operator in task.operators:
        if operator.is_useful:
            operators.setdefault((operator.precondition, operator.add, operator.delete), operator)
    return replace(task, operators=tuple(operators.values()))


@no_garbage_collection()
def determinised_task(domain: Domain, problem: Problem, deadline: Deadline, new_objects: int = 0) -> Task | None:
    """The problem over bit masks, every outcome of each action an operator of its own, those of one action together.

    Only literals that can change and can matter have a bit. `None` where not even the relaxation reaches the goal.
    """
    found = reachable(domain, problem, deadline, new_objects)
    numbers = {atom: number for number, atom in enumerate(found.atoms)}
    if any(numbers.get(atom) not in found.reached for atom in problem.goal):
        return None
    changing = set[int]()
    for instance in found.instances:
        deadline.check()
        changing |= instance.effect
    goal = {2 * numbers[atom] + 1 for atom in problem.goal}
    goal |= {2 * numbers[atom] for atom in problem.negative_goal if atom in numbers}
    at_first = {2 * number + (atom in problem.state) for number, atom in enumerate(found.atoms)}
    constant = {literal for literal in at_first if literal ^ 1 not in changing}
    impossible = {literal ^ 1 for literal in constant}
    if goal & impossible:
        return None
    possible = [instance for instance in found.instances if instance.condition.isdisjoint(impossible)]
    relevant = _relevant(possible, goal - constant, constant, deadline)
    bits = {number: 1 << i for i, number in enumerate(sorted(relevant, key=found.literal))}

    def mask(literals: Iterable[int]) -> int:
        return sum(bits[literal] for literal in literals if literal in bits)

    operators = []
    last, precondition = frozenset[int](), 0  # instances of one action share their condition
    for instance in possible:
        deadline.check()
        if instance.condition is not last:
            last, precondition = instance.condition, mask(instance.condition)
        delete = mask(literal ^ 1 for literal in instance.effect)
        operators.append(GroundOperator(instance.step, precondition, mask(instance.effect), delete))
    return Task(tuple(map(found.literal, bits)), tuple(operators), mask(at_first), mask(goal))


def _relevant(
    instances: Iterable[NumberedInstance], goal: Set[int], constant: Set[int], deadline: Deadline
) -> set[int]:
    """The changing literals that the goal, or an instance that adds a relevant one, asks for: no other can matter."""
    achievers: dict[int, list[NumberedInstance]] = {}
    for instance in instances:
        for literal in instance.effect:
            achievers.setdefault(literal, []).append(instance)
    relevant, unexplored = set(goal), list(goal)
    while unexplored:
        deadline.check()
        for instance in achievers.get(unexplored.pop(), ()):
            new = instance.condition - constant - relevant
            relevant |= new
            unexplored.extend(new)
    return relevant


@no_garbage_collection()
def ground_fond_task(domain: Domain, problem: Problem, deadline: Deadline) -> Task | None:
    """The problem with the owners of its operators, or `None` where not even its relaxation reaches the goal."""
    task = determinised_task(domain, problem, deadline)
    if task is None:
        return None
    actions: dict[object, FondAction] = {}
    for action, operators in groupby(task.operators, lambda operator: operator.step.action):
        deadline.check()
        outcomes: dict[tuple[int, int], GroundOperator] = {}
        for operator in operators:
            outcomes.setdefault((operator.add, operator.delete), operator)
        precondition = next(iter(outcomes.values())).precondition
        same = precondition, frozenset(outcomes)  # of two actions that agree in this one is enough
        actions.setdefault(same, FondAction(action, precondition, tuple(outcomes.values())))
    owned = [(outcome, owner) for owner in actions.values() for outcome in owner.outcomes if outcome.is_useful]
    return replace(task, operators=tuple(o for o, _ in owned), owners=tuple(owner for _, owner in owned))

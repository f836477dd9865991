"""States from which no strong-cyclic policy starts, known in general terms.

A dead end is known by the bits that it lacks: a state must have one of them, not to be dead for the same reason. Which
bits can be set together is known as far as pairs can tell (the h² of Haslum and Geffner, AIPS 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bilevel.planning.bit_masks import FondAction, GroundOperator, Task, apply
from bilevel.planning.condition_index import bits_of, condition_index
from bilevel.planning.planner import Deadline

MOST_STATES = 30  # of a set of dead states that is generalised


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
        """Return whether a state is known to be a dead end."""
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

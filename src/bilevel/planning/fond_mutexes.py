"""Which literals can hold together, as far as pairs of them can tell (the h² of Haslum and Geffner, AIPS 2000)."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.planning.bit_masks import GroundOperator, Task, bits_of
from bilevel.planning.planner import Deadline


class Companions:
    """For each bit those that may be set along with it in a state that can be reached."""

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self._together = [task.state if task.state >> bit & 1 else 0 for bit in range(len(task.literals))]
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
                new = after & ~self._together[bit]
                if new:
                    changed |= 1 << bit | new
                    self._together[bit] |= new
                    for other in bits_of(new):
                        self._together[other] |= 1 << bit
        return changed

    def of(self, bit: int) -> int:
        return self._together[bit]

    def after(self, operator: GroundOperator) -> int:
        """Every bit that may be set after the operator, 0 where it can never apply."""
        before = self._everything
        for bit in bits_of(operator.precondition):
            before &= self._together[bit]
        if before & operator.precondition != operator.precondition:
            return 0
        return before & ~operator.delete | operator.add

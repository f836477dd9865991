"""Problems in which actions only flip facts, such as switches of lamps, are linear equations modulo two.

An action that can always be done and always flips the same facts may be done in any order with others of that kind, and
twice is as good as not at all. So a plan is a set of actions, and which sets lead to the goal is a matter of
elimination, where a search would have to go through the states: there may be two to the power of the actions of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.planning.grounding import GroundOperator, GroundTask
from bilevel.planning.planner import Deadline

MOST_IDLE = 12  # sets of actions that together flip nothing: with and without each of these, the shortest plan is taken

Flips = dict[int, dict[int, GroundOperator]]  # the bits that are flipped, those of them that were set, the operator


def plan_by_flips(task: GroundTask, deadline: Deadline) -> tuple[bool, list[GroundOperator] | None]:
    """Whether the problem is one of flips alone, and if so a plan if there is one, a shortest one in most cases."""
    flips = _flips_of(task, deadline)
    if flips is None:
        return False, None
    chosen = _solve(list(flips), ~task.state & task.goal, task.goal, deadline)
    if chosen is None:
        return True, None
    plan, state = [], task.state
    for flip in chosen:
        plan.append(flips[flip][state & flip])
        state ^= flip
    return True, plan


def _flips_of(task: GroundTask, deadline: Deadline) -> Flips | None:
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

"""Objects that are interchangeable: swap two of them, and the actions and the goal of a task are the same as before.

So it is no matter which of them a state says something about. Only objects no two of which occur in one literal are
looked at: for these, two states are alike if what they say of each object is the same up to the order of the objects.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import reduce
from itertools import pairwise
from operator import or_

from bilevel.planning.bit_masks import FondAction, Task
from bilevel.planning.condition_index import bits_of
from bilevel.planning.planner import Deadline

Bits = tuple[int, ...]  # what can be said of an object: the same things in the same order for all that are alike


class Symmetry:
    """The groups of interchangeable objects of a task; `mask` has the bits of all literals that mention one."""

    def __init__(self, task: Task, deadline: Deadline) -> None:
        self._groups: list[list[tuple[dict[int, int], int]]] = []  # an object's bits with their places, and their mask
        self.mask = 0
        candidates = _candidates(task)
        actions = _outlines(task.owners) if candidates else {}
        for group in candidates:
            alike = [group[0]]
            for one, other in pairwise(group):
                if not _is_swappable(dict(zip(one + other, other + one, strict=True)), actions, deadline):
                    break
                alike.append(other)
            if len(alike) > 1:
                places = [{bit: place for place, bit in enumerate(bits)} for bits in alike]
                self._groups.append([(bits, sum(1 << bit for bit in bits)) for bits in places])
                self.mask |= sum(mask for _, mask in self._groups[-1])

    def key(self, state: int) -> Hashable:
        """The same for states that are alike."""
        if not self._groups:
            return state
        said = (
            tuple(sorted(tuple([bits[bit] for bit in bits_of(state & mask)]) for bits, mask in group))
            for group in self._groups
        )
        return state & ~self.mask, *said


def _candidates(task: Task) -> list[list[Bits]]:
    """The bits of objects of which the same can be said and is wanted, in groups of two and more."""
    sayings: dict[str, dict[Hashable, int]] = {}
    for bit, literal in enumerate(task.literals):
        for name in dict.fromkeys(literal.atom.terms):
            terms = tuple(None if term == name else term for term in literal.atom.terms)
            saying = literal.atom.predicate, terms, literal.present, bool(task.goal >> bit & 1)
            sayings.setdefault(name, {})[saying] = bit
    groups: dict[frozenset[Hashable], list[Bits]] = {}
    for said in sayings.values():
        first = groups.setdefault(frozenset(said), [])
        first.append(tuple(said[saying] for saying in sorted(said, key=repr)))
    return [group for group in groups.values() if len(group) > 1]


Outline = tuple[int, frozenset[tuple[int, int]]]  # of an action: its precondition, and what its outcomes set and clear


def _outlines(actions: Iterable[FondAction]) -> dict[Outline, int]:
    """The outline of each action, and all bits that occur in it."""
    found = {}
    for action in {id(action): action for action in actions}.values():
        outcomes = frozenset((outcome.add, outcome.delete) for outcome in action.outcomes)
        bits = reduce(or_, (add | delete for add, delete in outcomes), action.precondition)
        found[action.precondition, outcomes] = bits
    return found


def _is_swappable(swap: dict[int, int], actions: Mapping[Outline, int], deadline: Deadline) -> bool:
    """Whether the actions stay the same if these bits change places."""
    touched = sum(1 << bit for bit in swap)

    def swapped(mask: int) -> int:
        return mask & ~touched | sum(1 << swap[bit] for bit in bits_of(mask & touched))

    for (precondition, outcomes), bits in actions.items():
        if not bits & touched:
            continue
        deadline.check()
        image = swapped(precondition), frozenset((swapped(add), swapped(delete)) for add, delete in outcomes)
        if image not in actions:
            return False
    return True

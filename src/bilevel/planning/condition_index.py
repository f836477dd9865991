"""Which of many conditions hold in a state, all of them over bit masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from bilevel import compiled


def bits_of(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class ConditionIndex(Protocol):
    """Conditions by a number that the user chooses."""

    def put(self, number: int, condition: int) -> None:
        """Add a condition, or replace it by another."""

    def remove(self, number: int) -> None:
        """Forget a condition."""

    def holding(self, state: int) -> list[int]:
        """The numbers of all conditions that hold in the state, in order."""

    def first(self, state: int) -> int | None:
        """The lowest number of a condition that holds in the state."""


def condition_index(bits: int) -> ConditionIndex:
    """An empty index for states of so many bits, compiled where that part was built."""
    fast = compiled.find("bilevel.planning._bit_masks")
    make: Callable[[int], ConditionIndex] = fast.Conditions if fast else FiledConditions
    return make(bits)


class FiledConditions:
    """Conditions filed under one of their bits, the rarest so far, so that most are never looked at."""

    def __init__(self, bits: int) -> None:
        del bits  # Python's integers are of any size
        self._filed: dict[int, dict[int, int]] = {}  # under -1 those without any bit
        self._place: dict[int, int] = {}

    def put(self, number: int, condition: int) -> None:
        """File a condition under its number, instead of the one before."""
        if number in self._place:
            self.remove(number)
        place = min(bits_of(condition), key=lambda bit: len(self._filed.get(bit, ())), default=-1)
        self._filed.setdefault(place, {})[number] = condition
        self._place[number] = place

    def remove(self, number: int) -> None:
        """Remove the condition with this number."""
        del self._filed[self._place.pop(number)][number]

    def holding(self, state: int) -> list[int]:
        """Return the numbers of all conditions that hold in a state, in ascending order."""
        drawers = (self._filed.get(bit, {}) for bit in (-1, *bits_of(state)))
        return sorted(number for filed in drawers for number, needs in filed.items() if needs & state == needs)

    def first(self, state: int) -> int | None:
        """Return the smallest of these numbers; `None` where no condition holds."""
        return next(iter(self.holding(state)), None)

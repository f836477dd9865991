"""Predicates that change together belong together; what changes at any time, whatever else does, is looked at alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Facts

BEYOND_CHANCE = 0.3  # by how much more often than by chance two predicates of one kind change together

NEVER = np.zeros(0, np.int64)
Times = dict[str, NDArray[np.int64]]  # by predicate: the timesteps at which some fact of it changes


def independent_predicates(episodes: Sequence[Sequence[Facts]], settling: int) -> list[frozenset[str]]:
    """Return the predicates that ever change, those together that depend on each other.

    Two do if the one changes at the same timestep as the other, or within `settling` of it, clearly more often than it
    would at any other time.
    """
    times = [(_change_times(states), len(states)) for states in episodes]
    predicates = sorted({predicate for found, _ in times for predicate in found})
    family = {predicate: frozenset({predicate}) for predicate in predicates}
    for one, other in combinations(predicates, 2):
        if family[one] is family[other]:
            continue
        pairs = product(((one, other), (other, one)), (0, settling))
        if any(_depend(*pair, times, window) for pair, window in pairs):
            joined = family[one] | family[other]
            family |= dict.fromkeys(joined, joined)
    return sorted(set(family.values()), key=sorted)


def _change_times(states: Sequence[Facts]) -> Times:
    found: dict[str, list[int]] = {}
    for step in range(1, len(states)):
        if states[step] is not states[step - 1] and states[step] != states[step - 1]:
            for predicate in {fact.predicate for fact in states[step] ^ states[step - 1]}:
                found.setdefault(predicate, []).append(step)
    return {predicate: np.array(steps, np.int64) for predicate, steps in found.items()}


def _depend(one: str, other: str, times: Sequence[tuple[Times, int]], window: int) -> bool:
    """Whether one predicate changes with another clearly more often than by chance."""
    here, chance, total = 0, 0.0, 0
    for found, length in times:
        steps, others = found.get(one, NEVER), found.get(other, NEVER)
        total += len(steps)
        here += _near(steps, others, window)
        chance += len(steps) * _near(np.arange(1, length), others, window) / max(1, length - 1)
    return here - chance > BEYOND_CHANCE * total


def _near(steps: NDArray[np.int64], others: NDArray[np.int64], window: int) -> int:
    """How many of the steps are within a window of one of the others."""
    if not (len(others) and len(steps)):
        return 0
    places = np.searchsorted(others, steps)
    after = np.abs(others[np.minimum(places, len(others) - 1)] - steps)
    before = np.abs(others[np.maximum(places - 1, 0)] - steps)
    return int((np.minimum(before, after) <= window).sum())

"""Where the symbols of an episode change, without their flicker; what settles together is one change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.independence import independent_predicates
from bilevel.symbolic.domain import Facts

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """One settled state, which began at a timestep, ends at another, at which the first fact changed."""

    episode: int
    begin: int
    step: int
    before: Facts
    after: Facts
    is_arrival: bool = False  # of objects that nobody had seen, beside another change


class Seen(NamedTuple):
    """A settled state, and the types of the episode's objects."""

    state: Facts
    objects: Mapping[str, str]


@dataclass(frozen=True)
class Changes:
    """All changes of some episodes, the settled states, and how often there was nothing but flicker."""

    changes: tuple[Change, ...]
    states: tuple[Seen, ...]  # the distinct ones, in the order in which they were first seen
    blips: int  # of a fact, for a timestep or two
    undone: int  # changes after which all was as before


def find_changes(episodes: Sequence[Episode], settling: int, blip: int) -> Changes:
    """Find the changes of every episode.

    A fact that holds, or does not, for at most `blip` timesteps is taken for a mislabel. What changes within `settling`
    timesteps of each other is one change, but for predicates that have nothing to do with each other. With both 0, as
    for plans, every difference is a change.
    """
    changes: list[Change] = []
    states: dict[Facts, Seen] = {}
    undone = 0
    cleaned = [without_blips(episode.states, blip) for episode in episodes]
    every = [settled for settled, _ in cleaned]
    families: list[frozenset[str] | None] = [None]
    if settling:
        families = [*independent_predicates(every, settling)]
    for number, (episode, settled) in enumerate(zip(episodes, every, strict=True)):
        found: list[Change] = []
        for family in families:
            for begin, step, before, after in _settled_changes(settled, settling, family):
                if before == after:
                    undone += 1
                else:
                    found.append(Change(number, begin, step, before, after))
        for change in sorted(found, key=lambda change: change.step):
            changes.append(change)
            for state in (change.before, change.after):
                states.setdefault(state, Seen(state, episode.objects))
        if settled:
            states.setdefault(settled[0], Seen(settled[0], episode.objects))
    return Changes(tuple(changes), tuple(states.values()), sum(removed for _, removed in cleaned), undone)


def _settled_changes(
    states: Sequence[Facts], settling: int, family: frozenset[str] | None
) -> list[tuple[int, int, Facts, Facts]]:
    """Return for each change since when all had been settled, when it began, and the states before and after.

    With a `family` of predicates, only their facts change.
    """
    steps = [
        step
        for step in range(1, len(states))
        if states[step] is not states[step - 1]
        and any(family is None or fact.predicate in family for fact in states[step] ^ states[step - 1])
    ]
    together: list[list[int]] = []
    for step in steps:
        if together and step - together[-1][-1] <= settling:
            together[-1].append(step)
        else:
            together.append([step])
    begins = [0, *(group[-1] for group in together)]
    pairs = zip(begins, together, strict=False)
    return [(begin, group[0], *_ends(states[group[0] - 1], states[group[-1]], family)) for begin, group in pairs]


def _ends(before: Facts, after: Facts, family: frozenset[str] | None) -> tuple[Facts, Facts]:
    """Return the state before, and that state with what has changed of a family of predicates."""
    if family is None:
        return before, after
    changed = frozenset(fact for fact in before ^ after if fact.predicate in family)
    return before, before ^ changed


def without_blips(states: Sequence[Facts], blip: int) -> tuple[list[Facts], int]:
    """Return the states as most timesteps around each have them, fact by fact, and how many facts differ."""
    runs = [(state, len(list(group))) for state, group in groupby(states)]
    if blip == 0 or len(runs) < 3 or all(length > blip for _, length in runs[1:-1]):
        return list(states), 0
    facts = sorted(frozenset().union(*(state for state, _ in runs)))
    rows = np.array([[fact in state for fact in facts] for state, _ in runs], bool)
    held = np.repeat(rows, [length for _, length in runs], axis=0)
    smooth = _majority(held, blip)
    changed = np.flatnonzero((smooth != held).any(axis=1))
    result = list(states)
    for step in changed.tolist():
        result[step] = frozenset(fact for fact, holds in zip(facts, smooth[step], strict=True) if holds)
    return result, int((smooth != held).sum())


def _majority(held: Bools, blip: int) -> Bools:
    """Return what most of the timesteps from `blip` before to `blip` after each one say.

    The last timestep goes on for ever, as an episode may end with what was wanted. The first is as doubtful as any.
    """
    padded = np.concatenate([held[1 : blip + 1][::-1], held, np.repeat(held[-1:], blip, axis=0)])
    total = np.concatenate([np.zeros((1, held.shape[1]), np.int64), np.cumsum(padded, axis=0, dtype=np.int64)])
    window = 2 * blip + 1
    return np.asarray(total[window:] - total[:-window] > blip)

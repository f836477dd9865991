"""Choosing few predicates of many candidates: those with which the demonstrations are described in the fewest bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bilevel.domain_learning.predicates.definitions import Definition, in_order, measure, states_of
from bilevel.domain_learning.predicates.description import Description, describe, interactions
from bilevel.domain_learning.predicates.evidence import Evidence
from bilevel.domain_learning.predicates.goals import Goal
from bilevel.domain_learning.predicates.grammar import absences
from bilevel.domain_learning.predicates.tracks import Bools
from bilevel.symbolic.domain import Facts

MOST_PREDICATES = 16


class Selection:
    """Describes the demonstrations by sets of candidates, and looks for the best one."""

    def __init__(self, evidence: Evidence, base: Sequence[Definition], goals: Sequence[Goal]) -> None:
        self.evidence, self.base, self.goals = evidence, list(base), list(goals)
        self._measured: list[dict[Definition, Bools]] = [{} for _ in evidence.tracks]
        self._happened = [list(interactions(track, motion)) for track, motion in evidence.both]
        self._known: dict[frozenset[Definition], Description] = {}
        self.considered = set(base)

    def measured(self, definitions: Sequence[Definition]) -> list[dict[str, Bools]]:
        """Return for each track when predicates hold, and those by which they are defined."""
        everything = in_order([*definitions, *self._needed(definitions)])
        found = []
        for track, known in zip(self.evidence.tracks, self._measured, strict=True):
            by_name: dict[str, Bools] = {}
            for one in everything:
                if one not in known:
                    known[one] = measure(one, track, by_name)
                by_name[one.name] = known[one]
            found.append(by_name)
        return found

    def _needed(self, definitions: Sequence[Definition]) -> list[Definition]:
        """Return the base candidates by which others are defined and that are not among them."""
        names = {name for one in definitions for name in one.needs}
        return [one for one in self.base if one.name in names and one not in definitions]

    def states(self, definitions: Sequence[Definition]) -> list[list[Facts]]:
        """Return the facts of every timestep of every track."""
        tables = zip(self.evidence.tracks, self.measured(definitions), strict=True)
        return [states_of(definitions, track, known) for track, known in tables]

    def describe(self, definitions: Sequence[Definition]) -> Description:
        """Return what it costs to describe the demonstrations with these predicates."""
        key = frozenset(definitions)
        if key not in self._known:
            self._known[key] = self._described(definitions)
        return self._known[key]

    def _described(self, definitions: Sequence[Definition]) -> Description:
        tests = sum(len(one.tests) + len(one.others) for one in definitions)
        return describe(self.states(definitions), self.evidence.tracks, self._happened, len(definitions), tests)

    def best(self, callback: Callable[[int, float], None] = lambda number, bits: None) -> list[Definition]:
        """Return the best set that a greedy search finds: what the goal needs, and more for as long as that pays.

        In the end, what no longer pays is dropped.
        """
        chosen = list(dict.fromkeys(goal.predicate for goal in self.goals))
        needed = [*chosen]
        chosen += self._needed(chosen)
        while len(chosen) < MOST_PREDICATES:
            callback(len(chosen), self.describe(chosen).bits)
            names = {one.name for one in chosen}
            options = absences([one for one in chosen if one.tests], self.base)
            options = [one for one in [*options, *self.base] if one.name not in names]
            self.considered |= set(options)
            sets = [[*chosen, *self._needed([one]), one] for one in options]
            sets = [list(dict.fromkeys(each)) for each in sets]
            better = min(sets, key=lambda each: self.describe(each).bits, default=chosen)
            if self.describe(better).bits >= self.describe(chosen).bits:
                break
            chosen = better
        return self._pruned(chosen, needed)

    def _pruned(self, chosen: list[Definition], needed: Sequence[Definition]) -> list[Definition]:
        """Drop one predicate after the other, for as long as that makes the description shorter."""
        while True:
            names = {name for one in chosen for name in one.needs}
            options = [
                [*chosen[:place], *chosen[place + 1 :]]
                for place, one in enumerate(chosen)
                if one not in needed and one.name not in names
            ]
            shorter = min(options, key=lambda each: self.describe(each).bits, default=chosen)
            if self.describe(shorter).bits >= self.describe(chosen).bits:
                return chosen
            chosen = shorter

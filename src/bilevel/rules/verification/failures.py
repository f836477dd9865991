"""How a rule policy fails: a shortest run that ends where no rule can go on, or in a loop without the goal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bilevel.rules.matching import Match
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy

RuleGraph = PolicyGraph[int, Match]  # states by their numbers in a `StateSpace`


class Failure(NamedTuple):
    """A path of states from a start to a stop, or to the first state of a loop; `loop` then leads back to it."""

    path: tuple[int, ...]
    loop: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return len(self.path) + len(self.loop)


Place = tuple[int, int]  # a state, and how far a run has come: one of the three below

UNDERWAY, ABLE, FALLEN = range(3)


def shortest_failure(graph: RuleGraph, trapped: frozenset[int], able: frozenset[int]) -> Failure | None:
    """Return a shortest run that is once in a state of `able`, then or later falls into the trap, and stops there.

    Only where there is no such run, a shortest one that ends in a loop within the trap.
    """

    def arrive(nodes: Iterable[int], stage: int) -> Iterator[Place]:
        for node in nodes:
            now = ABLE if stage == UNDERWAY and node in able else stage
            yield node, now
            if now == ABLE and node in trapped:
                yield node, FALLEN

    def after(place: Place) -> Iterator[Place]:
        node, stage = place
        choices = graph.choices.get(node, ())
        staying = [choice for choice in choices if stage != FALLEN or trapped.issuperset(choice.outcomes)]
        return arrive((n for choice in staying for n in choice.outcomes), stage)

    def explored(places: Iterable[Place]) -> PolicyGraph[Place, None]:
        return explore_policy(places, lambda place: [Choice(None, tuple(after(place)))], sys.maxsize)

    runs = explored(arrive(starts(graph), UNDERWAY))
    fallen = [place for place in runs.choices if place[1] == FALLEN]
    for place in fallen:
        if graph.stops(place[0]):
            return Failure(_nodes(runs.path(place)))
    for place in fallen:
        loops = explored(after(place))
        if place in loops.parents:
            return Failure(_nodes(runs.path(place)), _nodes(loops.path(place)))
    return None


def _nodes(places: Iterable[Place]) -> tuple[int, ...]:
    return tuple(node for node, _ in places)


def starts(graph: RuleGraph) -> list[int]:
    return [node for node, parent in graph.parents.items() if parent is None]

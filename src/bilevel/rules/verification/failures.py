"""How a rule policy fails: a shortest run that ends where no rule can go on, or in a loop without the goal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from bilevel.rules.matching import Match
from bilevel.symbolic.exploration import PolicyGraph

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

    def arrive(node: int, stage: int) -> list[Place]:
        stage = ABLE if stage == UNDERWAY and node in able else stage
        return [(node, stage), (node, FALLEN)] if stage == ABLE and node in trapped else [(node, stage)]

    queue = deque(place for node in starts(graph) for place in arrive(node, UNDERWAY))
    came_from: dict[Place, Place | None] = dict.fromkeys(queue)
    fallen = []
    while queue:
        node, stage = place = queue.popleft()
        if stage == FALLEN:
            if graph.stops(node):
                return Failure(_path(came_from, place))
            fallen.append(place)
        for after in _next(graph, node, trapped if stage == FALLEN else None):
            for next_place in arrive(after, stage):
                if next_place not in came_from:
                    came_from[next_place] = place
                    queue.append(next_place)
    loops = ((place, _shortest_loop(graph, place[0], trapped)) for place in fallen)
    return next((Failure(_path(came_from, place), loop) for place, loop in loops if loop), None)


def starts(graph: RuleGraph) -> list[int]:
    return [node for node, parent in graph.parents.items() if parent is None]


def _next(graph: RuleGraph, node: int, trapped: frozenset[int] | None) -> Iterable[int]:
    """Return the states next to this one; in a trap, only by choices that stay in it."""
    choices = graph.choices.get(node, ())
    return [n for choice in choices if trapped is None or trapped.issuperset(choice.outcomes) for n in choice.outcomes]


def _shortest_loop(graph: RuleGraph, start: int, trapped: frozenset[int]) -> tuple[int, ...]:
    """Return the states after `start` on a shortest way back to it within the trap, itself last, if there is one."""
    came_from: dict[int, int | None] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for after in _next(graph, node, trapped):
            if after == start:
                return (*_path({**came_from, start: None}, node)[1:], start)
            if after not in came_from:
                came_from[after] = node
                queue.append(after)
    return ()


State = TypeVar("State", int, Place)


def _path(came_from: Mapping[State, State | None], end: State) -> tuple[int, ...]:
    """Return the numbers of the states on the way to `end`, itself last."""
    path = [end]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return tuple(state if isinstance(state, int) else state[0] for state in reversed(path))

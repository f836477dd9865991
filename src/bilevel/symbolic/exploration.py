"""What a policy does in every state that it can get into, as a graph, and the states in which it is trapped.

A state is any hashable value. In each, a policy has choices: one if it decides everything, several where it leaves a
tie open. Nature is fair: an outcome that is possible again and again happens in the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Label = TypeVar("Label")


@dataclass(frozen=True, slots=True)
class Choice(Generic[State, Label]):
    """Something that a policy may do in a state, and the states this may lead to: none if it cannot be done."""

    label: Label
    outcomes: tuple[State, ...]


@dataclass(frozen=True)
class PolicyGraph(Generic[State, Label]):
    """The choices in each state explored, in breadth-first order; a goal has none.

    `parents` has every state met and the one that it was first met from, `None` for the starts. Unless the graph is
    complete, some states were met and not explored.
    """

    choices: Mapping[State, tuple[Choice[State, Label], ...]]
    goals: Set[State]
    parents: Mapping[State, State | None]
    complete: bool

    def stops(self, state: State) -> bool:
        """Whether, short of the goal, there is no choice in this explored state, or one that cannot be done."""
        choices = self.choices[state]
        return state not in self.goals and (not choices or any(not choice.outcomes for choice in choices))

    def traps(self) -> set[State]:
        """Return the states of a complete graph from which the policy may never reach a goal, whatever luck it has.

        They are the largest set of states short of the goal in which each has no choice, or one all of whose outcomes
        stay in the set.
        """
        ways = {state: [choice.outcomes for choice in choices] for state, choices in self.choices.items()}
        return ways.keys() - distances(ways, self.goals, all)

    def path(self, state: State) -> list[State]:
        """The states on a shortest way from a start to this one, itself last."""
        path, before = [state], self.parents[state]
        while before is not None:
            path.append(before)
            before = self.parents[before]
        return path[::-1]


def explore_policy(
    starts: Iterable[State],
    choices_in: Callable[[State], Sequence[Choice[State, Label]] | None],
    max_states: int = sys.maxsize,
    first_stop: bool = False,
    is_time_up: Callable[[], bool] = lambda: False,
) -> PolicyGraph[State, Label]:
    """Follow a policy breadth first from the starts up to goals, where `choices_in` returns `None`.

    At most `max_states` states are explored, and with `first_stop` none after the first in which the policy stops.
    """
    parents: dict[State, State | None] = dict.fromkeys(starts)
    choices: dict[State, tuple[Choice[State, Label], ...]] = {}
    goals: set[State] = set()
    graph = PolicyGraph(choices, goals, parents, complete=False)
    queue = list(parents)
    for state in queue:  # which grows meanwhile
        if len(choices) >= max_states or is_time_up():
            return graph
        found = choices_in(state)
        choices[state] = tuple(found or ())
        if found is None:
            goals.add(state)
        elif first_stop and graph.stops(state):
            return graph
        for after in (after for choice in choices[state] for after in choice.outcomes):
            if after not in parents:
                parents[after] = state
                queue.append(after)
    return PolicyGraph(choices, goals, parents, complete=True)


def distances(
    ways: Mapping[State, Sequence[Collection[State]]],
    targets: Iterable[State],
    required: Callable[[Iterable[bool]], bool],
) -> dict[State, int]:
    """Return how far states are from the targets with luck, where each of its `ways` may lead a state to some others.

    It counts if `any` or if `all` of a state's ways may lead nearer, as `required`.
    """
    before: dict[State, list[State]] = {}
    for state, its in ways.items():
        for after in dict.fromkeys(after for way in its for after in way):
            before.setdefault(after, []).append(state)
    found = dict.fromkeys(targets, 0)
    queue = list(found)
    for after in queue:  # which grows meanwhile
        for state in before.get(after, ()):
            if state not in found and required(not found.keys().isdisjoint(way) for way in ways[state]):
                found[state] = found[after] + 1
                queue.append(state)
    return found

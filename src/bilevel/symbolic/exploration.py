"""What a policy does in every state that it can get into, as a graph, and the states in which it is trapped.

A state is any hashable value. In each, a policy has choices: one if it decides everything, several where it leaves a
tie open. Nature is fair: an outcome that is possible again and again happens in the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Label = TypeVar("Label")

# Something that a policy may do in a state, and the states this may lead to: none if it cannot be done.
Choice = tuple[Label, Sequence[State]]
Ways = Mapping[State, Sequence[Collection[State]]]  # of each state, and what each of them may lead to


@dataclass(frozen=True)
class PolicyGraph(Generic[State, Label]):
    """The choices in each state explored, in breadth-first order; a goal has none."""

    choices: dict[State, tuple[Choice[Label, State], ...]]
    goals: set[State]
    parents: dict[State, State | None]  # of every state met the one that it was first met from, `None` for the starts

    @property
    def complete(self) -> bool:
        """Whether all states that were met were explored."""
        return len(self.choices) == len(self.parents)

    def stops(self, state: State) -> bool:
        """Whether, short of the goal, there is no choice in this explored state, or one that cannot be done."""
        choices = self.choices[state]
        return state not in self.goals and (not choices or not all(after for _, after in choices))

    def traps(self) -> set[State]:
        """Return the states of a complete graph from which the policy may never reach a goal, whatever luck it has.

        They are the largest set of states short of the goal in which each has no choice, or one all of whose outcomes
        stay in the set.
        """
        ways = {state: [after for _, after in choices] for state, choices in self.choices.items()}
        return ways.keys() - distances(ways, self.goals, every=True)

    def path(self, state: State) -> list[State]:
        """The states on a shortest way from a start to this one, itself last."""
        path = [state]
        while (before := self.parents[path[-1]]) is not None:
            path.append(before)
        return path[::-1]


def explore_policy(
    starts: Iterable[State],
    choices_in: Callable[[State], Sequence[Choice[Label, State]] | None],
    max_states: int = sys.maxsize,
    first_stop: bool = False,
    is_time_up: Callable[[], bool] = lambda: False,
) -> PolicyGraph[State, Label]:
    """Follow a policy breadth first from the starts up to goals, where `choices_in` returns `None`.

    At most `max_states` states are explored, and with `first_stop` none after the first in which the policy stops.
    """
    graph: PolicyGraph[State, Label] = PolicyGraph({}, set(), dict.fromkeys(starts))
    queue = list(graph.parents)
    for state in queue:  # which grows meanwhile
        if len(graph.choices) >= max_states or is_time_up():
            break
        found = choices_in(state)
        graph.choices[state] = tuple(found or ())
        if found is None:
            graph.goals.add(state)
        elif first_stop and graph.stops(state):
            break
        for after in (after for _, outcomes in graph.choices[state] for after in outcomes):
            if after not in graph.parents:
                graph.parents[after] = state
                queue.append(after)
    return graph


def distances(ways: Ways[State], ends: Iterable[State], every: bool) -> dict[State, int]:
    """Return how far states are from ends, with luck, if one or, if asked for, every of their ways may lead nearer."""
    before: dict[State, list[State]] = {}
    for state, its in ways.items():
        for after in (after for way in its for after in way):
            before.setdefault(after, []).append(state)
    found = dict.fromkeys(ends, 0)
    queue = list(found)
    for after in queue:  # which grows meanwhile
        for state in before.get(after, ()):
            if state not in found and not (every and any(found.keys().isdisjoint(way) for way in ways[state])):
                found[state] = found[after] + 1
                queue.append(state)
    return found

"""The explorer of policies on random graphs, whose states are numbers, against the definitions."""

from __future__ import annotations

import random

from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy, traps

Choices = dict[int, list[Choice[int, str]] | None]  # of each state; `None` for a goal


def random_choices(rng: random.Random, count: int = 8) -> Choices:
    """Up to two choices in a state, some of which cannot be done, and a few goals."""

    def choice() -> Choice[int, str]:
        return Choice("act", tuple({rng.randrange(count) for _ in range(rng.choice([0, 1, 1, 2, 2]))}))

    return {s: None if rng.random() < 0.2 else [choice() for _ in range(rng.randrange(3))] for s in range(count)}


def explored(choices: Choices, max_states: int = 100, first_stop: bool = False) -> PolicyGraph[int, str]:
    return explore_policy([0], choices.__getitem__, max_states, first_stop)


def trapped(graph: PolicyGraph[int, str]) -> set[int]:
    """The largest set of states short of the goal in which each stops or has a choice that stays in the set."""
    inside = set(graph.choices) - graph.goals
    while leaving := {s for s in inside if not may_stay(graph, s, inside)}:
        inside -= leaving
    return inside


def may_stay(graph: PolicyGraph[int, str], state: int, inside: set[int]) -> bool:
    return not graph.choices[state] or any(inside.issuperset(choice.outcomes) for choice in graph.choices[state])


def test_traps_are_as_defined_and_paths_are_shortest() -> None:
    for seed in range(1000):
        check(random_choices(random.Random(seed)))


def check(choices: Choices) -> None:

    graph = explored(choices)
    assert traps(graph, graph.goals) == trapped(graph)
    distances = {0: 0}
    for state in (queue := [0]):  # grows while it is read
        for after in (after for choice in choices[state] or () for after in choice.outcomes):
            if after not in distances:
                distances[after] = distances[state] + 1
                queue.append(after)
    assert {state: len(graph.path(state)) - 1 for state in graph.choices} == distances
    assert list(graph.choices) == queue
    assert graph.complete


def test_it_ends_at_the_bound_and_at_the_first_stop() -> None:
    choices: Choices = {0: [Choice("a", (1, 2))], 1: [Choice("b", (0,)), Choice("c", ())], 2: [], 3: None}
    graph = explored(choices, max_states=2)
    assert (list(graph.choices), list(graph.parents), graph.complete) == ([0, 1], [0, 1, 2], False)
    graph = explored(choices, first_stop=True)
    assert (list(graph.choices), graph.complete) == ([0, 1], False)
    graph = explored(choices)
    assert [graph.stops(state) for state in graph.choices] == [False, True, True]
    assert explore_policy([0], choices.__getitem__, 9, is_time_up=lambda: True).choices == {}

"""The explorer of policies on random graphs, whose states are numbers, against the definitions."""

from __future__ import annotations

import random

import pytest

from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy

Choices = dict[int, list[Choice[str, int]] | None]  # of each state; `None` for a goal


def random_choices(rng: random.Random, count: int = 8) -> Choices:
    """Up to two choices in a state, some of which cannot be done, and a few goals."""

    def choice() -> Choice[str, int]:
        return ("act", tuple({rng.randrange(count) for _ in range(rng.choice([0, 1, 1, 2, 2]))}))

    return {s: None if rng.random() < 0.2 else [choice() for _ in range(rng.randrange(3))] for s in range(count)}


def trapped(graph: PolicyGraph[int, str]) -> set[int]:
    """The largest set of states short of the goal in which each stops or has a choice that stays in the set."""
    inside = set(graph.choices) - graph.goals
    while leaving := {s for s in inside if not may_stay(graph, s, inside)}:
        inside -= leaving
    return inside


def may_stay(graph: PolicyGraph[int, str], state: int, inside: set[int]) -> bool:
    return not graph.choices[state] or any(inside.issuperset(after) for _, after in graph.choices[state])


@pytest.mark.parametrize("seed", range(300))
def test_traps_are_as_defined_and_paths_are_shortest(seed: int) -> None:
    choices = random_choices(random.Random(seed))
    graph = explore_policy([0], choices.__getitem__, 100)
    assert graph.traps() == trapped(graph)
    distances = {0: 0}
    for state in (queue := [0]):  # grows while it is read
        for after in (after for _, outcomes in choices[state] or () for after in outcomes):
            if after not in distances:
                distances[after] = distances[state] + 1
                queue.append(after)
    assert {state: len(graph.path(state)) - 1 for state in graph.choices} == distances
    assert list(graph.choices) == queue
    assert graph.complete

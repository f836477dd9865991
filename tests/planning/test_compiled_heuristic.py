"""The compiled heuristic and the compiled successor function answer as those in Python do."""

from __future__ import annotations

import random

import pytest
from fond_problems import random_problem

from bilevel import compiled
from bilevel.planning.bit_masks import Task, apply, filed_operators, ground_fond_task
from bilevel.planning.planner import Deadline
from bilevel.planning.search import RelaxedPlans

fast = compiled.find("bilevel.planning._bit_masks")
pytestmark = pytest.mark.skipif(fast is None, reason="the compiled part was not built")


def random_states(task: Task, rng: random.Random) -> list[int]:
    """Ten states on a random walk, and ten sets of bits that may not even be states."""
    applicable, states = filed_operators(task, Deadline(60)), [task.state]
    for _ in range(9):
        found = applicable(states[-1])
        states.append(apply(states[-1], task.operators[rng.choice(found)]) if found else task.state)
    return states + [rng.getrandbits(max(1, len(task.literals))) % (1 << len(task.literals)) for _ in range(10)]


@pytest.mark.parametrize("seed", range(150))
def test_same_answers(seed: int) -> None:
    task, rng = ground_fond_task(*random_problem(seed), Deadline(60)), random.Random(seed)
    if task is None:
        return
    expected, found = RelaxedPlans(task, Deadline(60)), fast.RelaxedPlans(task, Deadline(60))
    applicable, found_applicable = filed_operators(task, Deadline(60)), fast.Applicable(task, Deadline(60))
    for state in random_states(task, rng):
        goal = rng.choice([None, task.goal, rng.choice([task.goal, task.state, state])])
        assert found(state, goal) == expected(state, goal)
        assert found_applicable(state) == applicable(state)
        if task.operators and rng.random() < 0.2:
            forbidden = rng.randrange(len(task.operators))
            if forbidden in {index for group in expected._groups for index in group}:
                expected.forbid(forbidden)
                found.forbid(forbidden)

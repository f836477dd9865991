"""Regression finds the plans of breadth-first search, and grounding a problem once changes no plan."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from test_search_against_definition import random_task, random_walk

from bilevel.planning.grounding import SharedGrounding, Task, ground_task
from bilevel.planning.planner import Deadline, Effort, TimeUp, bits_of
from bilevel.planning.regression import reached_pairs, shortest_by_regression
from bilevel.planning.search import breadth_first, search
from bilevel.symbolic.semantics import progress
from bilevel.tabletop.problems import shipped_domain, training_problems

MANY = 100_000


def enough() -> Deadline:
    return Deadline(60)


def random_tasks(seeds: range) -> list[Task]:
    tasks = (ground_task(*random_task(seed), enough()) for seed in seeds)
    return [task for task in tasks if task is not None and task.goal & ~task.state]


def test_the_plans_are_those_of_breadth_first_search() -> None:
    lengths = set()
    for task in random_tasks(range(500)):
        finished, expected = breadth_first(task, enough(), 3_000)
        if finished:
            assert shortest_by_regression(task, enough(), MANY) == (True, expected)
            lengths.add(-1 if expected is None else len(expected))
    assert {-1, 1, 2, 3, 4} <= lengths


def test_a_pair_that_comes_up_is_found_no_later_than_it_does() -> None:
    for task in random_tasks(range(40)):
        layers = reached_pairs(task, enough())
        states = {task.state}
        for steps in range(len(layers.pairs)):
            for state in states:
                distance = layers.distance(state)
                assert distance <= steps
                assert all(state & ~layers.pairs[steps][bit] == 0 for bit in bits_of(state))
            states |= {
                state & ~operator.delete | operator.add
                for state in states
                for operator in task.operators
                if state & operator.precondition == operator.precondition
            }
            if len(states) > 500:
                break


def test_too_many_conditions_or_too_much_effort_are_too_much() -> None:
    domain, problem = shipped_domain("blocks"), training_problems("blocks")[-1]
    task = ground_task(domain, problem, enough())
    assert task is not None
    finished, plan = shortest_by_regression(task, enough(), MANY)
    assert finished
    assert plan
    assert shortest_by_regression(task, enough(), 3) == (False, None)
    assert shortest_by_regression(task, enough(), 0) == (False, None)
    with pytest.raises(TimeUp):
        shortest_by_regression(task, Effort(20), MANY)


def test_grounding_once_gives_the_same_plans() -> None:
    plans = 0
    for seed in range(60):
        (domain, problem), ground, rng = random_task(seed), SharedGrounding(), random.Random(seed)
        for _ in range(4):  # goals after each other, each from where the plan for the last one ends
            once, anew = (search(domain, problem, 60, 5_000, how) for how in (ground, ground_task))
            assert (once.status, once.steps) == (anew.status, anew.steps)
            plans += bool(once.steps)
            state = problem.state
            for step in once.steps:
                state = progress(state, step.ground(domain)[1])
            new = sorted(random_walk(rng, domain, problem) - state)
            problem = replace(problem, state=state, goal=frozenset(new[:2]))
    assert plans > 60


def test_another_problem_is_grounded_anew() -> None:
    ground = SharedGrounding()
    for name in ("blocks", "pick-place", "blocks"):
        for problem in training_problems(name):
            domain = shipped_domain(name)
            once, anew = (search(domain, problem, 60, ground=how) for how in (ground, ground_task))
            assert once == anew
            assert once.plan

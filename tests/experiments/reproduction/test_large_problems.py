"""Large problems of symbols alone: everything that is asked for can be run, and what failed says why."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from bilevel.experiments.reproduction.large_problems import SCALED, SIZES, Scaling, measure_planner, measure_rules
from bilevel.policies.folder import find_folder
from bilevel.symbolic.domain import Problem
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem


def failure(measured: dict[str, object]) -> str | None:
    named = {"task": "blocks", "solver": "search", "objects": 3, "versions": {}, "machine": {}}
    return Scaling(**named, **measured).failure  # type: ignore[arg-type]


@pytest.mark.parametrize("task", SCALED)
def test_there_is_a_problem_of_every_size_and_rules_solve_it(task: str) -> None:
    for size in SIZES:
        problem = generate_problem(TASKS[task].domain.name, size, random.Random(0))
        assert isinstance(problem, Problem)
        assert len(problem.goal) == size
    for size in (3, 300):
        measured = measure_rules(task, size, find_folder(task))
        assert (measured["solved"], failure(measured)) == (True, None)
        assert measured["actions"] >= 2 * size


@pytest.mark.parametrize("task", SCALED)
def test_the_built_in_search_has_a_model_of_all_of_them(task: str) -> None:
    assert measure_planner("search", task, 3, 20.0)["solved"]


def test_a_planner_without_time_or_without_a_model_says_so() -> None:
    assert failure(measure_planner("search", "blocks", 100, 0.01)) == "out of time"
    if find_spec("up_fast_downward"):
        assert failure(measure_planner("lama", "gacha", 3, 20.0)) == "no model"

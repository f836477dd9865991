"""How far a planner gets as problems grow: symbols alone, no environment."""

from __future__ import annotations

import random
from time import perf_counter

from bilevel.planning.plan_policies import Failure, find_plan
from bilevel.planning.planners import planner_named
from bilevel.policies.changes import Changes
from bilevel.policies.episode_run import EpisodeRun, Seconds
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.scene_env import SUCCESS
from bilevel.tasks.task import Task


def run_planner(planner: str, time_limit: float, task: Task, objects: int, seed: int) -> EpisodeRun:
    """Let a planner solve a random problem of the task's domain; the steps are those of its plan."""
    problem = generate_problem(task.domain.name, objects, random.Random(seed))
    began = perf_counter()
    found = find_plan(planner_named(planner), task.domain, problem, time_limit)
    failure = found if isinstance(found, Failure) else None
    return EpisodeRun(
        seed=seed,
        outcome=failure.reason if failure else SUCCESS,
        reason=failure.reason if failure else None,
        detail=failure.detail if failure else None,
        steps=0 if isinstance(found, Failure) else len(found.steps),
        events={},
        durations={},
        changes=Changes(),
        seconds=Seconds(policy=perf_counter() - began, physics=0.0),
    )

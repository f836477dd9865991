"""How far a planner gets as problems grow: symbols alone, no world."""

from __future__ import annotations

import random
from time import perf_counter

from bilevel.experiments.evaluation import Run, Seconds, Trial
from bilevel.planning.plan_policies import NO_MODEL, NO_PLAN, Failure
from bilevel.planning.planner import NoModel, Status
from bilevel.planning.planners import planner_named
from bilevel.policies.changes import Changes
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.problems import generate_problem
from bilevel.tabletop.tabletop import SUCCESS
from bilevel.tabletop.tasks import find_task


def run_planner(planner: str, time_limit: float, trial: Trial, episode: int) -> Run:
    """Let a planner solve a random problem of the task's domain; the steps are those of its plan."""
    task = find_task(trial.task)
    seed = evaluation_seed(trial.seed, episode)
    problem = generate_problem(task.domain_name, trial.objects, random.Random(seed))
    began = perf_counter()
    failure, steps = None, 0
    try:
        result = planner_named(planner)(task.domain, problem, time_limit)
    except NoModel as error:
        failure = Failure(NO_MODEL, str(error))
    else:
        if result.status is Status.ERROR:
            raise BadInput(result.message)
        steps = len(result.steps)
        if result.status is not Status.SOLVED:
            failure = Failure(NO_PLAN, result.message)
    return Run(
        seed=seed,
        outcome=failure.reason if failure else SUCCESS,
        reason=failure.reason if failure else None,
        detail=failure.detail if failure else None,
        steps=steps,
        events={},
        durations={},
        changes=Changes(),
        seconds=Seconds(policy=perf_counter() - began, physics=0.0),
    )

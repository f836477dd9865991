"""Problems of symbols alone, without a robot: how far methods get with what nature does, and how long they decide."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path

from bilevel.experiments.experiment import Cell, Settings, run_policy
from bilevel.experiments.rows import ROWS
from bilevel.methods.methods import METHODS, RunnablePolicy
from bilevel.planning.planners import PLANNERS, PlannedPolicy
from bilevel.policies.episode import NO_ACTION, Episode, Seconds
from bilevel.policies.folder import LearnedPolicy, read_policy
from bilevel.policies.rollout import cpu_seconds
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import default_bound
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import applicable, bind_outcome, ground_action, progress
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS
from bilevel.tasks.task import Task

LIMIT, QUICK_LIMIT = 20.0, 10.0  # seconds for all decisions about a problem
ALMOST = 0.95  # of it: a planner that stops by itself stops a little earlier
OUT_OF_TIME = "time"  # the reason of a failure


def solve_with_nature(folder: Path, settings: Settings, cell: Cell) -> None:
    """Let a method decide and nature answer on random problems, until the goal holds or the time is up."""
    row, limit = ROWS[cell.row], QUICK_LIMIT if settings.quick else LIMIT
    learned = read_policy(folder / "policies" / cell.policy) if cell.learned else None
    measure = partial(_decide, cell.row, learned, limit)
    digest, about = learned.digest if learned else None, {"planner": row.planner, "planning_seconds": limit}
    run_policy(RunnablePolicy(row.method, measure=measure, digest=digest, settings=about), folder, cell)


def _high_level(row: str, learned: LearnedPolicy | None, limit: float, task: Task) -> RulePolicy | PlannedPolicy:
    """Return the rules that were learned, or the planner of the row."""
    if learned:
        return RulePolicy(learned.rules, task.domain, commit=learned.card.commit)
    method = METHODS[ROWS[row].method]
    planner = ROWS[row].planner or method.planners[-1 if task.domain.makes_objects else 0]
    return PlannedPolicy(task.domain, PLANNERS[planner], replan=method.replan, time_limit=limit)


def _decide(row: str, learned: LearnedPolicy | None, limit: float, task: Task, objects: int, seed: int) -> Episode:
    """Solve a random problem within about so many seconds of deciding."""
    domain, rng = task.domain, random.Random(seed)
    problem = generate_problem(domain.name, objects, rng)
    high, nature = _high_level(row, learned, limit, task), Nature(domain, problem.objects, rng)
    state, goal, actions, total, longest = problem.state, problem.goal, 0, 0.0, 0.0
    bound, began, clock = default_bound(problem), cpu_seconds(), time.perf_counter()
    high.reset(state, goal, problem.objects)
    while not goal <= state:
        action = high.choose(state, goal)
        taken = cpu_seconds() - began
        if action is None:  # what a planner took that was killed is known from the wall clock alone
            taken = max(taken, min(time.perf_counter() - clock, limit))
        total, longest = total + taken, max(longest, taken)
        if total > ALMOST * limit or actions >= bound:
            return _episode(seed, actions, OUT_OF_TIME, total, longest)
        spelt = action and ground_action(domain, action)
        if spelt is None or not applicable(state, spelt):
            return _episode(seed, actions, high.failure[0] if high.failure else "no rule", total, longest)
        known = len(nature.objects)
        move = nature.move(domain.schemas[spelt.action.name])
        state, actions = progress(state, bind_outcome(spelt.outcomes[move.outcome], move.binding)), actions + 1
        began, clock = cpu_seconds(), time.perf_counter()
        if len(nature.objects) > known:
            high.declare(nature.objects)
    return _episode(seed, actions, None, total, longest)


def _episode(seed: int, steps: int, reason: str | None, total: float, longest: float) -> Episode:
    """Return an episode without a world; `reason` says why it failed, if it did."""
    outcome = SUCCESS if reason is None else STEP_LIMIT if reason == OUT_OF_TIME else NO_ACTION
    failure = (reason, "") if reason else None
    return Episode(seed, outcome=outcome, steps=steps, failure=failure, seconds=Seconds(total, 0.0, longest))

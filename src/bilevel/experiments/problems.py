"""Problems of symbols alone: how long learned rules and planners take for large ones, and for what nature does."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path

from bilevel.experiments.experiment import Cell, Settings, run_policy
from bilevel.experiments.rows import ROWS, SOLVERS
from bilevel.methods.methods import METHODS, RunnablePolicy
from bilevel.planning.planner import NoModel, Status
from bilevel.planning.planners import NO_MODEL, NO_PLAN, PLANNERS, PlannedPolicy, plan
from bilevel.policies.episode import NO_ACTION, Episode, Seconds
from bilevel.policies.folder import LearnedPolicy, read_policy
from bilevel.policies.rollout import cpu_seconds
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import default_bound, solve
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import applicable, bind_outcome, ground_action, progress
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS
from bilevel.tasks.task import Task

SCALED = ("blocks", "colour", "gacha")  # the tasks whose domains differ
SIZES = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
PLANNERS_SIZES = tuple(size for size in SIZES if size <= 300)  # at which both run out of time
MEMORY = 2 << 30  # bytes that a planner may use
LIMIT = 20.0  # seconds for all decisions about a problem of the hard suite
ALMOST = 0.95  # of it: a planner that stops by itself stops a little earlier

OUT_OF_TIME = "time"  # the reason of a failure


def scaling_cells(tasks: list[str], row: str) -> list[Cell]:
    """Return the large problems: all of them for the rules of a row, and for planners those of moderate size."""
    solvers = [row, *(name for name in SOLVERS if name != "lama" or METHODS["lama"].missing() is None)]
    return [
        Cell("scaling", task, solver, 0, size, axis="scaling")
        for task in tasks
        if task in SCALED
        for solver in solvers
        for size in (SIZES if solver == row else PLANNERS_SIZES)
    ]


def solve_large(folder: Path, settings: Settings, cell: Cell) -> None:
    """Measure the CPU seconds that rules, or a planner, take for a large problem, on one core."""
    if cell.row in SOLVERS:
        limit = settings.lama_seconds
        about = {"planner": cell.row, "planning_seconds": limit}
        run_policy(RunnablePolicy("plan", measure=partial(_plan, cell.row, limit), settings=about), folder, cell)
    else:
        learned = read_policy(folder / "policies" / cell.policy)
        run_policy(RunnablePolicy("solve", measure=partial(_follow, learned), digest=learned.digest), folder, cell)


def _follow(learned: LearnedPolicy, task: Task, objects: int, seed: int) -> Episode:
    """Let the rules solve a random problem."""
    example = generate_problem(task.domain.name, min(objects, 100), random.Random("example"))
    solve(task.domain, example, learned.rules)  # the engine makes its program now
    problem = generate_problem(task.domain.name, objects, random.Random(seed))
    began = cpu_seconds()
    solution = solve(task.domain, problem, learned.rules, seed=0)
    return _episode(seed, len(solution.plan.actions), None if solution.is_solved else "no rule", cpu_seconds() - began)


def _plan(planner: str, limit: float, task: Task, objects: int, seed: int) -> Episode:
    """Let a planner find its first plan for a random problem; its limit is on the wall clock."""
    problem = generate_problem(task.domain.name, objects, random.Random(seed))
    began, clock = cpu_seconds(), time.perf_counter()
    try:
        result = plan(task.domain, problem, planner=planner, time_limit=limit, memory_limit=MEMORY)
    except NoModel:
        return _episode(seed, 0, NO_MODEL, 0.0)
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    if result.status is Status.SOLVED:
        return _episode(seed, len(result.steps), None, cpu_seconds() - began)
    taken = max(cpu_seconds() - began, min(time.perf_counter() - clock, limit))
    return _episode(seed, 0, OUT_OF_TIME if result.status is Status.TIMED_OUT else NO_PLAN, taken)


def _episode(seed: int, steps: int, reason: str | None, total: float, longest: float = 0.0) -> Episode:
    """Return an episode without a world; `reason` says why it failed, if it did."""
    outcome = SUCCESS if reason is None else STEP_LIMIT if reason == OUT_OF_TIME else NO_ACTION
    failure = (reason, "") if reason else None
    return Episode(seed, outcome=outcome, steps=steps, failure=failure, seconds=Seconds(total, 0.0, longest))


# With what nature does, for the hard suite


def solve_with_nature(folder: Path, settings: Settings, cell: Cell) -> None:
    """Let a method decide and nature answer on random problems, until the goal holds or the time is up."""
    row, limit = ROWS[cell.row], min(LIMIT, settings.lama_seconds)
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

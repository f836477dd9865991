"""Problems of symbols alone: how long learned rules take for large ones, and planners, as far as they get."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bilevel.experiments.jobs import Cell, Network, Settings
from bilevel.experiments.machines import machine
from bilevel.experiments.rows import ROWS
from bilevel.files import write_atomically
from bilevel.json_files import encode
from bilevel.methods.methods import METHODS
from bilevel.planning.planner import NoModel, Status
from bilevel.planning.planners import PLANNERS, PlannedPolicy, plan
from bilevel.policies.folder import read_policy
from bilevel.policies.rollout import cpu_seconds
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import default_bound, solve
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import BadInput, Domain, Problem
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import applicable, bind_outcome, ground_action, progress
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem
from bilevel.versions import versions

SCALED = ("blocks", "colour", "gacha")  # the tasks whose domains differ
SIZES = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
PLANNERS_SIZES = tuple(size for size in SIZES if size <= 300)  # at which both run out of time
MEMORY = 2 << 30  # bytes that a planner may use
LIMIT = 20.0  # seconds for all decisions about a problem of the hard suite
ALMOST = 0.95  # of it: a planner that stops by itself stops a little earlier

NO_MODEL, OUT_OF_TIME, UNSOLVED = "no model", "out of time", "unsolved"
FAILURES = {Status.TIMED_OUT: OUT_OF_TIME, Status.OUT_OF_MEMORY: "out of memory"}


def rule_problems(networks: Mapping[str, Network]) -> dict[str, tuple[Network, int]]:
    """Return for which policies and numbers of objects rules are timed, by the files for the results."""
    scaled = {task: network for task, network in networks.items() if task in SCALED}
    return {f"scaling/{task}-rules-{size}.json": (scaled[task], size) for task in scaled for size in SIZES}


def planner_problems(tasks: Sequence[str]) -> dict[str, tuple[str, str, int]]:
    """Return for which planners, tasks and numbers of objects planners are timed, by the files for the results."""
    planners = [planner for planner in ("lama", "search") if planner != "lama" or METHODS["lama"].missing() is None]
    return {
        f"scaling/{task}-{planner}-{size}.json": (planner, task, size)
        for planner in planners
        for task in tasks
        if task in SCALED
        for size in PLANNERS_SIZES
    }


def measure_rules(folder: Path, settings: Settings, subject: tuple[Network, int]) -> None:
    """Measure the CPU seconds of learned rules on a large problem, on one core."""
    network, objects = subject
    domain, rules = TASKS[network.task].domain, read_policy(folder / "policies" / network.name).rules
    solve(domain, _problem(domain, min(objects, 100), "example"), rules)  # the engine makes its program now
    problem = _problem(domain, objects, 0)
    began = cpu_seconds()
    solution = solve(domain, problem, rules, seed=0)
    failure = None if solution.is_solved else UNSOLVED
    _write(folder, network.task, "rules", objects, cpu_seconds() - began, len(solution.plan.actions), failure)


def measure_planner(folder: Path, settings: Settings, subject: tuple[str, str, int]) -> None:
    """Measure the CPU seconds of a planner's first plan for the same problem; its limit is on the wall clock."""
    planner, task, objects = subject
    domain = TASKS[task].domain
    problem, limit = _problem(domain, objects, 0), settings.lama_seconds
    began = cpu_seconds()
    try:
        result = plan(domain, problem, planner=planner, time_limit=limit, memory_limit=MEMORY)
    except NoModel:
        _write(folder, task, planner, objects, 0.0, 0, NO_MODEL)
        return
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    failure = None if result.status is Status.SOLVED else FAILURES.get(result.status, UNSOLVED)
    seconds = max(cpu_seconds() - began, limit if failure == OUT_OF_TIME else 0.0)
    _write(folder, task, planner, objects, seconds, len(result.steps), failure)


def _problem(domain: Domain, objects: int, seed: int | str) -> Problem:
    return generate_problem(domain.name, objects, random.Random(seed))


def _write(
    folder: Path, task: str, solver: str, objects: int, seconds: float, actions: int, failure: str | None
) -> None:
    found = {
        "task": task,
        "solver": solver,
        "objects": objects,
        "seconds": round(seconds, 4),
        "actions": actions,
        "failure": failure,
        "versions": versions(["up-fast-downward"] if solver == "lama" else []),
        "machine": machine(),
    }
    write_atomically(folder / "scaling" / f"{task}-{solver}-{objects}.json", encode(found, indent=0))


# With what nature does, for the hard suite


def solve_symbols(folder: Path, settings: Settings, cell: Cell) -> None:
    """Let a method decide and nature answer on random problems, until the goal holds or the time is up."""
    task, limit = TASKS[cell.task], min(LIMIT, settings.lama_seconds)
    found = []
    for number in range(cell.episodes):
        rng = random.Random(evaluation_seed(cell.seed, cell.objects, number))
        problem = generate_problem(task.domain.name, cell.objects, rng)
        found.append(_solve(task.domain, problem, _high_level(folder, cell, limit), rng, limit))
    write_atomically(folder / symbols_file(cell), encode(found, indent=0))


def symbols_file(cell: Cell) -> str:
    """Return the file for the results of a cell of symbols alone."""
    return f"symbols/{cell.task}/{cell.row}-{cell.seed}/{cell.objects:04d}.json"


def _high_level(folder: Path, cell: Cell, limit: float) -> RulePolicy | PlannedPolicy:
    row, domain = ROWS[cell.row], TASKS[cell.task].domain
    method = METHODS[row.method]
    if method.planners:
        planner = row.planner or method.planners[-1 if domain.makes_objects else 0]
        return PlannedPolicy(domain, PLANNERS[planner], replan=method.replan, time_limit=limit)
    assert cell.network, "only rules and planners decide on symbols alone"
    policy = read_policy(folder / "policies" / cell.network.name)
    return RulePolicy(policy.rules, domain, commit=policy.card.commit)


def _solve(
    domain: Domain, problem: Problem, high: RulePolicy | PlannedPolicy, rng: random.Random, limit: float
) -> dict[str, Any]:
    """Return how a method did on a problem within about so many seconds of deciding."""
    state, goal, actions, reason = problem.state, problem.goal, 0, None
    nature, bound, total, longest = Nature(domain, problem.objects, rng), default_bound(problem), 0.0, 0.0
    began, clock = cpu_seconds(), time.perf_counter()
    high.reset(state, goal, problem.objects)
    while not goal <= state:
        action = high.choose(state, goal)
        taken = cpu_seconds() - began
        if action is None:  # what a planner took that was killed is known from the wall clock alone
            taken = max(taken, min(time.perf_counter() - clock, limit))
        total, longest = total + taken, max(longest, taken)
        if total > ALMOST * limit or action is None or actions >= bound:
            reason = "time" if total > ALMOST * limit else "no action" if action is None else "steps"
            break
        spelt = ground_action(domain, action)
        if not applicable(state, spelt):
            reason = "not applicable"
            break
        known = len(nature.objects)
        move = nature.move(domain.schemas[action.name])
        state, actions = progress(state, bind_outcome(spelt.outcomes[move.outcome], move.binding)), actions + 1
        began, clock = cpu_seconds(), time.perf_counter()
        if len(nature.objects) > known:
            high.declare(nature.objects)
    seconds = {"policy": round(total, 6), "longest": round(longest, 6)}
    return {"success": reason is None, "reason": reason, "steps": actions, "seconds": seconds}

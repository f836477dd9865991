"""What units measure: episodes in worlds, large problems without one, and what training takes."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from bilevel.baselines.end_to_end_folder import read_any
from bilevel.experiments.evaluation import Evaluation, read_results
from bilevel.experiments.machines import forget_peak, machine, own_peak, peak_memory, programs_peak
from bilevel.experiments.methods import METHODS, find_policy
from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_json
from bilevel.experiments.reproduction.rows import Scaling
from bilevel.experiments.reproduction.settings import Variant
from bilevel.files import write_atomically
from bilevel.methods.evaluated_policy import EvaluatedPolicy
from bilevel.planning.planner import Status
from bilevel.planning.planners import planner_named
from bilevel.policies.policy_folder import POLICY, read_policy
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.task import Task
from bilevel.versions import versions

RULES, LAMA = "rules", "lama"
SCALING_SEED = 0
SAVED_EVERY = 2.0  # seconds

# Episodes


def load_variant(folder: ExperimentFolder, task: str, variant: Variant, seed: int) -> EvaluatedPolicy:
    """Return what is evaluated; its policy is named as the folder knows it, wherever that is."""
    network = variant.network(task, seed)
    seconds = folder.experiment.planning_seconds if METHODS[variant.method].planners else None
    if network is None:
        return find_policy(variant.method, None, planning_seconds=seconds)
    policy = folder.path / network.policy
    return replace(_load(variant.method, policy, _changed(policy), seconds), policy=network.policy)


@lru_cache(maxsize=2)
def _load(method: str, policy: Path, changed: int, seconds: float | None) -> EvaluatedPolicy:
    """Load a policy, and keep it for the next unit, which is often of the same one."""
    return find_policy(method, policy, planning_seconds=seconds)


def make_evaluation(
    folder: ExperimentFolder, task: str, variant: Variant, seed: int, objects: int, episodes: int
) -> Evaluation:
    return Evaluation(load_variant(folder, task, variant, seed), TASKS[task], (objects,), episodes, seed)


def read_episodes(path: Path, task: Task, policy: Path | None, to_resume: bool = False) -> list[EpisodeRecord]:
    """Return the episodes in a file that are whole, and of the policy that is there now; a torn last line is not.

    To go on with them, they must also have been made with the same versions of all that episodes depend on.
    """
    try:
        data = path.read_bytes()
        records = list(read_results(path, data[: data.rfind(b"\n") + 1]))
        digest = _digest(policy, _changed(policy)) if policy else None
    except (OSError, BadInput):  # what is wrong with a policy is told when it is to be run
        return []
    fit = all(record.episode == number and record.policy_digest == digest for number, record in enumerate(records))
    fresh = not to_resume or all(record.versions == versions(task.packages) for record in records)
    return records if fit and fresh else []


@cache
def _digest(policy: Path, changed: int) -> str:
    return read_any(policy).digest


def _changed(policy: Path) -> int:
    """Tell a policy from one that was there before."""
    return (policy / POLICY).stat().st_mtime_ns


# Large problems


def measure_rules(task: str, objects: int, policy: Path) -> Scaling:
    """Measure the CPU seconds of learned rules on a large problem, on one core."""
    domain, rules = TASKS[task].domain, read_policy(policy).rules
    example = _problem(task, min(objects, 100), "example")
    solve(domain, example, rules)  # the engine writes its program for such problems
    problem = _problem(task, objects, SCALING_SEED)
    with peak_memory() as peak:
        began = time.process_time()
        solution = solve(domain, problem, rules, seed=SCALING_SEED)
        seconds = time.process_time() - began
    return _scaling(task, RULES, objects, seconds, solution.is_solved, len(solution.plan.actions), peak.mebibytes)


def measure_lama(task: str, objects: int, limit: float) -> Scaling:
    """Measure LAMA's first plan for the same problem, by the wall clock."""
    problem = _problem(task, objects, SCALING_SEED)
    began = time.perf_counter()
    result = planner_named(LAMA)(TASKS[task].domain, problem, limit)
    seconds = time.perf_counter() - began
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    solved, timed_out = result.status is Status.SOLVED, result.status is Status.TIMED_OUT
    return _scaling(task, LAMA, objects, seconds, solved, len(result.steps), programs_peak(), timed_out)


def _problem(task: str, objects: int, seed: int | str) -> Problem:
    return generate_problem(TASKS[task].domain.name, objects, random.Random(seed))


def _scaling(
    task: str, solver: str, objects: int, seconds: float, solved: bool, actions: int, peak: float, late: bool = False
) -> Scaling:
    known = versions(["up-fast-downward"] if solver == LAMA else [])
    return Scaling(task, solver, objects, round(seconds, 4), solved, late, actions, peak, known, machine())


# Training


class TrainingCost:
    """What training a network takes, over all the times that it was begun, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        known = read_json(path) or {}
        self._seconds, self._peak = float(known.get("seconds", 0.0)), float(known.get("peak_mebibytes", 0.0))
        self._began, self._saved = time.monotonic(), 0.0
        forget_peak()

    def note(self, is_last: bool = False) -> None:
        """Write what it has taken so far, now and then and at the end."""
        from bilevel.lowlevel.training import usual_device

        now = time.monotonic()
        if now - self._saved <= SAVED_EVERY and not is_last:
            return
        self._saved = now
        content = {
            "seconds": round(self._seconds + now - self._began, 1),
            "peak_mebibytes": round(max(self._peak, own_peak()), 1),
            "device": usual_device().type,
            "networks": 1,
            "machine": machine(),
        }
        write_atomically(self._path, json.dumps(content) + "\n")

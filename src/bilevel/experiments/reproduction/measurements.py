"""What the units measure: episodes in worlds, which are kept, and large problems without one."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import bilevel
from bilevel.baselines.end_to_end_folder import read_any
from bilevel.experiments.contenders import Contender
from bilevel.experiments.machines import machine, peak_memory, programs_peak
from bilevel.experiments.methods import METHODS, find_contender
from bilevel.experiments.records import EpisodeRecord, versions
from bilevel.experiments.reproduction.folder import Kept
from bilevel.experiments.reproduction.rows import Scaling
from bilevel.experiments.reproduction.settings import Entrant
from bilevel.experiments.sweep import Evaluation, read_results
from bilevel.planning.planner import Status
from bilevel.planning.planners import planner_named
from bilevel.policies.policy_files import POLICY
from bilevel.policies.policy_folder import read_policy
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.problems import generate_problem
from bilevel.tabletop.tasks import find_task

SCALING_SEED = 0


def contender_of(kept: Kept, task: str, entrant: Entrant, seed: int) -> Contender:
    """Who is measured. Its policy is named as the folder knows it, wherever that is."""
    policy = kept.policy_of(entrant, task, seed)
    seconds = kept.experiment.planning_seconds if METHODS[entrant.method].planners else None
    contender = _loaded(entrant.method, policy, _changed(policy) if policy else None, seconds)
    return replace(contender, policy=kept.relative(policy)) if policy else contender


@lru_cache(maxsize=2)
def _loaded(method: str, policy: Path | None, changed: int | None, seconds: float | None) -> Contender:
    """Kept for the next unit, which is often of the same policy."""
    return find_contender(method, policy, planning_seconds=seconds)


def measured(kept: Kept, task: str, entrant: Entrant, seed: int, objects: int, episodes: int) -> Evaluation:
    return Evaluation(contender_of(kept, task, entrant, seed), task, (objects,), episodes, seed)


def kept_records(
    kept: Kept, task: str, entrant: Entrant, seed: int, objects: int, to_go_on: bool = False
) -> list[EpisodeRecord]:
    """The episodes that are there and whole, of the policy that is there now. A torn line at the end is run again.

    To go on, they must also have been made with the same versions of all that episodes depend on.
    """
    path = kept.episodes(task, entrant.name, seed, objects)
    try:
        data = path.read_bytes()
        records = list(read_results(path, data[: data.rfind(b"\n") + 1]))
        policy = kept.policy_of(entrant, task, seed)
        digest = _digest(policy, _changed(policy)) if policy else None
    except (OSError, BadInput):  # what is wrong with a policy is told when it is to be run
        return []
    fit = all(record.episode == number and record.policy_digest == digest for number, record in enumerate(records))
    fresh = not to_go_on or all(record.versions == versions() for record in records)
    return records if fit and fresh else []


@cache
def _digest(policy: Path, changed: int) -> str:
    return read_any(policy).digest


def _changed(policy: Path) -> int:
    """Tells a policy from one that was there before."""
    return (policy / POLICY).stat().st_mtime_ns


def measure_rules(task: str, objects: int, policy: Path) -> Scaling:
    """Learned rules on a large problem; its CPU seconds are those of one core."""
    known = find_task(task)
    rules = read_policy(policy).rules
    problem = generate_problem(known.domain_name, objects, random.Random(SCALING_SEED))
    example = generate_problem(known.domain_name, min(objects, 100), random.Random("example"))
    solve(known.domain, example, rules)  # the engine writes its program for such problems
    with peak_memory() as peak:
        began = time.process_time()
        solution = solve(known.domain, problem, rules, seed=SCALING_SEED)
        seconds = time.process_time() - began
    actions = len(solution.plan.actions)
    return _scaling(task, "rules", objects, seconds, solution.is_solved, False, actions, peak.mebibytes, {})


def measure_lama(task: str, objects: int, limit: float) -> Scaling:
    """LAMA's first plan for the same problem, by the wall clock."""
    known = find_task(task)
    problem = generate_problem(known.domain_name, objects, random.Random(SCALING_SEED))
    began = time.perf_counter()
    result = planner_named("lama")(known.domain, problem, limit)
    seconds = time.perf_counter() - began
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    solved = result.status is Status.SOLVED
    planner = {"up-fast-downward": metadata.version("up-fast-downward")}
    timed_out = result.status is Status.TIMED_OUT
    return _scaling(task, "lama", objects, seconds, solved, timed_out, len(result.steps), programs_peak(), planner)


def _scaling(
    task: str,
    solver: str,
    objects: int,
    seconds: float,
    solved: bool,
    timed_out: bool,
    actions: int,
    peak: float,
    packages: Mapping[str, str],
) -> Scaling:
    known = {"bilevel": bilevel.__version__, "python": versions()["python"], **packages}
    return Scaling(task, solver, objects, round(seconds, 4), solved, timed_out, actions, peak, known, machine())

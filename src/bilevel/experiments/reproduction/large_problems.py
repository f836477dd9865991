"""Large problems of symbols alone: how long learned rules take for them, and planners, as far as they get."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from bilevel.cpu_time import cpu_seconds
from bilevel.experiments.machines import Machine, forget_peak, machine, own_peak, programs_peak
from bilevel.experiments.reproduction.folder import ExperimentFolder, read_intact
from bilevel.experiments.reproduction.units import Callback, Train, Unit
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, encode
from bilevel.planning.planner import NoModel, Status
from bilevel.planning.planners import plan
from bilevel.policies.folder import read_policy
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem
from bilevel.versions import versions

RULES, LAMA, SEARCH = "rules", "lama", "search"
PLANNERS = (LAMA, SEARCH)
SCALED = ("blocks", "colour", "gacha")  # the tasks whose domains differ
SIZES = (3, 10, 30, 100, 300, 1000, 3000, 10_000)
PLANNERS_SIZES = tuple(size for size in SIZES if size <= 300)  # at which both run out of time
SEED = 0
MEMORY = 2 << 30  # bytes that a planner may use

NO_MODEL, OUT_OF_TIME, OUT_OF_MEMORY, UNSOLVED = "no model", "out of time", "out of memory", "unsolved"
REASONS = {Status.TIMED_OUT: OUT_OF_TIME, Status.OUT_OF_MEMORY: OUT_OF_MEMORY}


class Scaling(msgspec.Struct, frozen=True, tag_field="kind", tag="scaling"):
    """How long a large problem took."""

    task: str
    solver: str  # rules, lama or search
    objects: Count
    seconds: Amount  # of CPU time
    solved: bool
    timed_out: bool
    actions: Count
    peak_mebibytes: Amount
    versions: Mapping[str, str]
    machine: Machine
    reason: str | None = None  # why it was not solved, where that is not that time was out

    @property
    def failure(self) -> str | None:
        """Why it was not solved, if it was not."""
        return None if self.solved else self.reason or (OUT_OF_TIME if self.timed_out else UNSOLVED)


@dataclass(frozen=True)
class Scale(Unit):
    """Measure how long learned rules, or a planner, take for a large problem of the task's domain."""

    kind: ClassVar[str] = "scale"
    needs_own_process: ClassVar[bool] = True
    solver: str
    objects: int
    training: Train | None = None  # of the rules, for `RULES`

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"scaling/{self.task}-{self.solver}-{self.objects}.json",)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.training.policy,) if self.training else ()

    def is_done(self, folder: ExperimentFolder) -> bool:
        return read_intact(folder.path / self.outputs[0], Scaling) is not None

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        if self.training:
            measured = measure_rules(self.task, self.objects, folder.path / self.training.policy)
        else:
            measured = measure_planner(self.solver, self.task, self.objects, folder.experiment.lama_seconds)
        known = versions(["up-fast-downward"] if self.solver == LAMA else [])
        found = Scaling(self.task, self.solver, self.objects, **measured, versions=known, machine=machine())
        write_atomically(folder.path / self.outputs[0], encode(found, indent=0))


def measure_rules(task: str, objects: int, policy: Path) -> dict[str, Any]:
    """Measure the CPU seconds of learned rules on a large problem, on one core."""
    domain, rules = TASKS[task].domain, read_policy(policy).rules
    example = _problem(task, min(objects, 100), "example")
    solve(domain, example, rules)  # the engine writes its program for such problems
    problem = _problem(task, objects, SEED)
    forget_peak()
    began = cpu_seconds()
    solution = solve(domain, problem, rules, seed=SEED)
    seconds = cpu_seconds() - began
    return _measured(seconds, len(solution.plan.actions), own_peak(), None if solution.is_solved else UNSOLVED)


def measure_planner(planner: str, task: str, objects: int, limit: float) -> dict[str, Any]:
    """Measure the CPU seconds of a planner's first plan for the same problem; its limit is on the wall clock."""
    problem = _problem(task, objects, SEED)
    forget_peak()
    began = cpu_seconds()
    try:
        result = plan(TASKS[task].domain, problem, planner=planner, time_limit=limit, memory_limit=MEMORY)
    except NoModel:
        return _measured(0.0, 0, own_peak(), NO_MODEL)
    seconds, peak = cpu_seconds() - began, programs_peak() if planner == LAMA else own_peak()
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    failure = None if result.status is Status.SOLVED else REASONS.get(result.status, UNSOLVED)
    return _measured(seconds, len(result.steps), peak, failure)


def _problem(task: str, objects: int, seed: int | str) -> Problem:
    return generate_problem(TASKS[task].domain.name, objects, random.Random(seed))


def _measured(seconds: float, actions: int, peak: float, failure: str | None) -> dict[str, Any]:
    ended = {"solved": failure is None, "timed_out": failure == OUT_OF_TIME, "reason": failure}
    return {"seconds": round(seconds, 4), "actions": actions, "peak_mebibytes": peak, **ended}

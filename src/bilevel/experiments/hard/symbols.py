"""Problems of symbols alone: a method decides, nature answers, until the goal holds or the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import msgspec

from bilevel.cpu_time import cpu_seconds
from bilevel.experiments.machines import Machine, machine
from bilevel.experiments.methods import METHODS
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, read_intact
from bilevel.experiments.reproduction.measurements import VariantUnit
from bilevel.experiments.reproduction.units import Callback
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, encode
from bilevel.methods.methods import Options
from bilevel.planning.planners import PLANNERS, PlannedPolicy
from bilevel.policies.folder import read_policy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import default_bound
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import applicable, bind_outcome, ground_action, progress
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem
from bilevel.tasks.task import Task
from bilevel.versions import versions

LIMIT = 20.0  # seconds for all decisions about a problem
ALMOST = 0.95  # of it
NO_ACTION, NOT_APPLICABLE, TIME, STEPS = "no action", "not applicable", "time", "steps"  # why it was not solved


class HighLevel(Protocol):
    """What decides on symbols: rules, or a planner."""

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin an episode with these objects."""

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return the next action, or none."""


class SymbolicEpisode(msgspec.Struct, frozen=True):
    """How a method did on one problem."""

    problem: Count  # its number
    solved: bool
    reason: str | None  # why not
    actions: Count
    seconds: Amount  # for all decisions
    longest: Amount  # for one of them


class _Watch:
    """Adds up how long decisions take, in CPU seconds, those of planners included."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self.seconds = self.longest = 0.0
        self.begin()

    def begin(self) -> None:
        """Note that a decision begins."""
        self._began = cpu_seconds(), time.perf_counter()

    def end(self, gave_up: bool) -> None:
        """Note that it ends. What a planner took that was killed at the limit is known from the wall clock alone."""
        taken = cpu_seconds() - self._began[0]
        if gave_up:
            taken = max(taken, min(time.perf_counter() - self._began[1], self._limit))
        self.seconds, self.longest = self.seconds + taken, max(self.longest, taken)

    @property
    def is_over(self) -> bool:
        """Whether the time is up, or almost: a planner that stops by itself stops a little earlier."""
        return self.seconds > ALMOST * self._limit


def solve_symbols(
    domain: Domain, problem: Problem, high: HighLevel, rng: random.Random, limit: float
) -> SymbolicEpisode:
    """Let a method decide and nature answer, for about so many seconds of deciding."""
    state, goal, actions, reason = problem.state, problem.goal, 0, None
    nature, bound, watch = Nature(domain, problem.objects, rng), default_bound(problem), _Watch(limit)
    high.reset(state, goal, problem.objects)
    while not goal <= state:
        action = high.choose(state, goal)
        watch.end(gave_up=action is None)
        if watch.is_over or action is None or actions >= bound:
            reason = TIME if watch.is_over else NO_ACTION if action is None else STEPS
            break
        spelt = ground_action(domain, action)
        if not applicable(state, spelt):
            reason = NOT_APPLICABLE
            break
        known = len(nature.objects)
        move = nature.move(domain.schemas[action.name])
        state, actions = progress(state, bind_outcome(spelt.outcomes[move.outcome], move.binding)), actions + 1
        watch.begin()
        if len(nature.objects) > known:
            high.declare(nature.objects)
    return SymbolicEpisode(0, reason is None, reason, actions, round(watch.seconds, 6), round(watch.longest, 6))


def time_limit(experiment: Experiment) -> float:
    """Return how many seconds there are for a problem."""
    return min(LIMIT, experiment.lama_seconds)


class SymbolicResults(msgspec.Struct, frozen=True):
    """What is in the file of a unit."""

    episodes: list[SymbolicEpisode]
    digest: str | None  # of the policy
    versions: Mapping[str, str]
    machine: Machine


@dataclass(frozen=True)
class SolveSymbols(VariantUnit):
    """Let a method solve some problems of one size, symbols alone."""

    kind: ClassVar[str] = "symbols"
    objects: int
    problems: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return (f"symbols/{self.task}/{self.variant.name}-{self.seed}/{self.objects:04d}.json",)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Only rules are taken from a policy."""
        return () if METHODS[self.variant.method].planners else super().inputs

    def expected_seconds(self, experiment: Experiment) -> float:
        """Planners run out of time from about a hundred objects on."""
        share = min(1.0, (self.objects / 150) ** 2) if METHODS[self.variant.method].planners else 0.0
        return 0.5 + self.problems * (share * time_limit(experiment) + 1e-6 * self.objects**2)

    def results(self, folder: ExperimentFolder) -> SymbolicResults | None:
        """Return what was found, if it is there and of the policy that is there now."""
        known = read_intact(folder.path / self.outputs[0], SymbolicResults)
        try:
            return known if known is not None and known.digest == self.digest(folder) else None
        except (OSError, BadInput):  # what is wrong with a policy is told when it is to be run
            return None

    def is_done(self, folder: ExperimentFolder) -> bool:
        known = self.results(folder)
        return known is not None and len(known.episodes) >= self.problems

    def perform(self, folder: ExperimentFolder, callback: Callback) -> None:
        known = self.results(folder)
        episodes = list(known.episodes) if known else []
        task, limit = TASKS[self.task], time_limit(folder.experiment)
        while len(episodes) < self.problems:
            number = len(episodes)
            rng = random.Random(evaluation_seed(self.seed, self.objects, number))
            problem = generate_problem(task.domain.name, self.objects, rng)
            found = solve_symbols(task.domain, problem, self._high(folder, task, limit), rng, limit)
            episodes.append(msgspec.structs.replace(found, problem=number))
            packages = ["up-fast-downward"] if METHODS[self.variant.method].planners else []
            results = SymbolicResults(episodes, self.digest(folder), versions(packages), machine())
            write_atomically(folder.path / self.outputs[0], encode(results, indent=0))
            callback(f"problem {len(episodes)} of {self.problems}")

    def _high(self, folder: ExperimentFolder, task: Task, limit: float) -> HighLevel:
        method = METHODS[self.variant.method]
        if method.planners:
            planning = method.planning(Options(planner=self.variant.planner), task.domain)
            return PlannedPolicy(task.domain, PLANNERS[planning["planner"]], replan=method.replan, time_limit=limit)
        policy = read_policy(folder.path / self.inputs[0])
        return RulePolicy(policy.rules, task.domain, commit=policy.card.commit)

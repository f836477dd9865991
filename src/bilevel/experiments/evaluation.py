"""How often a policy succeeds, over many episodes that it was not made from, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bilevel.planning.plan_policies import Failure, PlannedPolicy
from bilevel.policies.changes import Changes, count_changes, find_changes
from bilevel.policies.chronicle import Chronicle
from bilevel.policies.failures import SETTLED, reason_of_failure
from bilevel.policies.policies import BilevelPolicy, Control, WatchedPolicy
from bilevel.policies.rollout import NO_ACTION, STOPPED, Moment, Watch, rollout
from bilevel.policies.settling import Settling, may_settle
from bilevel.seeds import evaluation_seed
from bilevel.symbolic.domain import Domain
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import TASKS, Task, find_task

Z = 1.959964  # of a two-sided interval of 95%
MOST_KEPT = 2  # environments that a process keeps

MakePolicy = Callable[[Task, Tabletop], WatchedPolicy]
Job = tuple["Trial", MakePolicy, int]  # the last is the number of the episode
MapJobs = Callable[[Callable[[Job], "Run"], list[Job]], Iterable["Run"]]


@dataclass(frozen=True)
class Trial:
    """What to measure: a task at a size, so many episodes, with a jostled hand or without."""

    task: str
    objects: int
    episodes: int = 100
    seed: int = 0
    noise: float = 0.0  # amplitude of the bursts, 0 for none
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the environment


@dataclass(frozen=True)
class Seconds:
    """How long an episode's steps took, without all that is done only to measure them."""

    policy: float
    physics: float  # with what is seen, and what nature does


@dataclass(frozen=True)
class Run:
    """One episode of a trial."""

    seed: int
    outcome: str
    reason: str | None  # why it did not succeed
    detail: str | None  # what the policy itself says about that
    steps: int
    events: Mapping[str, int]  # how many of each kind
    durations: Mapping[str, Sequence[int]]  # for each schema, how many steps each of its actions took
    changes: Changes  # of the high-level state
    seconds: Seconds = field(compare=False)


def evaluate(trial: Trial, make_policy: MakePolicy, mapping: MapJobs = map) -> Iterator[Run]:
    """Run the episodes of a trial, in order; `mapping` may be that of a pool of processes."""
    return iter(mapping(run_job, [(trial, make_policy, episode) for episode in range(trial.episodes)]))


# What this process made last: it is used again and again. Who made it is kept, lest another get the same address.
_MADE: dict[str, tuple[MakePolicy, Tabletop, WatchedPolicy]] = {}


def run_job(job: Job) -> Run:
    """One episode of a trial, in an environment that is made only if this process has none that fits."""
    trial, make_policy, episode = job
    key = f"{trial.task} {trial.objects} {sorted(trial.arguments.items())} {id(make_policy)}"
    if key not in _MADE:
        if len(_MADE) >= MOST_KEPT:
            del _MADE[next(iter(_MADE))]
        task = find_task(trial.task)
        environment = task.make(trial.objects, **trial.arguments)
        _MADE[key] = make_policy, environment, make_policy(task, environment)
    _, environment, policy = _MADE[key]
    return run_episode(environment, policy, evaluation_seed(trial.seed, episode), trial.noise)


def run_episode(
    environment: Tabletop, policy: WatchedPolicy, seed: int, noise: float = 0.0, watch: Watch | None = None
) -> Run:
    """One episode from a seed, in the environment of a task, with bursts of noise of this amplitude."""
    chronicle = Chronicle(policy, watch)
    settling = Settling(environment) if may_settle(policy, noise) else None
    clock = Clock(policy, chronicle, settling)
    disturb = Jostle(Bursts(amplitude=noise), seed) if noise else None
    episode = rollout(environment, clock, seed, disturb=disturb, watch=clock.watch, stop=clock.stop)
    clock.stop()  # which a rollout does not ask after the last step
    chronicle.finish(policy.labels.state(episode.observation), episode.info["events"])
    changes = find_changes(_domain(environment), chronicle.runs(), policy.labels.objects(episode.observation))
    failure = _own_account(policy) if episode.outcome == NO_ACTION else None
    outcome = SETTLED if episode.outcome == STOPPED else episode.outcome
    return Run(
        seed=seed,
        outcome=outcome,
        reason=reason_of_failure(outcome, episode.steps, changes, failure),
        detail=failure.detail if failure else None,
        steps=episode.steps,
        events=chronicle.events(),
        durations=chronicle.durations(),
        changes=count_changes(changes),
        seconds=Seconds(clock.policy_seconds, clock.physics_seconds),
    )


def _own_account(policy: WatchedPolicy) -> Failure | None:
    """Why the policy did not know what to do, from one that plans."""
    high = policy.high if isinstance(policy, BilevelPolicy) else None
    return high.failure if isinstance(high, PlannedPolicy) else None


def _domain(environment: Tabletop) -> Domain:
    """What the actions in this environment mean."""
    assert environment.spec is not None, "the environment was not made for a task"
    name = environment.spec.id
    return next(task.domain for task in TASKS.values() if task.environment == name)


class Clock:
    """Acts as its policy does, and measures how long that takes, and how long a step of the world."""

    def __init__(self, policy: WatchedPolicy, watch: Watch, settling: Settling | None = None) -> None:
        self._policy, self._watch, self._settling = policy, watch, settling
        self._began = math.nan  # when the world began the step that it is at, if it is at one
        self.policy_seconds = self.physics_seconds = 0.0

    def reset(self, observation: Observation) -> None:
        began = perf_counter()
        self._policy.reset(observation)
        self.policy_seconds += perf_counter() - began  # a policy may plan here

    def act(self, observation: Observation) -> Control | None:
        began = perf_counter()
        control = self._policy.act(observation)
        self.policy_seconds += perf_counter() - began
        return control

    def watch(self, moment: Moment) -> None:
        self._watch(moment)
        if self._settling:
            self._settling(moment)
        self._began = perf_counter()

    def stop(self) -> bool:
        """Asked after every step, so it knows that the step is over; it stops where nothing will happen any more."""
        if not math.isnan(self._began):
            self.physics_seconds += perf_counter() - self._began
            self._began = math.nan
        return self._settling is not None and self._settling.is_over


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """A 95% confidence interval for a success rate, which is right near 0 and 1 too."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)

"""How often a policy succeeds, over many episodes that it was not made from, with a confidence interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bilevel.environments.noise import Bursts, Jostle
from bilevel.environments.tabletop import Tabletop
from bilevel.execution.policies import BilevelPolicy
from bilevel.execution.rollout import Moment, Watch, rollout
from bilevel.seeds import evaluation_seed
from bilevel.tasks import Task, find_task

Z = 1.959964  # of a two-sided interval of 95%

MakePolicy = Callable[[Task, Tabletop], BilevelPolicy]
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
class Run:
    """One episode of a trial."""

    seed: int
    outcome: str
    steps: int
    events: Mapping[str, int]  # how many of each kind
    durations: Mapping[str, Sequence[int]]  # for each schema, how many steps each of its actions took


def evaluate(trial: Trial, make_policy: MakePolicy, mapping: MapJobs = map) -> Iterator[Run]:
    """Run the episodes of a trial, in order; `mapping` may be that of a pool of processes."""
    return iter(mapping(_run, [(trial, make_policy, episode) for episode in range(trial.episodes)]))


# What this process made last: it is used again and again. Who made it is kept, lest another get the same address.
_MADE: dict[str, tuple[MakePolicy, Tabletop, BilevelPolicy]] = {}


def _run(job: Job) -> Run:
    trial, make_policy, episode = job
    key = f"{trial.task} {trial.objects} {sorted(trial.arguments.items())} {make_policy}"
    if key not in _MADE:
        task = find_task(trial.task)
        environment = task.make(trial.objects, **trial.arguments)
        _MADE.clear()
        _MADE[key] = make_policy, environment, make_policy(task, environment)
    _, environment, policy = _MADE[key]
    return run_episode(environment, policy, evaluation_seed(trial.seed, episode), trial.noise)


def run_episode(
    environment: Tabletop, policy: BilevelPolicy, seed: int, noise: float = 0.0, watch: Watch | None = None
) -> Run:
    """One episode from a seed, with bursts of noise of this amplitude."""
    stopwatch = Stopwatch(policy, watch)
    disturb = Jostle(Bursts(amplitude=noise), seed) if noise else None
    episode = rollout(environment, policy, seed, disturb=disturb, watch=stopwatch)
    events = stopwatch.events + Counter(_kinds(episode.info["events"]))
    return Run(seed, episode.outcome, episode.steps, dict(events), stopwatch.finish())


class Stopwatch:
    """Watches a bilevel policy and counts the steps of each of its actions; somebody else may watch, too."""

    def __init__(self, policy: BilevelPolicy, watch: Watch | None = None) -> None:
        self._policy = policy
        self._watch = watch
        self._action = policy.action
        self._steps = 0
        self._durations: dict[str, list[int]] = {}
        self.events: Counter[str] = Counter()

    def __call__(self, moment: Moment) -> None:
        if self._policy.action != self._action:
            self._note()
        self._action = self._policy.action
        self._steps += 1
        self.events.update(_kinds(moment.info["events"]))
        if self._watch:
            self._watch(moment)

    def _note(self) -> None:
        if self._action is not None and self._steps:
            self._durations.setdefault(self._action.name, []).append(self._steps)
        self._steps = 0

    def finish(self) -> dict[str, list[int]]:
        self._note()
        return self._durations


def _kinds(events: Iterable[str]) -> list[str]:
    return [event.split()[0] for event in events]


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """A 95% confidence interval for a success rate, which is right near 0 and 1 too."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)

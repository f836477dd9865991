"""One episode of a policy, measured: how it ended, why, what changed, and how long everything took."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np

from bilevel.cpu_time import cpu_seconds
from bilevel.policies.changes import Changes, count_changes, find_changes, reason_of_failure
from bilevel.policies.episode_log import EpisodeLog, incidents_of
from bilevel.policies.incidents import Incident
from bilevel.policies.motion import Motion
from bilevel.policies.policy import BilevelPolicy, ObservedPolicy, domain_of
from bilevel.policies.rollout import (
    NO_ACTION,
    SETTLED,
    STOPPED,
    Callback,
    Episode,
    Perturb,
    Perturbation,
    Transition,
    rollout,
)
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv


class Seconds(NamedTuple):
    """CPU seconds that an episode's steps took, without all that is done only to measure them.

    They are those of the thread that acts and of the programs that it waits for, so they do not depend on what else the
    machine is busy with. A policy that acts in a process of its own is timed by the wall clock.
    """

    policy: float
    physics: float  # with what is seen, and what nature does
    longest: float = 0.0  # of the policy's for one step, or before the first: for so long the robot waits


@dataclass(frozen=True)
class EpisodeRun:
    """How one episode went."""

    seed: int
    outcome: str
    reason: str | None  # why it did not succeed
    detail: str | None  # what the policy itself says about that
    steps: int
    events: Mapping[str, int]  # how many of each kind
    durations: Mapping[str, Sequence[int]]  # for each schema, how many steps each of its actions took
    changes: Changes  # of the high-level state
    seconds: Seconds = field(compare=False)
    incidents: Sequence[Incident] = ()  # the times that the policy was at a loss


def run_episode(
    env: SceneEnv, policy: ObservedPolicy, seed: int, noise: float = 0.0, callback: Callback | None = None
) -> EpisodeRun:
    """One episode from a seed, with control noise of this amplitude; `callback` sees every step."""
    return measured_episode(env, policy, seed, EpisodeLog(policy), noise, callback)[0]


def measured_episode(
    env: SceneEnv,
    policy: ObservedPolicy,
    seed: int,
    log: EpisodeLog,
    noise: float = 0.0,
    callback: Callback | None = None,
    perturb: Callable[[Control], Control] | None = None,
) -> tuple[EpisodeRun, Episode]:
    """The same into a log of the caller's, and with what was seen last; controls may be perturbed by one's own."""
    if noise and perturb is None:
        perturb = Perturb(Perturbation(amplitude=noise), env.controls, env.task.switches, seed)
    settling = Settling(env) if perturb is None and may_settle(policy, noise) else None
    motion = Motion(env, policy)
    clock = _Clock(policy, [log, motion, *([callback] if callback else [])], settling)
    episode = rollout(env, clock, seed, perturb=perturb, callback=clock.callback, stop=clock.stop)
    clock.stop()  # which a rollout does not ask after the last step
    log.finish(episode)
    changes = find_changes(domain_of(policy, env.task.domain), log.stretches(), episode.scene.objects)
    failure: tuple[str, str] | None = None  # the reason in short, and in one line, from a high level that says so
    if episode.outcome == NO_ACTION and isinstance(policy, BilevelPolicy):
        failure = getattr(policy, "failure", None) or getattr(policy.high, "failure", None)
    outcome = SETTLED if episode.outcome == STOPPED else episode.outcome
    run = EpisodeRun(
        seed=seed,
        outcome=outcome,
        reason=failure[0] if failure else reason_of_failure(outcome, episode.steps, changes, motion.changes),
        detail=failure[1] if failure else None,
        steps=episode.steps,
        events=log.events(),
        durations=log.durations(),
        changes=count_changes(changes),
        seconds=Seconds(clock.policy_seconds, clock.physics_seconds, clock.longest_seconds),
        incidents=tuple(incidents_of(policy)),
    )
    return run, episode


class _Clock:
    """Acts as its policy does, and measures how long that takes, and how long a step of the environment."""

    def __init__(self, policy: ObservedPolicy, callbacks: Sequence[Callback], settling: Settling | None) -> None:
        self._policy, self._callbacks, self._settling = policy, callbacks, settling
        self._now = perf_counter if getattr(policy, "acts_elsewhere", False) else cpu_seconds
        self._began = math.nan  # when the environment began the step that it is at, if it is at one
        self.policy_seconds = self.physics_seconds = self.longest_seconds = 0.0

    def reset(self, scene: Scene) -> None:
        began = self._now()
        self._policy.reset(scene)
        self._note(self._now() - began)  # a policy may plan here

    def act(self, scene: Scene) -> Control | None:
        began = self._now()
        control = self._policy.act(scene)
        self._note(self._now() - began)
        return control

    def _note(self, seconds: float) -> None:
        self.policy_seconds += seconds
        self.longest_seconds = max(self.longest_seconds, seconds)

    def callback(self, transition: Transition) -> None:
        for callback in self._callbacks:
            callback(transition)
        if self._settling:
            self._settling(transition)
        self._began = cpu_seconds()

    def stop(self) -> bool:
        """Asked after every step, so it knows that the step is over; it stops where nothing will happen any more."""
        if not math.isnan(self._began):
            self.physics_seconds += cpu_seconds() - self._began
            self._began = math.nan
        return self._settling is not None and self._settling.is_over


STILL = 1e-6  # metres, and whatever else is seen is measured in: about what rounding does to a number of 32 bits
LONG = 1000  # steps


class Settling:
    """Notices whether everything has come to rest, so that nothing will happen any more.

    A network that has no memory and gets stuck pushes to where it already is, at every step until the time is up. If
    nothing that is seen has moved for a thousand steps, in an environment that does nothing by itself either, then the
    same is seen, the same is done, and the same comes of it, for ever.
    """

    def __init__(self, env: SceneEnv) -> None:
        self._env = env
        self._seen: Scene | None = None  # since when
        self._steps = 0

    def __call__(self, transition: Transition) -> None:
        if self._seen is not None and _close(transition.scene, self._seen):
            self._steps += 1
        else:
            self._seen, self._steps = transition.scene, 0

    @property
    def is_over(self) -> bool:
        """Whether nothing has moved for long, in an environment that says that it does nothing by itself."""
        return self._steps >= LONG and not getattr(self._env.env.unwrapped, "is_restless", True)


def may_settle(policy: ObservedPolicy, noise: float) -> bool:
    """Whether rest means that nothing will happen: for a policy without memory whose controls nobody perturbs."""
    return not noise and getattr(policy, "is_memoryless", False)


def _close(one: Scene, other: Scene) -> bool:
    if one.roster != other.roster:
        return False
    pairs = (one.values, other.values), (one.features, other.features)
    return all(np.abs(first - second).max(initial=0.0) <= STILL for first, second in pairs)

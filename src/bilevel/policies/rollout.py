"""Running a policy in an environment for one episode."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter, thread_time
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.episode import NO_ACTION, SETTLED, STOPPED, Episode, Seconds
from bilevel.policies.policy import Policy
from bilevel.seeds import CONTROL_NOISE
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv


class Transition(NamedTuple):
    """One step as it is about to be taken: what is seen, what the policy wants, and what is executed."""

    scene: Scene
    events: tuple[str, ...]  # that led to this scene
    control: Control
    executed: Control
    episode: Episode  # so far: `episode.steps` is the number of this step, `episode.entries[-1]` what holds now


Callback = Callable[[Transition], None]


def rollout(
    env: SceneEnv,
    policy: Policy,
    seed: int,
    *,
    noise: float = 0.0,
    perturb: Callable[[Control], Control] | None = None,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
    explain: bool = False,
) -> Episode:
    """Run one episode to its end, or until it shall `stop`, and return what happened.

    `callback` sees every step; `perturb`, by default bursts of `noise` of this amplitude, may change what is executed
    at it. With `explain`, entries of the episode say by which rule an action was chosen, if the policy follows rules.
    """
    if noise and perturb is None:
        perturb = Perturb(Perturbation(amplitude=noise), env.controls, env.task.switches, seed)
    episode = Episode(seed, policy.rules, policy.domain or env.task.domain, explain)
    thinking, moving = Stopwatch(perf_counter if policy.acts_elsewhere else cpu_seconds), Stopwatch(cpu_seconds)
    rest = RestWatch() if policy.is_memoryless and perturb is None else None
    scene = env.reset(seed)
    with thinking:  # a policy may plan here
        policy.reset(scene)
    outcome = SUCCESS if env.is_done_already else None
    while outcome is None:
        control = None  # where the policy does not know what to do, or does not see what it would do it to
        with thinking, suppress(Unseen):
            control = policy.act(scene)
        if control is None:
            outcome = NO_ACTION
            break
        executed = perturb(control) if perturb else control
        if policy.labels:
            episode.note(policy.state, policy.goal, policy.action, env.events, policy.incidents, policy.looks_at)
        if callback:
            callback(Transition(scene, env.events, control, executed, episode))
        is_at_rest = rest is not None and rest.look(scene) >= LONG and not env.is_restless
        with moving:
            scene = env.step(executed)
        episode.steps = env.steps
        if env.outcome:
            outcome, scene = env.outcome, env.true_scene
        elif is_at_rest:
            outcome = SETTLED
        elif stop and stop():
            outcome = STOPPED
    episode.outcome, episode.scene, episode.events = outcome, scene, env.events
    episode.failure = policy.failure if outcome == NO_ACTION else None
    episode.seconds = Seconds(thinking.total, moving.total, thinking.longest)
    if policy.labels:
        episode.note(policy.labels.state(scene), policy.labels.goal(scene), None, env.events, policy.incidents)
    return episode


def cpu_seconds() -> float:
    """Return the CPU seconds of this thread so far, and those of all programs that this process has waited for."""
    programs = os.times()
    return thread_time() + programs.children_user + programs.children_system


class Stopwatch:
    """A context that adds up how long it lasts."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.total = self.longest = 0.0

    def __enter__(self) -> None:
        self._began = self._now()

    def __exit__(self, *error: object) -> None:
        seconds = self._now() - self._began
        self.total += seconds
        self.longest = max(self.longest, seconds)


# Rest

LONG = 1000  # steps


class RestWatch:
    """Counts the steps in a row in which nothing that is seen has moved.

    A network that has no memory and gets stuck pushes to where it already is, at every step until the time is up. If
    nothing has moved for a thousand steps, in an environment that does nothing by itself either, then the same is
    seen, the same is done, and the same comes of it, for ever.
    """

    def __init__(self, still: float = 1e-6) -> None:
        """What changes by no more than `still`, at first about a rounding error of 32 bits, has not moved."""
        self._still = still
        self._seen: Scene | None = None  # since when
        self.steps = 0

    def look(self, scene: Scene) -> int:
        """Return for how many steps this has been seen."""
        if self._seen is not None and self._is_close(scene, self._seen):
            self.steps += 1
        else:
            self._seen, self.steps = scene, 0
        return self.steps

    def _is_close(self, one: Scene, other: Scene) -> bool:
        pairs = (one.values, other.values), (one.features, other.features)
        return one.roster == other.roster and all(np.abs(a - b).max(initial=0.0) <= self._still for a, b in pairs)


# Control noise: what is executed differs from what the policy wants, in short bursts


STRONGEST = 1e6
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Perturbation(msgspec.Struct, frozen=True):
    """Now and then, for a few steps, a constant push; sometimes what is open closes, and the other way round."""

    amplitude: Annotated[float, msgspec.Meta(ge=0, le=STRONGEST)] = 0.7  # of the push, in normalised controls
    rate: Probability = 0.02  # bursts that begin, per step
    shortest: Annotated[int, msgspec.Meta(ge=1, le=10**6)] = 5  # steps
    longest: Annotated[int, msgspec.Meta(ge=1, le=10**6)] = 20
    flips: Probability = 0.15  # the part of bursts in which switches do the opposite

    def __post_init__(self) -> None:
        if not 0 <= self.amplitude <= STRONGEST:
            raise BadInput(f"the noise is an amplitude of controls, 0 to {STRONGEST:g}, not {self.amplitude:g}")


class Perturb:
    """Perturbs the controls of one episode, with random numbers of its own.

    Of a Box, `switches` are flipped where the other numbers are pushed. In a Discrete space, a burst repeats one random
    control, and the amplitude is how probable it is that a burst does so at all.
    """

    def __init__(self, settings: Perturbation, controls: Controls, switches: Sequence[int], seed: int) -> None:
        self._settings, self._controls, self._switches = settings, controls, list(switches)
        self._rng = np.random.default_rng([seed, CONTROL_NOISE])
        self.left = 0  # steps of a burst
        if isinstance(controls, BoxControls):
            self._low, self._high = np.array(controls.low), np.array(controls.high)
            self._pushed = np.delete(np.arange(controls.size), self._switches)
            self._half = ((self._high - self._low) / 2).astype(controls.dtype)[self._pushed]

    def __call__(self, control: Control) -> Control:
        settings, rng = self._settings, self._rng
        if self.left == 0 and rng.random() < settings.rate:
            self.burst(int(rng.integers(settings.shortest, settings.longest)))
        if self.left == 0:
            return control
        self.left -= 1
        if not isinstance(self._controls, BoxControls):
            return control if self._instead is None else self._instead
        flat = np.array(control, self._controls.dtype).reshape(-1)
        flat[self._pushed] += self._push * self._half
        if self._flip:
            flat[self._switches] = (self._low + self._high)[self._switches] - flat[self._switches]
        np.clip(flat, self._low, self._high, out=flat)
        return flat.reshape(self._controls.shape)

    def burst(self, steps: int) -> None:
        """Begin a burst of so many steps now, and draw what it does."""
        self.left = steps
        rng, amplitude = self._rng, self._settings.amplitude
        if isinstance(self._controls, BoxControls):
            self._push = (rng.uniform(-1, 1, len(self._pushed)) * amplitude).astype(np.float32)
            self._flip = bool(rng.random() < self._settings.flips)
        else:
            drawn = np.int64(self._controls.start + int(rng.integers(self._controls.n)))
            self._instead = drawn if rng.random() < amplitude else None

"""Running a policy in an environment for one episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.policy import Policy
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv

NO_ACTION = "no action"  # the outcome of an episode in which the policy did not know what to do
STOPPED = "stopped"  # that of one which was given up
SETTLED = "settled"  # that of one in which everything has come to rest for good


@dataclass(frozen=True)
class Transition:
    """One step as it is about to be taken: what is seen, what the policy wants, and what is executed."""

    scene: Scene
    events: tuple[str, ...]  # that led to this scene
    control: Control
    executed: Control


Callback = Callable[[Transition], None]


@dataclass(frozen=True)
class Episode:
    """How an episode ended, and the last scene: after a step what it is, before one that is not taken what is seen."""

    outcome: str
    steps: int
    scene: Scene
    events: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Whether all goals were achieved."""
        return self.outcome == SUCCESS


def rollout(
    env: SceneEnv,
    policy: Policy,
    seed: int,
    *,
    perturb: Callable[[Control], Control] | None = None,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
) -> Episode:
    """Run one episode to its end, or until it shall `stop`.

    `callback` sees every step; `perturb` may change what is executed at it.
    """
    scene = env.reset(seed)
    if env.is_done_already:
        return Episode(SUCCESS, 0, scene, env.events)
    policy.reset(scene)
    while True:
        try:
            control = policy.act(scene)
        except Unseen:
            control = None
        if control is None:
            return Episode(NO_ACTION, env.steps, scene, env.events)
        executed = perturb(control) if perturb else control
        if callback:
            callback(Transition(scene, env.events, control, executed))
        scene = env.step(executed)
        if env.outcome:
            return Episode(env.outcome, env.steps, env.true_scene, env.events)
        if stop and stop():
            return Episode(STOPPED, env.steps, scene, env.events)


# Control noise: what is executed differs from what the policy wants, in short bursts


_APART = 1  # keeps these random numbers apart from those of the environment with the same seed

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
        if self.shortest > self.longest:
            raise ValueError(f"the shortest burst lasts {self.shortest} steps, longer than the longest, {self.longest}")
        if not 0 <= self.amplitude <= STRONGEST:
            raise BadInput(f"the noise is an amplitude of controls, 0 to {STRONGEST:g}, not {self.amplitude:g}")


class Perturb:
    """Perturbs the controls of one episode, with random numbers of its own.

    Of a Box, `switches` are flipped where the other numbers are pushed. In a Discrete space, a burst repeats one random
    control, and the amplitude is how probable it is that a burst does so at all.
    """

    def __init__(self, settings: Perturbation, controls: Controls, switches: Sequence[int], seed: int) -> None:
        self._settings, self._controls, self._switches = settings, controls, list(switches)
        self._rng = np.random.default_rng([seed, _APART])
        self.left = 0  # steps of a burst
        if isinstance(controls, BoxControls):
            self._pushed = [index for index in range(controls.size) if index not in set(switches)]
            self._low, self._high = np.array(controls.low), np.array(controls.high)
            self._half = (self._high - self._low) / 2

    def __call__(self, control: Control) -> Control:
        settings, rng = self._settings, self._rng
        if self.left == 0 and rng.random() < settings.rate:
            self.burst(int(rng.integers(settings.shortest, settings.longest)))
        if self.left == 0:
            return control
        self.left -= 1
        return self._perturbed(control)

    def burst(self, steps: int) -> None:
        """Begin a burst of so many steps now."""
        self.left = steps
        self._begin()

    def _begin(self) -> None:
        """Draw what a burst does."""
        rng, amplitude = self._rng, self._settings.amplitude
        if isinstance(self._controls, BoxControls):
            self._push = (rng.uniform(-1, 1, len(self._pushed)) * amplitude).astype(np.float32)
            self._flip = bool(rng.random() < self._settings.flips)
        else:
            drawn = np.int64(self._controls.start + int(rng.integers(self._controls.n)))
            self._instead = drawn if rng.random() < amplitude else None

    def _perturbed(self, control: Control) -> Control:
        if not isinstance(self._controls, BoxControls):
            return control if self._instead is None else self._instead
        flat = np.array(control, self._controls.dtype).reshape(-1)
        flat[self._pushed] += self._push * self._half[self._pushed].astype(flat.dtype)
        if self._flip:
            flat[self._switches] = (self._low + self._high)[self._switches] - flat[self._switches]
        np.clip(flat, self._low, self._high, out=flat)
        return flat.reshape(self._controls.shape)

"""Telling an episode in which nothing will happen any more.

A network that has no memory and gets stuck comes to rest: it pushes to where it already is, at every step until the
time is up. If nothing that is seen has moved for a thousand steps, in an environment that does nothing by itself
either, then the same is seen, the same is done, and the same comes of it, for ever.
"""

from __future__ import annotations

import numpy as np

from bilevel.policies.policy import ObservedPolicy
from bilevel.policies.rollout import Transition
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

SETTLED = "settled"  # the outcome of an episode in which everything has come to rest for good
STILL = 1e-6  # metres, and whatever else is seen is measured in: about what rounding does to a number of 32 bits
LONG = 1000  # steps


class Settling:
    """Notices whether everything has come to rest."""

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
        return self._steps >= LONG and not getattr(self._env.env.unwrapped, "is_restless", True)


def may_settle(policy: ObservedPolicy, noise: float) -> bool:
    """Whether rest means that nothing will happen: for a policy without memory whose controls nobody perturbs."""
    return not noise and getattr(policy, "is_memoryless", False)


def _close(one: Scene, other: Scene) -> bool:
    if one.roster != other.roster:
        return False
    pairs = (one.values, other.values), (one.features, other.features)
    return all(np.abs(first - second).max(initial=0.0) <= STILL for first, second in pairs)

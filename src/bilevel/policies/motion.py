"""Whether things moved where the labelled state changed: what tells an unsteady network from labels that flicker."""

from __future__ import annotations

from collections import deque

import numpy as np

from bilevel.policies.policy import ObservedPolicy
from bilevel.policies.rollout import Transition
from bilevel.symbolic.domain import Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

WINDOW = 5  # steps that are looked back upon
MOVED = 1e-4  # metres, and whatever else is measured: more than resting things tremble, less than pushed things move


class Motion:
    """A callback of a rollout that notes at which steps the state changed because something moved.

    It looks at those things that the changed facts name, and at where they really are, not at what is seen of them. A
    fact that names nothing that can be seen, such as gripper-free(), says nothing about that.
    """

    def __init__(self, env: SceneEnv, policy: ObservedPolicy) -> None:
        self._env, self._policy = env, policy
        self._state: Facts | None = None
        self._recent: deque[Scene] = deque(maxlen=WINDOW + 1)
        self._steps = 0
        self.changes: set[int] = set()  # the steps

    def __call__(self, transition: Transition) -> None:
        state, before = self._policy.state, self._state
        self._recent.append(self._env.true_scene)
        if before is not None and state is not before and state != before and self._has_moved(state ^ before):
            self.changes.add(self._steps)
        self._state = state
        self._steps += 1

    def _has_moved(self, facts: Facts) -> bool:
        names = {term for fact in facts for term in fact.terms}
        return any(_range(name, self._recent) > MOVED for name in names)


def _range(name: str, scenes: deque[Scene]) -> float:
    """By how much a thing's features differ between these scenes, at most."""
    seen = [scene.features[scene.roster.row[name]] for scene in scenes if name in scene.roster.row]
    return float(np.ptp(seen, axis=0).max(initial=0.0)) if seen else 0.0

"""Episodes of the tiny task as somebody who knows nothing of this package would record them: observations, actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.importing.importer import import_demonstrations
from bilevel.demonstrations.importing.npz_reader import recordings_in_memory
from bilevel.symbolic.domain import Action
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task
from tiny_task import TINY, TINY_DISCRETE, choose, control, control_discrete, goal, label, perceive

TASK = "tiny_task:TINY"


def import_arrays(
    observations: Sequence[Any],
    controls: Sequence[Any] | None = None,
    *,
    task: Task,
    output: Path | None = None,
    infos: Sequence[Any] | None = None,
    successes: Sequence[bool] | None = None,
    demonstrators: Sequence[str] | None = None,
    **options: Any,
) -> Demonstrations:
    """Import episodes that are in memory."""
    recordings = recordings_in_memory(observations, controls, infos, successes, demonstrators)
    return import_demonstrations(recordings, task, output, **options)


@dataclass
class Raw:
    """One episode: an observation more than there are actions."""

    observations: list[dict[str, Any]] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    successes: list[bool] = field(default_factory=list)  # for each observation

    @property
    def arrays(self) -> dict[str, Any]:
        """The observations as a dictionary of arrays."""
        return {name: np.array([seen[name] for seen in self.observations]) for name in self.observations[0]}

    @property
    def vectors(self) -> Any:
        """The observations as one array, (timesteps, numbers)."""
        return np.array([flat(observation) for observation in self.observations])

    @property
    def scenes(self) -> list[Scene]:
        return [perceive(observation, {}, None) for observation in self.observations]  # type: ignore[arg-type]


def flat(observation: dict[str, Any]) -> Any:
    return np.concatenate([np.ravel(observation[name]) for name in ("agent", "arrived", "parcels", "spots")])


def from_vector(vector: Any) -> Scene:
    """The scene in a vector, as a user writes such a function; the number of parcels follows from its length."""
    count = (len(vector) - 4) // 5
    observation = {
        "agent": vector[:3],
        "arrived": int(vector[3]),
        "parcels": vector[4 : 4 + 3 * count].reshape(count, 3),
        "spots": vector[4 + 3 * count :].reshape(count, 2),
    }
    return perceive(observation, {}, None)  # type: ignore[arg-type]


def next_action(observation: dict[str, Any]) -> Action | None:
    scene = perceive(observation, {}, None)  # type: ignore[arg-type]
    return choose(frozenset(label(scene)), frozenset(goal(scene)))


@cache
def raw(seed: int = 0, objects: int = 2, discrete: bool = False, give_up_after: int | None = None) -> Raw:
    """An episode in which the task is done, or given up after some steps."""
    env = (TINY_DISCRETE if discrete else TINY).make_env(objects=objects)
    found = Raw()
    observation, info = env.reset(seed=seed)
    while True:
        found.observations.append(observation)
        found.successes.append(info["success"])
        action = next_action(observation)
        if info["success"] or action is None or len(found.actions) == give_up_after:
            return found
        scene = perceive(observation, info, env)
        found.actions.append(control_discrete(scene, action) if discrete else control(scene, action))
        observation, _, _, _, info = env.step(found.actions[-1])

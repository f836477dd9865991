"""Living through a demonstration again, from its seed, and seeing whether it is the same bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.recording import Recording
from bilevel.policies.rollout import rollout
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import Spec


class _Replaying:
    """The policy that does again what was done."""

    def __init__(self, demonstration: Demonstration) -> None:
        self._controls = iter(demonstration.executed)

    def reset(self, scene: Scene) -> None:
        """Nothing to prepare."""

    def act(self, scene: Scene) -> Control | None:
        return next(self._controls, None)


def replay(demonstration: Demonstration, env: SceneEnv) -> str | None:
    """Execute the controls again from the seed; return where what is seen and saved first differs, if it does."""
    recording = Recording(env)
    episode = rollout(env, _Replaying(demonstration), demonstration.seed, callback=recording)
    again = recording.demonstration(episode, demonstration.seed)
    then, now = (_timelines(each, env.task.spec) for each in (demonstration, again))
    last = min(demonstration.steps, again.steps)
    for timestep in range(last + 1):
        for what in (what for what in then if what in now):  # there are no snapshots where the task cannot save
            before, after = then[what][timestep], now[what][timestep]
            if before is not None and not _same(before, after):
                return f"first differs at step {timestep}: {what}{_amount(before, after)}"
    if (demonstration.outcome, demonstration.steps) != (again.outcome, again.steps):
        return f"first differs at step {last}: the outcome"
    return None


def _timelines(demonstration: Demonstration, spec: Spec) -> dict[str, Sequence[Any]]:
    """Return all that is compared, with a value for every timestep, `None` where there is no snapshot."""
    scenes = demonstration.scenes(spec)
    found: dict[str, Sequence[Any]] = {
        "'agent'": [scene.values for scene in scenes],
        "the objects": [list(scene.objects.items()) for scene in scenes],
        "'features'": [scene.features for scene in scenes],
        "the goal": demonstration.at_each_timestep(demonstration.goals),
        "the events": [[event for when, event in demonstration.events if when == now] for now in range(len(scenes))],
    }
    index = {int(timestep): index for index, timestep in enumerate(demonstration.keyframes)}
    for name, part in demonstration.snapshots.items():
        found[f"'snapshot.{name}'"] = [part[index[now]] if now in index else None for now in range(len(scenes))]
    return found


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray | np.generic):
        return bool(one == other)
    return other is not None and _bits(np.asarray(one)) == _bits(np.asarray(other))


def _bits(array: NDArray[Any]) -> tuple[object, ...]:
    return array.dtype, array.shape, array.tobytes()


def _amount(one: Any, other: Any) -> str:
    """Say by how much two arrays of numbers differ at most."""
    if not isinstance(one, np.ndarray) or np.shape(one) != np.shape(other):
        return ""
    return f" by {np.max(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)), initial=0.0):.3g}"

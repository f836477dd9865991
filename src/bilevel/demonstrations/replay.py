"""Executing demonstrations again, from their seeds, to see whether they are the same bit for bit, and to film them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bilevel.demonstrations.collect import Recording
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.policies.film import EpisodeCamera, Video, every_nth_step
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import Spec
from bilevel.tasks.task import Labels, Task
from bilevel.versions import differences


@dataclass(frozen=True)
class Replay:
    """What came of executing demonstrations again."""

    differences: Mapping[int, str | None]  # where each episode first differs, `None` where it is the same
    causes: tuple[str, ...] = ()  # what may be behind the differences, if there are any


def replay(
    demonstrations: Demonstrations,
    task: Task,
    *,
    episode: int | None = None,
    video: Path | str | None = None,
    quality: str | None = None,
    size: tuple[int, int] | None = None,
    names: bool = False,
    callback: Callback = silent,
) -> Replay:
    """Execute demonstrations, or the `episode` of this number, again, and return where they differ from the record.

    With a `video`, the one episode is filmed into that file, with what the expert was doing as its caption, in pictures
    of this `quality` and `size`, with the `names` of things if these are wanted.
    """
    if episode is None and video is not None:
        raise BadInput("a video shows one episode: say which")
    if episode is not None:
        demonstrations.episode(episode)
    mode = None if video is None else "rgb_array"
    numbers = range(len(demonstrations)) if episode is None else [episode]
    found: dict[int, str | None] = {}
    env = SceneEnv(task, **demonstrations.arguments, render_mode=mode, quality=quality, picture_size=size)
    fps = env.steps_per_second / every_nth_step(env)
    with closing(env), nullcontext() if video is None else Video(Path(video), fps) as film:
        camera = EpisodeCamera(env, film, names=names) if film else None
        for number in numbers:
            found[number] = replay_episode(demonstrations[number], env, camera)
            different = sum(difference is not None for difference in found.values())
            callback(Progress("replaying", len(found), len(numbers), {"different": different}))
    return Replay(found, _causes(demonstrations) if different else ())


def _causes(demonstrations: Demonstrations) -> tuple[str, ...]:
    """Return what may be behind episodes that are not the same again."""
    manifest = demonstrations.manifest
    if manifest and manifest.source:
        return ("the data set was imported: an episode happens again only if its seed was recorded, too",)
    others = differences(manifest.versions, manifest.versions) if manifest else ""
    made_with = f"was made with {others}" if others else "may have been made on another kind of machine"
    return (
        f"the data set {made_with}",
        "or the simulator keeps something from one episode to the next: make it anew at each reset(seed)",
    )


class _Executed(Policy):
    """The policy that does again what was done, and says what the expert was doing."""

    def __init__(self, demonstration: Demonstration, labels: Labels | None) -> None:
        self.labels = labels
        self._steps = iter(zip(demonstration.executed, demonstration.actions, strict=True))

    def act(self, scene: Scene) -> Control | None:
        control, self.action = next(self._steps, (None, None))
        if self.labels:
            self.state, self.goal = self.labels.state(scene), self.labels.goal(scene)
        return control


def replay_episode(demonstration: Demonstration, env: SceneEnv, camera: EpisodeCamera | None = None) -> str | None:
    """Execute the controls again from the seed; return where what is seen and saved first differs, if it does."""
    policy = _Executed(demonstration, env.labels if camera else None)
    recording = Recording(env, policy)

    def each_step(transition: Transition) -> None:
        recording(transition)
        if camera:
            camera(transition)

    episode = rollout(env, policy, demonstration.seed, callback=each_step)
    if camera:
        camera.end(episode)
    again = recording.demonstration(episode, demonstration.seed)
    both = zip(_timesteps(demonstration, env.task.spec), _timesteps(again, env.task.spec), strict=False)
    for timestep, (then, now) in enumerate(both):
        for what in (what for what in then if what in now):  # there are no snapshots where the task cannot save
            amount = _difference(then[what], now[what])
            if amount is not None:
                return f"first differs at step {timestep}: {what}{amount}"
    if (demonstration.outcome, demonstration.steps) != (again.outcome, again.steps):
        return f"first differs at step {min(demonstration.steps, again.steps)}: the outcome"
    return None


def _timesteps(demonstration: Demonstration, spec: Spec) -> Iterator[dict[str, Any]]:
    """Give all that is compared of each timestep, with the snapshot where there is one."""
    goals = demonstration.at_each_timestep(demonstration.goals)
    keyframes = demonstration.keyframes.tolist()
    for now, scene in enumerate(demonstration.scenes(spec)):
        parts = demonstration.snapshots.items() if now in keyframes else ()
        yield {
            "'agent'": scene.values,
            "the objects": list(scene.objects.items()),
            "'features'": scene.features,
            "the goal": goals[now],
            "the events": [event for when, event in demonstration.events if when == now],
            **{f"'snapshot.{name}'": part[keyframes.index(now)] for name, part in parts},
        }


def _difference(one: Any, other: Any) -> str | None:
    """Return by how much two values differ at most, if they are numbers; `None` where they are the same bit for bit."""
    if not isinstance(one, np.ndarray | np.generic):
        return None if one == other else ""
    if np.shape(one) != np.shape(other):
        return ""
    if (one.dtype, one.tobytes()) == (other.dtype, other.tobytes()):
        return None
    return f" by {np.max(np.abs(np.subtract(one, other, dtype=np.float64)), initial=0.0):.3g}"

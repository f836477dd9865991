"""Recording an expert: from settings and a number to a demonstration, always the same one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import KEYFRAME, Demonstration, all_objects, changes
from bilevel.demonstrations.manifest import CollectionSettings
from bilevel.policies.episode import Episode
from bilevel.policies.policy import Policy, expert_policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.seeds import training_seed
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.perception import PERFECT, Perception, read_perception
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from bilevel.tasks.task import OBJECTS, Snapshot, Task, TaskError

MOST_ATTEMPTS = 20


def collection_settings(
    task: Task,
    objects: int = 3,
    *,
    seed: int = 0,
    noise: float | None = None,
    perception: Perception | str = PERFECT,
    **arguments: Any,
) -> CollectionSettings:
    """Return what to record, with every argument of the environment spelt out.

    `noise` is the amplitude of the bursts that perturb the expert's controls, 0 or `None` for none; `perception` is
    what is wrong with what the expert sees, and with what is recorded.
    """
    task.check_arguments(arguments)
    if seed < 0:
        raise BadInput(f"the seed must not be negative, but is {seed}")
    if noise is not None and not (math.isfinite(noise) and noise >= 0):
        raise BadInput(f"the noise is an amplitude of controls, 0 or more, not {noise}")
    for name, value in arguments.items():
        if not _is_plain(value):
            raise BadInput(f"the argument '{name}' is {value!r}, which cannot be kept in a data set: JSON has no such")
    defaults = {name: value for name, value in task.arguments.items() if _is_plain(value)}
    spelt_out = {OBJECTS: objects, **defaults, **arguments}
    seen = read_perception(perception) if isinstance(perception, str) else perception
    return CollectionSettings(task.name, spelt_out, Perturbation(amplitude=noise) if noise else None, seed, seen)


def _is_plain(value: Any) -> bool:
    """Return whether JSON gives a value back as it is."""
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except (TypeError, msgspec.MsgspecError):
        return False


class Recorder:
    """Records the episodes of some settings in one environment."""

    def __init__(self, task: Task, settings: CollectionSettings) -> None:
        self.settings = settings
        self.env = SceneEnv(task, **settings.arguments, perception=settings.perception)
        self.expert = expert_policy(self.env)

    def record(self, index: int) -> Demonstration:
        """Return the episode of this number: the first attempt at it that succeeds."""
        outcomes = []
        for attempt in range(MOST_ATTEMPTS):
            found = self.attempt(index, attempt)
            if found.outcome == SUCCESS and found.steps:
                found.check(self.env.task.spec, self.env.controls)
                return found
            outcomes.append(found.outcome)
        what = f"the expert failed {MOST_ATTEMPTS} times at episode {index} ({', '.join(sorted(set(outcomes)))})"
        raise TaskError(f"{what}; try less noise or other arguments")

    def attempt(self, index: int, attempt: int) -> Demonstration:
        """Return an episode of this number, which may have failed."""
        seed = training_seed(self.settings.seed, index, attempt)
        noise, env = self.settings.noise, self.env
        perturb = Perturb(noise, env.controls, env.task.switches, seed) if noise else None
        recording = Recording(env, self.expert)
        episode = rollout(env, self.expert, seed, perturb=perturb, callback=recording)
        return recording.demonstration(episode, seed, attempt)


class Recording:
    """The callback of a rollout that notes all that a demonstration holds."""

    def __init__(self, env: SceneEnv, policy: Policy | None = None) -> None:
        """`policy` says what is being done, if there is one that knows."""
        self._env, self._policy = env, policy
        self._transitions: list[Transition] = []
        self._actions: list[Action | None] = []
        self._states: list[Facts] = []
        self._goals: list[Facts] = []
        self._snapshots: list[Snapshot] = []

    def __call__(self, transition: Transition) -> None:
        if self._env.can_save and len(self._transitions) % KEYFRAME == 0:
            self._snapshots.append(self._env.save())
        self._transitions.append(transition)
        self._label(transition.scene)
        self._actions.append(self._policy.action if self._policy else None)

    def _label(self, scene: Scene) -> None:
        self._states.append(self._env.labels.state(scene))
        self._goals.append(self._env.labels.goal(scene))

    def demonstration(self, episode: Episode, seed: int, attempt: int = 0) -> Demonstration:
        """Return the demonstration of the episode once it is over."""
        self._label(episode.scene)
        if self._env.can_save:
            self._snapshots.append(self._env.save())
        scenes = [*(step.scene for step in self._transitions), episode.scene]
        events = [*(step.events for step in self._transitions), episode.events]
        objects = all_objects(scenes)
        features, visible = in_rows(scenes, objects)
        return Demonstration(
            objects=objects,
            agent=np.stack([scene.values for scene in scenes]),
            features=features,
            visible=visible,
            controls=self._array([step.control for step in self._transitions]),
            executed=self._array([step.executed for step in self._transitions]),
            actions=tuple(self._actions),
            states=changes(self._states),
            goals=changes(self._goals),
            events=tuple((now, event) for now, each in enumerate(events) for event in each),
            outcome=episode.outcome,
            seed=seed,
            attempt=attempt,
            snapshots=_stacked(self._snapshots),
        )

    def _array(self, controls: Sequence[Control]) -> NDArray[Any]:
        kind = self._env.controls
        return np.array(controls, kind.dtype).reshape(-1, *kind.shape)


def in_rows(scenes: Sequence[Scene], objects: Mapping[str, str]) -> tuple[Array, NDArray[np.bool_]]:
    """Return features (timesteps, objects, columns) and what is visible (timesteps, objects), a row for each object."""
    row = {name: index for index, name in enumerate(objects)}
    features = np.zeros((len(scenes), len(objects), len(scenes[0].spec.columns)), np.float32)
    visible = np.zeros(features.shape[:2], np.bool_)
    for now, scene in enumerate(scenes):
        if now == 0 or scene.roster is not scenes[now - 1].roster:
            rows = [row[name] for name in scene.roster.names]
        features[now, rows] = scene.features
        visible[now, rows] = True
    return features, visible


def _stacked(snapshots: Sequence[Snapshot]) -> dict[str, NDArray[Any]]:
    """Return each part of the snapshots as one array, (keyframes, ...)."""
    parts = list(snapshots[0]) if snapshots else []
    try:
        return {name: np.stack([snapshot[name] for snapshot in snapshots]) for name in parts}
    except (KeyError, ValueError):
        raise BadInput("save(env) must always give the same arrays, each of the same shape") from None

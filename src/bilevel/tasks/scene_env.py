"""A task's environment as policies see it: scenes instead of observations, and an outcome at the end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Control, Controls, controls_of
from bilevel.tasks.perception import PERFECT, Perception, Sensor
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import CAMERA, PICTURE_SIZE, QUALITY, RENDER_MODE, Expert, Snapshot, Task, call

SUCCESS, STEP_LIMIT, TERMINATED = "success", "step limit", "terminated"  # outcomes; an environment may have its own
USUAL_RATE = 30.0  # steps per second, for environments that do not say it


class SceneEnv:
    """Runs episodes: `reset`, then `step` until there is an `outcome`.

    `info` keys are optional. If the environment has them, `success` (or `is_success`) decides about success, `events`
    are texts about what no action explains, and `outcome` says how an episode ended that did not succeed. At the end of
    every episode, `info["is_success"]` says whether it succeeded, as Stable-Baselines3 has it. Policies and
    experts see `scene`; with imperfect perception that is not the `true_scene`, on which success is judged.
    """

    scene: Scene
    true_scene: Scene

    def __init__(
        self,
        task: Task,
        objects: int,
        *,
        render_mode: str | None = None,
        quality: str | None = None,
        camera: str | None = None,
        picture_size: tuple[int, int] | None = None,
        perception: Perception = PERFECT,
        **arguments: Any,
    ) -> None:
        """Make the environment with so many objects; `arguments` are further ones of the task's `make_env`.

        A `quality` of pictures, such as "good", and a `camera` matter only where `make_env` knows some; a
        `picture_size`, (width, height), needs one that can be told. By default, everything is seen as it is.
        """
        task.check_objects(objects)
        task.check_arguments(arguments)
        if render_mode and not task.takes_render_mode:
            raise BadInput(f"no pictures of the task '{task.name}': its make_env takes no {RENDER_MODE}")
        if picture_size and not task.takes(PICTURE_SIZE):
            raise BadInput(f"the task '{task.name}' has pictures of one size: its make_env takes no {PICTURE_SIZE}")
        known = {name: value for name, value in ((QUALITY, quality), (CAMERA, camera)) if task.takes(name)}
        about = {RENDER_MODE: render_mode, PICTURE_SIZE: picture_size, **known}
        pictures = {name: value for name, value in about.items() if value}
        self.env = call("make_env(objects={objects})", task.make_env, objects=objects, **pictures, **arguments)
        self.task, self.objects, self.arguments = task, objects, arguments
        self.labels = task.labels
        self.perception = perception
        self._sensor: Sensor | None = None
        self.step_limit = task.steps_per_object * objects
        self.steps = 0
        self.info: dict[str, Any] = {}
        self.outcome: str | None = None

    @cached_property
    def controls(self) -> Controls:
        """The controls that the environment takes."""
        return controls_of(self.env.action_space)

    @cached_property
    def expert(self) -> Expert | None:
        """The task's expert for this environment, if it has one."""
        return self.task.expert_for(self.env)

    def reset(self, seed: int) -> Scene:
        """Begin the episode of a seed."""
        observation, info = call("env.reset(seed={seed})", self.env.reset, seed=seed)
        self.steps, self.outcome = 0, None
        self._sensor = None if self.perception == PERFECT else Sensor(self.perception, self.task.spec, seed)
        return self._see(observation, info)

    @property
    def is_done_already(self) -> bool:
        """Whether there is nothing to do: a goal, and it holds, where an episode begins."""
        return bool(self.labels.goal(self.true_scene)) and self._succeeded()

    def step(self, control: Control) -> Scene:
        """Carry out a control; afterwards `outcome` tells whether the episode is over, and how."""
        observation, _, terminated, truncated, info = call("env.step({!r})", self.env.step, control)
        self.steps += 1
        self._see(observation, info)
        if self._succeeded():
            self.outcome = SUCCESS
        elif terminated or truncated or self.steps >= self.step_limit:
            self.outcome = info.get("outcome") or (TERMINATED if terminated else STEP_LIMIT)
        if self.outcome is not None:
            self.info = {**self.info, "is_success": self.outcome == SUCCESS}
        return self.scene

    @property
    def events(self) -> tuple[str, ...]:
        """What happened at the last step that no action explains."""
        events = self.info.get("events") or ()
        return (events,) if isinstance(events, str) else tuple(events)

    def _see(self, observation: Any, info: dict[str, Any]) -> Scene:
        self.info = info
        self.true_scene = call("perceive(observation, info, env)", self.task.perceive, observation, info, self.env)
        self.scene = self._sensor.see(self.true_scene) if self._sensor else self.true_scene
        return self.scene

    def _succeeded(self) -> bool:
        """Whether the task is done, by whoever has the say."""
        if self.task.success is not None:
            return bool(call("success(scene, info)", self.task.success, self.true_scene, dict(self.info)))
        for key in ("success", "is_success"):
            if key in self.info:
                return bool(self.info[key])
        return self.labels.goal(self.true_scene) <= self.labels.state(self.true_scene)

    # Optional capabilities

    @property
    def is_restless(self) -> bool:
        """Whether something may happen in it by itself, unless the environment says that nothing does."""
        return bool(getattr(self.env.unwrapped, "is_restless", True))

    @property
    def steps_per_second(self) -> float:
        """How many steps a second has by the environment's own account, if it has one."""
        return float((getattr(self.env, "metadata", None) or {}).get("render_fps") or USUAL_RATE)

    @property
    def can_save(self) -> bool:
        """Whether the simulator can be saved and restored."""
        return self.task.save is not None and self.task.restore is not None

    def save(self) -> Snapshot:
        """The whole simulator as arrays, where that can be saved."""
        assert self.task.save is not None
        return self.task.save(self.env)

    def restore(self, snapshot: Snapshot) -> Scene:
        """Go on from a snapshot."""
        assert self.task.restore is not None
        self.outcome = None
        return self._see(*self.task.restore(self.env, snapshot))

    def render(self) -> Any:
        """Return a picture; `BadInput` where the environment gives none."""
        picture = self.env.render()
        if picture is None:
            raise BadInput(f"the environment of '{self.task.name}' gives no pictures: does make_env take render_mode?")
        return picture

    def locate(self) -> Mapping[str, tuple[float, float]]:
        """Where in the picture that was drawn last things are, as parts of its width and height from the top left."""
        if self.task.locate is None:
            raise BadInput(f"no names in pictures: the task '{self.task.name}' does not say where things are")
        return call("locate(scene, env)", self.task.locate, self.true_scene, self.env)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

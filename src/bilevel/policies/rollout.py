"""Running a policy in an environment for one episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bilevel.policies.policy import Policy
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv

NO_ACTION = "no action"  # the outcome of an episode in which the policy did not know what to do
STOPPED = "stopped"  # that of one which was given up

Perturb = Callable[[Control], Control]


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
    """How an episode ended, and what was seen last."""

    outcome: str
    steps: int
    scene: Scene
    events: tuple[str, ...]

    @property
    def success(self) -> bool:
        return self.outcome == SUCCESS


def rollout(
    env: SceneEnv,
    policy: Policy,
    seed: int,
    *,
    perturb: Perturb | None = None,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
) -> Episode:
    """Run one episode to its end, or until it shall `stop`.

    `callback` sees every step; `perturb` may change what is executed at it.
    """
    scene = env.reset(seed)
    policy.reset(scene)
    while True:
        control = policy.act(scene)
        if control is None:
            return Episode(NO_ACTION, env.steps, scene, env.events)
        executed = perturb(control) if perturb else control
        if callback:
            callback(Transition(scene, env.events, control, executed))
        scene = env.step(executed)
        if env.outcome:
            return Episode(env.outcome, env.steps, scene, env.events)
        if stop and stop():
            return Episode(STOPPED, env.steps, scene, env.events)

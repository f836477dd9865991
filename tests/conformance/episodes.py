"""Episodes to look at: an expert's, a perturbed expert's, and a clumsy one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from simulator_truth import true_facts

from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Perturb, Perturbation
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop import TASKS
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

Control = NDArray[np.float32]

# In this order all tests of one task come together, so that its worlds and episodes are made only once.
each_task = pytest.mark.parametrize("task", TASKS, scope="session")
each_size = pytest.mark.parametrize(
    ("task", "objects"),
    [(task, objects) for task in TASKS for objects in ([3] if task.endswith("-noisy") else [1, 3])],
    scope="session",
)

CLUMSY_STEPS = 600
STEPS_PER_MOVEMENT = 40  # so that the hand gets somewhere


@dataclass(frozen=True)
class Timestep:
    """After a step: what is seen, said and true; and what was being done at it."""

    observation: Observation
    scene: Scene
    events: tuple[str, ...]
    outcome: str | None
    state: Facts
    goal: Facts
    truth: Facts | None  # where somebody has written down how to find it
    action: Action | None = None


def random_controls(steps: int, seed: int = 0) -> Control:
    """(steps, 4): wild movements near the table, each for a while."""
    rng = np.random.default_rng(seed)
    movements = rng.uniform(-1, 1, (steps // STEPS_PER_MOVEMENT + 1, 4)) - (0, 0, 0.2, 0)
    return np.repeat(movements, STEPS_PER_MOVEMENT, axis=0)[:steps].astype(np.float32)


@cache
def scene_env(task: str, objects: int) -> SceneEnv:
    """One environment per task and size for all tests in a process: making one takes longer than many steps."""
    return SceneEnv(TASKS[task], objects)


def world(task: str, objects: int) -> Tabletop:
    env: Tabletop = scene_env(task, objects).env
    return env


def _timestep(env: SceneEnv, action: Action | None = None, with_truth: bool = True) -> Timestep:
    state, goal = env.labels.state(env.scene), env.labels.goal(env.scene)
    seen: Observation = env.env._observation
    truth = true_facts(env.env) if with_truth else None
    return Timestep(seen, env.scene, env.events, env.outcome, state, goal, truth, action)


@cache
def expert_episode(task: str, objects: int, seed: int, perturbed: bool = False) -> tuple[Timestep, ...]:
    """An expert's episode; what is true is noted in that of the first seed alone, as finding it out takes long."""
    env = scene_env(task, objects)
    expert = expert_policy(env)
    perturb = Perturb(Perturbation(), env.controls, env.task.switches, seed) if perturbed else None
    expert.reset(env.reset(seed))
    timesteps = [_timestep(env, with_truth=seed == 1)]
    while env.outcome is None:
        control = expert.act(env.scene)
        assert control is not None, "the expert does not know what to do"
        env.step(perturb(control) if perturb else control)
        timesteps.append(_timestep(env, expert.action, with_truth=seed == 1))
    return tuple(timesteps)


@cache
def clumsy_episode(task: str, objects: int, seed: int = 1) -> tuple[Timestep, ...]:
    """The hand goes for one thing after the other, misses more or less, and closes its fingers there."""
    env = scene_env(task, objects)
    rng = np.random.default_rng(seed)
    env.reset(seed)
    timesteps = [_timestep(env)]
    while len(timesteps) <= CLUMSY_STEPS and env.outcome is None:
        phase = (len(timesteps) - 1) % STEPS_PER_MOVEMENT
        if phase == 0:
            blocks = env.scene.features[env.scene.roster.rows("block"), :3]
            seen = env.scene.features[:, :3]
            things = blocks if len(blocks) else seen[seen[:, 1] != 0]  # else what has a place
            target = rng.choice(things) + rng.normal((0, 0, 0.03), 0.015)
            fingers = rng.choice([-1, 1])
        elif phase == STEPS_PER_MOVEMENT - 15:
            fingers = 1
        control = np.append(10 * (target - env.scene.values[:3]), fingers).clip(-1, 1).astype(np.float32)
        env.step(control)
        timesteps.append(_timestep(env))
    return tuple(timesteps)

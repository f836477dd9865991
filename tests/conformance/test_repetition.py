"""An episode can be had again: from its seed, and from any point at which it was saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import numpy as np
from episodes import Control, each_size, each_task, random_controls, world

from bilevel.policies.policy import expert_policy
from bilevel.tabletop import TASKS
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Snapshot

OFTEN = 1 / 60  # how often objects teleport here, so that nature's draws are seen
LONGEST = 700  # steps of an episode
SAVED, FOLLOWED = 60, 150  # steps between two snapshots, and after each

Seen = tuple[bytes, bytes, bytes, str]


def seen(observation: Observation, info: Mapping[str, Any]) -> Seen:
    """A step's observation and info, in a form that can be compared bit for bit."""
    agent, objects, visible = observation["agent"], observation["objects"], observation["visible"]
    return agent.tobytes(), objects.tobytes(), visible.tobytes(), repr(info)


def follow(environment: Tabletop, controls: Iterable[Control]) -> list[Seen]:
    found = []
    for control in controls:
        observation, _, terminated, truncated, info = environment.step(control)
        found.append(seen(observation, info))
        if terminated or truncated:
            break
    return found


def episode(environment: Tabletop, seed: int) -> list[Seen]:
    return [seen(*environment.reset(seed=seed)), *follow(environment, random_controls(60))]


@each_size
def test_a_seed_gives_the_same_episode_again(task: str, objects: int) -> None:
    first = episode(world(task, objects), seed=5)
    assert episode(world(task, objects), seed=6)[0] != first[0]
    assert episode(world(task, objects), seed=5) == first
    assert episode(TASKS[task].make_env(objects), seed=5) == first


@each_task
def test_a_fresh_world_goes_on_from_a_file_as_the_old_one_did(task: str) -> None:
    arguments: dict[str, Any] = {"teleport_rate": OFTEN} if task.endswith("-noisy") else {}
    env = SceneEnv(TASKS[task], 3, **arguments)
    expert = expert_policy(env)
    expert.reset(env.reset(seed=2))
    controls: list[Control] = []
    steps: list[Seen] = []
    snapshots: dict[int, Snapshot] = {}
    while len(controls) < LONGEST and env.outcome is None:
        if len(controls) % SAVED == 0 or env.events:
            snapshots[len(controls)] = in_a_file(env.save())
        control = expert.act(env.scene)
        assert control is not None
        controls.append(control)
        env.step(controls[-1])
        steps.append(seen(env.env._observation, env.info))
    fresh: Tabletop = TASKS[task].make_env(3, **arguments)
    for step, snapshot in snapshots.items():
        observation, info = fresh.restore(snapshot)
        assert step == 0 or seen(observation, info)[:3] == steps[step - 1][:3]
        assert follow(fresh, controls[step : step + FOLLOWED]) == steps[step : step + FOLLOWED]


def in_a_file(snapshot: Snapshot) -> Snapshot:
    file = BytesIO()
    np.savez(file, **snapshot)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return dict(loaded)

"""Each task is a proper Gymnasium environment: checked, vectorised, and clear about what it does not take."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from episodes import clumsy_episode, each_size, each_task, expert_episode, random_controls, world
from gymnasium.utils.env_checker import check_env

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS
from bilevel.tabletop.gymnasium_ids import gymnasium_id
from bilevel.tasks.scene_env import SceneEnv

STILL = np.zeros(4, np.float32)


@each_task
def test_gymnasium_finds_nothing_wrong(task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(world(task, 1), skip_render_check=True)


@each_task
def test_vector_environments_are_made_by_name(task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vector = gymnasium.make_vec(gymnasium_id(task), num_envs=2, vectorization_mode="sync", objects=1)
        observation, info = vector.reset(seed=0)
        assert observation["visible"].shape == (2, len(world(task, 1).slots))
        assert list(info["outcome"]) == [None, None]
        assert not np.array_equal(observation["objects"][0], observation["objects"][1])
        _, reward, terminated, truncated, _ = vector.step(vector.action_space.sample())
    assert not any([*reward, *terminated, *truncated])
    vector.close()


@each_task
def test_the_largest_world_works(task: str) -> None:
    most = TASKS[task].max_objects
    assert most is not None
    env = SceneEnv(TASKS[task], most)
    env.reset(seed=0)
    for control in random_controls(20):
        assert env.env.observation_space.contains(env.env._observation)
        assert len(env.labels.goal(env.scene)) == most
        env.step(control)


@each_size
def test_what_is_seen_is_in_the_space_and_does_not_change_later(task: str, objects: int) -> None:
    environment = world(task, objects)
    for episode in (expert_episode(task, objects, 1), clumsy_episode(task, objects)):
        assert all(environment.observation_space.contains(timestep.observation) for timestep in episode)
        assert len({timestep.observation["agent"].tobytes() for timestep in episode}) > len(episode) / 2


@each_task
@pytest.mark.parametrize(
    ("control", "message"),
    [
        (np.full(4, np.nan, np.float32), "finite"),
        (np.array([0, np.inf, 0, 0], np.float32), "finite"),
        (np.zeros(3, np.float32), "shape"),
        (np.zeros((1, 4), np.float32), "shape"),
    ],
)
def test_a_control_is_four_finite_numbers(task: str, control: Any, message: str) -> None:
    environment = world(task, 1)
    environment.reset(seed=0)
    with pytest.raises(BadInput, match=message):
        environment.step(control)
    environment.step(STILL)  # nothing has happened


@each_task
def test_a_finished_episode_must_be_reset(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = world(task, 1)
    monkeypatch.setattr(environment, "step_limit", 2)
    environment.reset(seed=0)
    _, _, terminated, truncated, info = environment.step(STILL)
    assert (terminated, truncated, info["success"], info["outcome"]) == (False, False, False, None)
    _, reward, terminated, truncated, info = environment.step(STILL)
    assert (reward, terminated, truncated, info["success"], info["outcome"]) == (0.0, False, True, False, None)
    assert info["is_success"] is False
    with pytest.raises(BadInput, match="reset"):
        environment.step(STILL)
    environment.reset(seed=0)
    environment.step(STILL)


@each_task
@pytest.mark.parametrize("value", [np.nan, 1e12])
def test_an_unstable_simulation_ends_the_episode(task: str, value: float) -> None:
    environment = world(task, 1)
    environment.reset(seed=0)
    before = environment.step(STILL)[0]
    environment.simulation.data.qvel[:] = value
    observation, reward, terminated, truncated, info = environment.step(STILL)
    assert (reward, terminated, truncated, info["outcome"]) == (0.0, False, True, "unstable simulation")
    assert np.isfinite(observation["agent"]).all()
    assert np.array_equal(observation["objects"], before["objects"])
    with pytest.raises(BadInput, match="reset"):
        environment.step(STILL)
    environment.reset(seed=0)
    assert environment.step(STILL)[4]["outcome"] is None

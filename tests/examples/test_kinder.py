"""The examples of KinDER, which needs a Python environment of its own: examples/kinder/requirements.txt."""

from __future__ import annotations

import gc
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilevel
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.tasks.scene_env import SceneEnv

FOLDER = Path(__file__).parents[2] / "examples" / "kinder"
NAMES = ("stick_button", "shelf", "motion")
QUICK = LearningConfig(training=TrainingConfig(epochs=1), dagger=DaggerConfig(rounds=0))


def find(name: str) -> bilevel.Task:
    pytest.importorskip("kinder", reason="KinDER has a Python environment of its own")
    return bilevel.find_task(f"{FOLDER / name}.py:task")


@pytest.mark.parametrize("name", [*NAMES, "kinder_adapter"])
def test_it_is_at_most_150_lines(name: str) -> None:
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 150


@pytest.mark.parametrize("name", NAMES)
def test_what_is_seen_is_what_kinder_says(name: str) -> None:
    """By KinDER's own way from a vector to objects."""
    task = find(name)
    env = task.make_env(objects=3)
    observation, info = env.reset(seed=1)
    scene, state = task.perceive(observation, info, env), env.unwrapped.observation_space.devectorize(observation)
    for thing in state:
        seen: Any = scene.agent if thing.name == "robot" else scene[thing.name]
        for feature in state.type_features[thing.type]:
            known = feature.removeprefix("pos_base_").removeprefix("pose_")
            assert seen[known] == np.float32(state.get(thing, feature))
    seen_too = {name for name, kind in scene.objects.items() if kind in ("gap", "gate")}
    assert {thing.name for thing in state} - {"robot"} == set(scene.objects) - seen_too


@pytest.mark.parametrize(("name", "objects"), [("stick_button", 5), ("shelf", 5), ("motion", 5)])
def test_the_expert_succeeds_as_kinder_itself_judges(name: str, objects: int) -> None:
    env = SceneEnv(find(name), objects)
    ended = rollout(env, expert_policy(env), seed=1)
    assert (ended.outcome, env.info["success"]) == ("success", True)
    assert env.labels.goal(ended.scene) <= env.labels.state(ended.scene)


def test_the_hand_goes_where_it_is_told() -> None:
    """By a controller, which finds the joints; the hand's place is judged by KinDER's own simulator."""
    env = SceneEnv(find("shelf"), 1)
    env.reset(seed=1)
    arm = env.env.unwrapped._object_centric_env.robot.arm
    still, way = np.zeros(4, np.float32), np.array([0.05, -0.03, -0.02, 0.0], np.float32)
    for _ in range(40):  # until it is turned to the shelf
        scene = env.step(still)
    before = np.array(arm.get_end_effector_pose().position)
    seen = np.array([scene.agent.hand_x, scene.agent.hand_y, scene.agent.hand_z])
    env.step(way)
    assert np.allclose(arm.get_end_effector_pose().position - before, way[:3], atol=2e-3)
    assert np.allclose(seen, before, atol=5e-3)


def test_simulators_that_are_not_used_any_more_are_ended() -> None:
    """Each takes hundreds of megabytes."""
    task, pybullet = find("shelf"), pytest.importorskip("pybullet")
    env = SceneEnv(task, 1)
    client = env.env.unwrapped._object_centric_env.physics_client_id
    assert pybullet.isConnected(client)
    env.close()
    del env
    gc.collect()
    assert not pybullet.isConnected(client)


def test_sizes_that_kinder_does_not_register_are_refused_in_a_line() -> None:
    with pytest.raises(bilevel.BadInput, match="StickButton2D with 1, 2, 3, 5, 10 objects, not with 4"):
        find("stick_button").make_env(objects=4)


@pytest.mark.parametrize("name", ["PushPullHook2D", "ClutteredStorage2D", "DynPushPullHook2D", "Table3D"])
def test_the_adapter_serves_others_of_its_environments(name: str) -> None:
    find("motion")
    kinder_adapter: Any = importlib.import_module("kinder_adapter")
    family = kinder_adapter.Kinder(name)
    env = family.make_env(max(family.ids))
    observation, info = env.reset(seed=1)
    scene = family.perceive(observation, info, env)
    assert len(scene.objects) + 1 == len(env.unwrapped.observation_space.constant_objects)
    assert isinstance(family.spec.agent_roles["x"], bilevel.Position)
    assert np.isfinite(scene.features).all()


def test_rules_of_any_number_of_buttons_are_learned_from_a_few_demonstrations(tmp_path: Path) -> None:
    task = find("stick_button")
    data = bilevel.collect(task, tmp_path / "demonstrations", objects=3, episodes=4)
    learned = bilevel.learn(data, tmp_path / "policy", task=task, config=QUICK)
    assert {rule.action.name for rule in learned.rules} == {"pick", "press", "press-with"}

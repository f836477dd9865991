"""The example of robosuite, which needs a Python environment of its own: examples/robosuite_bins/requirements.txt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bilevel
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import LearningConfig
from bilevel.lowlevel.training import TrainingConfig

FILE = Path(__file__).parents[2] / "examples" / "robosuite_bins" / "pick_place.py"
QUICK = LearningConfig(training=TrainingConfig(epochs=1), dagger=DaggerConfig(rounds=0))


@pytest.fixture(scope="module")
def task() -> bilevel.Task:
    pytest.importorskip("robosuite", reason="robosuite has a Python environment of its own")
    return bilevel.find_task(f"{FILE}:task")


def test_it_is_at_most_150_lines() -> None:
    assert len(FILE.read_text().splitlines()) <= 150


def test_the_seed_decides_everything_and_hidden_things_are_out_of_the_way(task: bilevel.Task) -> None:
    def beginning(env: Any, seed: int) -> tuple[bilevel.Scene, Any]:
        observation, info = env.reset(seed=seed)
        for _ in range(5):
            observation, _, _, _, info = env.step(np.full(7, 0.3, np.float32))
        return task.perceive(observation, info, env), observation

    env = task.make_env(objects=2, kinds="Milk,Bread,Can")
    scenes = [beginning(env, seed)[0] for seed in (3, 4, 3)]
    assert scenes[0] == scenes[2] != scenes[1]
    other, observation = beginning(task.make_env(objects=2, kinds="Milk,Bread,Can"), 3)
    assert other == scenes[0]
    assert len([name for name in other.objects if name.endswith("bin")]) == 2
    away = [kind for kind in ("Milk", "Bread", "Cereal", "Can") if observation[f"{kind}_pos"][0] > 5]
    assert len(away) == 2
    assert "Cereal" in away


def test_the_expert_brings_all_four_things_to_their_bins_as_robosuite_itself_judges(task: bilevel.Task) -> None:
    env = task.make_env(objects=4)
    expert, labels = task.expert_for(env), task.labels
    assert expert is not None
    assert expert.choose is not None
    assert expert.control is not None
    observation, info = env.reset(seed=4)
    is_over = False
    while not (is_over or info.get("success")):
        scene = task.perceive(observation, info, env)
        action = expert.choose(labels.state(scene), labels.goal(scene))
        assert action is not None
        observation, _, _, is_over, info = env.step(expert.control(scene, action))
    scene = task.perceive(observation, info, env)
    assert env.env._check_success()
    assert labels.goal(scene) <= labels.state(scene)


def test_its_rules_are_learned_from_episodes_with_two_of_the_four(task: bilevel.Task, tmp_path: Path) -> None:
    demonstrations = bilevel.collect(task, tmp_path / "demonstrations", objects=2, episodes=2)
    learned = bilevel.learn(demonstrations, tmp_path / "policy", task=task, config=QUICK)
    assert [rule.action.name for rule in learned.rules] == ["place", "pick"]

"""The example of OGBench's cubes, at a small size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bilevel
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import LearningConfig
from bilevel.lowlevel.training import TrainingConfig

pytest.importorskip("ogbench", reason="the example needs the package ogbench")

EXAMPLE = Path(__file__).parents[2] / "examples/ogbench/cubes.py"
QUICK = LearningConfig(complete=True, training=TrainingConfig(epochs=1), dagger=DaggerConfig(rounds=0))


@pytest.fixture(scope="module")
def task() -> bilevel.Task:
    return bilevel.find_task(f"{EXAMPLE}:task")


def episode(task: bilevel.Task, **arguments: Any) -> tuple[bool, int]:
    """Let the expert act, and return whether it succeeded, as the environment says, and after how many steps."""
    assert isinstance(task.expert, bilevel.Expert)
    assert task.expert.choose is not None
    assert task.expert.control is not None
    env = task.make_env(**arguments)
    observation, info = env.reset(seed=1)
    is_over, steps = False, 0
    while not is_over:
        scene = task.perceive(observation, info, env)
        action = task.expert.choose(frozenset(task.label(scene)), frozenset(task.goal(scene)))
        assert action is not None
        observation, _, is_success, is_late, info = env.step(task.expert.control(scene, action))
        is_over, steps = is_success or is_late, steps + 1
    return bool(info["success"]), steps


def test_the_example_has_at_most_a_hundred_and_fifty_lines() -> None:
    assert len([line for line in EXAMPLE.read_text().splitlines() if line.strip()]) <= 150


def test_the_check_finds_nothing(task: bilevel.Task) -> None:
    assert [finding.message for finding in bilevel.check_task(task, objects=2, seeds=1)] == []


def test_the_expert_solves_an_official_task_within_its_limit(task: bilevel.Task) -> None:
    success, steps = episode(task, objects=2, task_id=5)
    assert success
    assert steps < 500


def test_rules_of_eight_demonstrations_swap_cubes(task: bilevel.Task, tmp_path: Path) -> None:
    demonstrations = bilevel.collect(task, tmp_path / "demonstrations", objects=2, episodes=8)
    learned = bilevel.learn(demonstrations, tmp_path / "policy", task=task, config=QUICK)
    env = task.make_env(objects=2, task_id=4)
    observation, info = env.reset(seed=1)
    scene = task.perceive(observation, info, env)
    state, goal = frozenset(task.label(scene)), frozenset(task.goal(scene))
    swap = bilevel.Problem("swap", "cubes", dict(scene.objects), state, goal)
    solution = bilevel.solve(task.domain, swap, learned.rules, commit=False)
    assert solution.is_solved
    assert [action.name for action in solution.plan.actions] == ["pick", "put-aside", "pick", "place", "pick", "place"]

"""OGBench's puzzle as a task: a planner says what to press, and a network that was learned how."""

from __future__ import annotations

from pathlib import Path

import pytest

import bilevel
from bilevel.learning.learn import LearningConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import find_policy
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.tasks.scene_env import SUCCESS, SceneEnv

pytest.importorskip("ogbench", reason="OGBench is not installed: pip install ogbench")

PUZZLE = Path(__file__).parents[2] / "examples/ogbench/puzzle.py"


@pytest.fixture(scope="module")
def task() -> bilevel.Task:
    return bilevel.find_task(f"{PUZZLE}:task")


def test_it_is_at_most_a_hundred_and_fifty_lines_of_code() -> None:
    assert len([line for line in PUZZLE.read_text().splitlines() if line.strip()]) <= 150


def test_there_are_only_boards_of_ogbench(task: bilevel.Task) -> None:
    with pytest.raises(bilevel.BadInput, match="9, 16, 20, 24 buttons, not 10"):
        SceneEnv(task, 10)


@pytest.mark.parametrize(("buttons", "task_id", "presses"), [(9, 4, 9), (16, 5, 7), (24, 5, 24)])
def test_official_tasks_are_planned_for(task: bilevel.Task, buttons: int, task_id: int, presses: int) -> None:
    scene = SceneEnv(task, buttons, task_id=task_id).reset(1)
    state, goal = task.labels.state(scene), task.labels.goal(scene)
    problem = bilevel.Problem("p", "puzzle", scene.objects, state, goal)
    found = bilevel.plan(task.domain, problem, planner="search").plan
    assert found is not None
    assert len({action.arguments for action in found}) == presses == len(found)


def test_the_expert_solves_an_official_task(task: bilevel.Task) -> None:
    env = SceneEnv(task, 9, task_id=1)
    assert rollout(env, expert_policy(env), 1).outcome == SUCCESS


def test_a_network_is_learned_without_rules_and_runs_under_a_planner(task: bilevel.Task, tmp_path: Path) -> None:
    demonstrations = bilevel.collect(task, tmp_path / "data", objects=9, episodes=2)
    config = LearningConfig(training=TrainingConfig(epochs=2))
    learned = bilevel.learn(demonstrations, tmp_path / "policy", task=task, config=config)
    assert learned.rules == ()
    method = find_policy(tmp_path / "policy", method="det-replan", planner="search")
    assert method.make is not None
    env = SceneEnv(task, 9, task_id=1)
    policy = method.make(env)
    assert env.env.action_space.contains(policy.act(env.reset(1)))
    assert policy.action == bilevel.Action("press", ("button00",))  # the plan is to press this one and the last

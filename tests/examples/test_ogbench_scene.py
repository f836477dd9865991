"""OGBench's scene as a task: its own tasks are told as facts, the expert solves them, and shows the rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bilevel
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Transition, rollout
from bilevel.rules.traces import traces_from_states
from bilevel.tasks.scene_env import SUCCESS, SceneEnv

pytest.importorskip("ogbench", reason="OGBench is not installed: pip install ogbench")

SCENE = Path(__file__).parents[2] / "examples/ogbench/scene.py"
DRAWER_LOCKED, WINDOW_LOCKED = "locked(drawer)", "locked(window)"
GOALS = {
    1: {"on(cube, spot)", "open(drawer)", "open(window)", "unlocked(drawer)", "unlocked(window)"},
    2: {"on(cube, spot)", "closed(drawer)", "closed(window)", DRAWER_LOCKED, WINDOW_LOCKED},
    3: {"on(cube, spot)", "open(drawer)", "closed(window)", "unlocked(drawer)", "unlocked(window)"},
    4: {"in(cube, drawer)", "closed(drawer)", "closed(window)", "unlocked(drawer)", WINDOW_LOCKED},
    5: {"in(cube, drawer)", "closed(drawer)", "open(window)", DRAWER_LOCKED, WINDOW_LOCKED},
}


@pytest.fixture(scope="module")
def env() -> SceneEnv:
    return SceneEnv(bilevel.find_task(f"{SCENE}:task"), 1, task_id=5)


def test_it_is_at_most_a_hundred_and_fifty_lines_of_code() -> None:
    assert len([line for line in SCENE.read_text().splitlines() if line.strip()]) <= 150


def test_a_seed_decides_everything(env: SceneEnv) -> None:
    def episode() -> list[np.ndarray]:
        return [env.reset(3).values, *(env.step(np.full(5, 0.3, np.float32)).values for _ in range(3))]

    for one, other in zip(episode(), episode(), strict=True):
        assert np.array_equal(one, other)


def test_the_goals_of_official_tasks_are_facts(env: SceneEnv) -> None:
    for task_id, goal in GOALS.items():
        env.env.unwrapped.task_id = task_id
        assert {str(fact) for fact in env.labels.goal(env.reset(1))} == goal


def test_the_expert_puts_the_cube_into_a_locked_drawer_which_shows_how(env: SceneEnv) -> None:
    env.env.unwrapped.task_id = 5
    states, goals = [], []

    def note(transition: Transition) -> None:
        states.append(env.labels.state(transition.scene))
        goals.append(env.labels.goal(transition.scene))

    assert rollout(env, expert_policy(env), 1, callback=note).outcome == SUCCESS
    found = traces_from_states(env.task.domain, states, goals, env.scene.objects)
    rules = bilevel.learn_rules(found.traces, env.task.domain)
    towards = [rule.action.name for rule in rules if [fact.predicate for fact in rule.goal_condition] == ["in"]]
    assert towards == ["put", "pick", "pull-open", "unlock"]

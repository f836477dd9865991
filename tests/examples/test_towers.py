"""The example of towers: its expert, what its labels say, and the rules that are learned of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import bilevel
from bilevel.demonstrations.traces import Contents
from bilevel.policies.policy import expert_policy
from bilevel.rules.traces import explain_change
from bilevel.tasks.scene_env import SceneEnv

TOWERS = bilevel.find_task(f"{Path(__file__).parents[2] / 'examples' / 'towers' / 'towers.py'}:task")


@pytest.mark.parametrize(("objects", "towers"), [(1, 1), (5, 1), (8, 1), (6, 3)])
def test_the_expert_builds_towers_and_wastes_no_action(objects: int, towers: int) -> None:
    env = SceneEnv(TOWERS, objects, towers=towers)
    expert = expert_policy(env)
    expert.reset(env.reset(seed=1))
    states, actions = [env.labels.state(env.scene)], list[bilevel.Action | None]()
    while env.outcome is None:
        control = expert.act(env.scene)
        assert control is not None
        env.step(control)
        actions += [expert.action] if expert.action not in actions[-1:] else []
        states += [env.labels.state(env.scene)] if env.labels.state(env.scene) != states[-1] else []
    assert env.outcome == "success"
    assert len(actions) == 2 * objects
    for (before, after), action in zip(pairwise(states), actions, strict=True):  # what was done explains what is seen
        assert [found.action for found, _ in explain_change(TOWERS.domain, before, after, env.scene.objects)] == [
            action
        ]


def test_it_is_a_task_without_faults() -> None:
    assert bilevel.check_task(TOWERS) == []


def test_rules_of_two_demonstrations_know_the_order_and_build_a_tower_of_eight(tmp_path: Path) -> None:
    data = bilevel.collect(TOWERS, tmp_path / "data", objects=3, episodes=2)
    rules = bilevel.learn_rules(Contents.of(data).traces, data.domain)
    assert [str(order) for order in rules[0].orders] == ["on(?b, ?b2) after on(?b2, ?su)"]
    env = SceneEnv(TOWERS, 8)
    scene = env.reset(seed=0)
    state, goal = env.labels.state(scene), env.labels.goal(scene)
    solution = bilevel.solve(
        TOWERS.domain, bilevel.Problem("eight", "towers", dict(scene.objects), state, goal), rules, commit=False
    )
    assert solution.is_solved
    assert len(solution.plan.actions) == 16

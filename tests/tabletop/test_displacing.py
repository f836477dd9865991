"""Blocks that somebody who watches puts elsewhere."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

from bilevel.tabletop import TASKS
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task

STILL = np.zeros(4, np.float32)


def displaced(env: SceneEnv, name: str) -> bool:
    assert env.task.displace is not None
    return env.task.displace(env.env, name)


def place(scene: Scene, name: str) -> tuple[float, float]:
    return scene[name].x, scene[name].y


def far(one: tuple[float, float], other: tuple[float, float]) -> float:
    return float(np.hypot(one[0] - other[0], one[1] - other[1]))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_only_blocks_are_put_elsewhere(task: Task) -> None:
    with closing(SceneEnv(task, 2)) as env:
        scene = env.reset(1)
        for name, kind in scene.objects.items():
            before = env.step(STILL)
            moved = displaced(env, name)
            after = env.step(STILL)
            assert moved == (kind == "block")
            if kind == "block":
                assert far(place(before, name), place(after, name)) > 0.05
        assert not displaced(env, "nobody")


def test_a_block_that_is_held_is_taken_away() -> None:
    task = TASKS["blocks"]
    with closing(SceneEnv(task, 1)) as env:
        scene = env.reset(0)
        expert = env.expert
        assert expert is not None
        assert expert.choose is not None
        assert expert.control is not None
        for _ in range(200):
            state, goal = env.labels.state(scene), env.labels.goal(scene)
            if "holding(block1)" in map(str, state):
                break
            action = expert.choose(state, goal)
            assert action is not None
            scene = env.step(expert.control(scene, action))
        assert "holding(block1)" in map(str, env.labels.state(scene))
        assert displaced(env, "block1")
        scene = env.step(STILL)
        assert "gripper-free()" in map(str, env.labels.state(scene))

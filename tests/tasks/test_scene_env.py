from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from bilevel.policies.episode import NO_ACTION
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, TERMINATED, SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_task import TINY, make_env


class Wrapped(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The tiny environment with other `info`, or another end."""

    def __init__(self, objects: int, info: dict[str, Any], terminated: bool = False) -> None:
        super().__init__(make_env(objects))
        self._info, self._terminated = info, terminated

    def step(self, action: Any) -> Any:
        observation, reward, _, truncated, _ = self.env.step(action)
        return observation, reward, self._terminated, truncated, self._info


def with_env(info: dict[str, Any], terminated: bool = False, **fields: Any) -> Task:
    return replace(TINY, make_env=lambda objects: Wrapped(objects, info, terminated), **fields)


def outcome(task: Task) -> str:
    env = SceneEnv(task, 1)
    return rollout(env, expert_policy(env), 2).outcome


def after_a_step(task: Task) -> str | None:
    env = SceneEnv(task, 1)
    env.reset(2)
    env.step(np.zeros(3, np.float32))
    return env.outcome


def test_the_expert_succeeds_by_the_word_of_the_environment() -> None:
    assert outcome(TINY) == SUCCESS


@pytest.mark.parametrize(
    ("task", "is_success"),
    [
        (TINY, None),
        (with_env({"success": True}), True),
        (with_env({"success": False, "is_success": True}, steps_per_object=1), False),
        (with_env({"is_success": False}, success=lambda scene, info: True), True),
    ],
)
def test_the_end_of_an_episode_says_whether_it_succeeded(task: Task, is_success: bool | None) -> None:
    env = SceneEnv(task, 1)
    env.reset(2)
    env.step(np.zeros(3, np.float32))
    assert (env.outcome is None, env.info.get("is_success")) == (is_success is None, is_success)


def test_other_ends() -> None:
    assert after_a_step(with_env({"success": False}, terminated=True)) == TERMINATED
    assert after_a_step(with_env({"success": False, "outcome": "on fire"}, terminated=True)) == "on fire"
    assert after_a_step(with_env({"success": False}, steps_per_object=1)) == STEP_LIMIT


def test_an_expert_that_gives_up_ends_the_episode() -> None:
    assert outcome(replace(TINY, expert=Expert(choose=lambda state, goal: None, control=lambda *_: None))) == NO_ACTION


def broken(*_: Any) -> Any:
    raise ValueError("out of\ncheese")


@pytest.mark.parametrize(
    ("field", "where"),
    [("make_env", "make_env"), ("perceive", "perceive"), ("label", "label"), ("goal", "goal"), ("success", "success")],
)
def test_an_error_in_a_users_function_is_one_line_with_its_place(field: str, where: str) -> None:
    changed: dict[str, Any] = {field: (lambda objects: broken()) if field == "make_env" else broken}
    with pytest.raises(
        BadInput, match=rf"^{where}.*raised ValueError: out of cheese \(.*test_scene_env.py, line \d+\)$"
    ):
        outcome(replace(TINY, **changed))


@pytest.mark.parametrize(
    ("objects", "arguments", "message"),
    [
        (0, {}, "takes 1 to 12 objects, not 0"),
        (13, {}, "takes 1 to 12 objects, not 13"),
        (3, {"colour": 1}, "takes no argument 'colour'; it takes: slip_rate"),
    ],
)
def test_what_the_task_does_not_take_is_refused(objects: int, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        SceneEnv(TINY, objects, **arguments)

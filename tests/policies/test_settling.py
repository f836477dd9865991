"""An episode is given up only where nothing will happen any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bilevel.policies.episode_run import LONG, run_episode
from bilevel.policies.rollout import SETTLED
from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tabletop import TASKS
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import STEP_LIMIT, SceneEnv
from bilevel.tasks.task import Labels
from tiny_task import TINY, Delivery

LIMIT = LONG + 50


class Still:
    """Does nothing, or trembles at every other step, and remembers nothing."""

    action: Action | None = None
    state: Facts = NO_FACTS
    goal: Facts = NO_FACTS

    def __init__(self, labels: Labels, trembling: float = 0.0, is_memoryless: bool = True) -> None:
        self.labels, self.is_memoryless = labels, is_memoryless
        self._trembling, self._steps = trembling, 0

    def reset(self, scene: Scene) -> None:
        self._steps, self.state, self.goal = 0, self.labels.state(scene), self.labels.goal(scene)

    def act(self, scene: Scene) -> Control:
        self._steps += 1
        return np.array([self._trembling * (-1) ** self._steps, 0, 0], np.float32)


class Calm(Delivery):
    is_restless = False  # nothing happens by itself while one parcel lies there


def calm_env(objects: int) -> Calm:
    return Calm(objects, slip_rate=0.0, discrete=False)


def run(make_env: Any = calm_env, noise: float = 0.0, **how: Any) -> tuple[str, int]:
    env = SceneEnv(replace(TINY, make_env=make_env, steps_per_object=LIMIT), 1)
    found = run_episode(env, Still(env.labels, **how), 1, noise)
    assert found.reason == "stall"
    return found.outcome, found.steps


def test_rest_ends_an_episode() -> None:
    assert run() == (SETTLED, LONG + 1)


def test_who_trembles_remembers_or_is_perturbed_goes_on_to_the_end() -> None:
    assert run(trembling=0.01) == (STEP_LIMIT, LIMIT)
    assert run(is_memoryless=False) == (STEP_LIMIT, LIMIT)
    assert run(noise=0.7) == (STEP_LIMIT, LIMIT)


def test_an_environment_that_does_not_say_that_it_is_calm_may_do_something() -> None:
    assert run(make_env=TINY.make_env) == (STEP_LIMIT, LIMIT)


@pytest.mark.parametrize("task", ["blocks", "gacha"])
def test_worlds_on_the_table_say_whether_they_are_restless(task: str) -> None:
    env = SceneEnv(TASKS[task], 1)
    env.reset(1)
    assert env.env.unwrapped.is_restless is False

"""The benchmark of settled episodes finds one that would have succeeded, had it not been given up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from settled_episodes import outcomes

from bilevel.policies.episode_run import LONG
from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from tiny_task import SPEED, TINY, Delivery


class Calm(Delivery):
    is_restless = False  # it does nothing by itself


class Pausing:
    """Stands still for a while, and then, if it delivers, brings the parcel to its spot; it says to have no memory."""

    is_memoryless = True
    action: Action | None = None
    state: Facts = NO_FACTS
    goal: Facts = NO_FACTS

    def __init__(self, env: SceneEnv, delivers: bool) -> None:
        self.labels, self._delivers, self._steps = env.labels, delivers, 0

    def reset(self, scene: Scene) -> None:
        self._steps, self.state, self.goal = 0, self.labels.state(scene), self.labels.goal(scene)

    def act(self, scene: Scene) -> Control:
        self._steps += 1
        if self._steps <= LONG + 10 or not self._delivers:
            return np.zeros(3, np.float32)
        agent, parcel, spot = scene.agent, scene["parcel1"], scene["spot1"]
        aim = spot if parcel.held else parcel
        way = np.array([aim.x - agent.x, aim.y - agent.y])
        is_there = np.abs(way).max() < 0.01
        return np.array([*np.clip(way, -SPEED, SPEED), parcel.held != is_there], np.float32)


def counted(delivers: bool) -> dict[str, int]:
    task = replace(TINY, make_env=lambda objects: Calm(objects, slip_rate=0.0, discrete=False), steps_per_object=1200)
    env = SceneEnv(task, 1)
    (found,) = outcomes(env, Pausing(env, delivers), 0, 1, 1)
    return found


def test_an_episode_that_settles_is_run_to_its_end_once_more() -> None:
    still = counted(delivers=False)
    assert (still["settled"], still["successes"], still["successes_to_the_end"]) == (1, 0, 0)
    assert still["saved_steps"] == 1200 - (LONG + 1)
    late = counted(delivers=True)
    assert (late["settled"], late["successes"], late["successes_to_the_end"]) == (1, 0, 1)
    assert late["other_reasons_to_the_end"] == 1

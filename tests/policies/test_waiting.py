"""A policy that waits holds still where another is at a loss, but not for ever."""

from __future__ import annotations

import numpy as np

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.body import Body
from bilevel.policies.episode import NO_ACTION, Episode
from bilevel.policies.policy import BilevelPolicy, ControllingExpert, expert_policy
from bilevel.policies.rollout import rollout
from bilevel.policies.waiting import WaitingPolicy
from bilevel.symbolic.domain import Action, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from tiny_policies import CONTROLS
from tiny_task import TINY, control


class Blind(ControllingExpert):
    """Sees nothing for the first few steps."""

    def __init__(self, steps: int) -> None:
        super().__init__(control)
        self._blind = steps

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        self._blind -= 1
        if self._blind >= 0:
            raise Unseen("dark")
        return super().control(scene, state, goal, action)


def run(blind: int, patience: int = 20) -> tuple[Episode, list[Control]]:
    env = SceneEnv(TINY, 1)
    expert = expert_policy(env)
    assert isinstance(expert, BilevelPolicy)
    expert.low = Blind(blind)
    controls: list[Control] = []
    policy = WaitingPolicy(expert, Body(CONTROLS, TINY.switches), patience)
    return rollout(env, policy, 1, callback=lambda step: controls.append(step.control)), controls


def test_it_does_as_the_other_where_that_knows_what_to_do() -> None:
    env = SceneEnv(TINY, 1)
    assert run(0)[0] == rollout(env, expert_policy(env), 1)


def test_it_waits_and_goes_on() -> None:
    usual, _ = run(0)
    found, controls = run(5)
    assert (found.outcome, found.steps) == (SUCCESS, usual.steps + 5)
    still = CONTROLS.decode(np.zeros(CONTROLS.size, np.float32))
    assert all(np.array_equal(given, still) for given in controls[:5])


def test_it_gives_up_when_it_has_waited_for_long() -> None:
    found, _ = run(50, patience=7)
    assert (found.outcome, found.steps) == (NO_ACTION, 7)

"""A rollout runs one episode to its end and says how it went."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import NO_ACTION, STOPPED, Transition, rollout
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import STEP_LIMIT, SUCCESS, SceneEnv
from tiny_task import TINY

RIGHT = np.array([0.1, 0, 0], np.float32)


class Walker:
    """Goes to the right for so many steps, then knows no more."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.left = 0

    def reset(self, scene: Scene) -> None:
        self.left = self.steps

    def act(self, scene: Scene) -> Control | None:
        self.left -= 1
        return RIGHT if self.left >= 0 else None


@pytest.fixture(scope="module")
def env() -> SceneEnv:
    return SceneEnv(TINY, 1)


def test_an_expert_succeeds_and_every_step_is_seen(env: SceneEnv) -> None:
    seen: list[Transition] = []
    episode = rollout(env, expert_policy(env), seed=3, callback=seen.append)
    assert (episode.success, episode.outcome) == (True, SUCCESS)
    assert len(seen) == episode.steps > 5
    assert episode.scene is env.scene
    assert all(transition.control is transition.executed for transition in seen)
    assert seen[0].scene == env.reset(3)


def test_a_policy_that_knows_no_more_ends_the_episode(env: SceneEnv) -> None:
    for steps in (5, 0):
        episode = rollout(env, Walker(steps), seed=0)
        assert (episode.outcome, episode.steps, episode.success) == (NO_ACTION, steps, False)


def test_the_step_limit_ends_the_episode() -> None:
    episode = rollout(SceneEnv(replace(TINY, steps_per_object=7), 1), Walker(100), seed=0)
    assert (episode.outcome, episode.steps, episode.success) == (STEP_LIMIT, 7, False)


def test_an_episode_can_be_given_up(env: SceneEnv) -> None:
    episode = rollout(env, Walker(100), seed=0, stop=lambda: env.steps == 4)
    assert (episode.outcome, episode.steps) == (STOPPED, 4)


def test_what_is_perturbed_is_executed_and_the_wanted_control_kept(env: SceneEnv) -> None:
    seen: list[Transition] = []
    perturbed = rollout(env, Walker(10), seed=0, perturb=np.negative, callback=seen.append)
    assert all(step.control is RIGHT and np.array_equal(step.executed, -RIGHT) for step in seen)
    assert perturbed.scene.agent.x == pytest.approx(-1)


def test_events_come_with_the_scene_that_they_led_to() -> None:
    env, seen = SceneEnv(TINY, 3), list[Transition]()
    rollout(env, expert_policy(env), seed=0, callback=seen.append)
    arrivals = [step for step in seen if step.events]
    assert [step.events[0] for step in arrivals] == ["arrival parcel2", "arrival parcel3"]
    for step, name in zip(arrivals, ("parcel2", "parcel3"), strict=True):
        assert name in step.scene
        assert name not in seen[seen.index(step) - 1].scene


def test_the_same_seed_gives_the_same_episode(env: SceneEnv) -> None:
    first, second, other = (rollout(env, expert_policy(env), seed=seed) for seed in (1, 1, 2))
    assert (first.steps, first.scene) == (second.steps, second.scene)
    assert first.scene != other.scene

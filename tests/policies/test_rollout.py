"""A rollout runs one episode to its end and says how it went."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.policies.policies import Control
from bilevel.policies.rollout import Episode, Moment, rollout
from bilevel.tabletop.blocks import Blocks
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tasks import TASKS

DOWN = np.array([0, 0, -1, -1], np.float32)


class Sinker:
    """Goes down for so many steps, then knows no more."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.left = 0

    def reset(self, observation: Observation) -> None:
        self.left = self.steps

    def act(self, observation: Observation) -> Control | None:
        self.left -= 1
        return DOWN if self.left >= 0 else None


@pytest.fixture(scope="module")
def world() -> Blocks:
    return Blocks(1)


def test_an_expert_succeeds_and_every_step_is_watched(world: Blocks) -> None:
    watched: list[Moment] = []
    episode = rollout(world, TASKS["blocks"].expert(world.slots), seed=3, watch=watched.append)
    assert episode.success
    assert episode.outcome == episode.info["outcome"] == "success"
    assert len(watched) == episode.steps > 20
    first, _ = world.reset(seed=3)
    assert np.array_equal(watched[0].observation["objects"], first["objects"])
    assert all(moment.control is moment.executed for moment in watched)


def test_a_policy_that_knows_no_more_ends_the_episode(world: Blocks) -> None:
    episode = rollout(world, Sinker(5), seed=0)
    assert (episode.outcome, episode.steps, episode.success) == ("no action", 5, False)
    assert rollout(world, Sinker(0), seed=0).steps == 0


def test_the_step_limit_ends_the_episode(world: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "step_limit", 7)
    episode = rollout(world, Sinker(100), seed=0)
    assert (episode.outcome, episode.steps, episode.success) == ("step limit", 7, False)


def test_a_disturbed_control_is_executed_and_the_wanted_one_kept(world: Blocks) -> None:
    watched: list[Moment] = []
    disturbed = rollout(world, Sinker(10), seed=0, disturb=np.negative, watch=watched.append)
    assert all(moment.control is DOWN and np.array_equal(moment.executed, -DOWN) for moment in watched)
    assert disturbed.observation["agent"][2] > rollout(world, Sinker(10), seed=0).observation["agent"][2]


def test_the_same_seed_gives_the_same_episode(world: Blocks) -> None:
    expert = TASKS["blocks"].expert(world.slots)
    first, second, other = (rollout(world, expert, seed=seed) for seed in (1, 1, 2))

    def content(episode: Episode) -> tuple[int, bytes]:
        return episode.steps, episode.observation["objects"].tobytes()

    assert content(first) == content(second) != content(other)

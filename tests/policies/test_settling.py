"""An episode is given up only where nothing will happen any more."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.experiments.evaluation import run_episode
from bilevel.policies.failures import SETTLED
from bilevel.policies.policies import Control
from bilevel.policies.settling import LONG
from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tabletop.labelling import Labels
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tasks import find_task


class Still:
    """Does nothing, or trembles at every other step, and remembers nothing."""

    action: Action | None = None
    state: Facts = NO_FACTS

    def __init__(self, labels: Labels, trembling: float = 0.0, is_memoryless: bool = True) -> None:
        self.labels, self.is_memoryless = labels, is_memoryless
        self._trembling, self._steps = trembling, 0

    def reset(self, observation: Observation) -> None:
        self._steps = 0

    def act(self, observation: Observation) -> Control:
        self._steps += 1
        return np.array([self._trembling * (-1) ** self._steps, 0, 0, -1], np.float32)


def run(task: str, trembling: float = 0.0, is_memoryless: bool = True, noise: float = 0.0) -> tuple[str, int]:
    known = find_task(task)
    environment = known.make(1)
    policy = Still(known.labels(environment.slots), trembling, is_memoryless)
    episode = run_episode(environment, policy, 1, noise)
    assert episode.reason is not None
    environment.close()
    return episode.outcome, episode.steps


@pytest.mark.parametrize("task", ["blocks", "gacha", "colour-noisy"])
def test_rest_ends_an_episode(task: str) -> None:
    outcome, steps = run(task)
    assert outcome == SETTLED
    assert LONG < steps < 2 * LONG


def test_who_trembles_remembers_or_is_jostled_goes_on_to_the_end() -> None:
    limit = find_task("blocks").make(1).step_limit
    assert run("blocks", trembling=0.5) == ("step limit", limit)
    assert run("blocks", is_memoryless=False) == ("step limit", limit)
    assert run("blocks", noise=0.7) == ("step limit", limit)


def test_a_world_that_may_strike_is_not_at_rest() -> None:
    """One block is at its goal at the end of an expert's episode, and a teleport may take it away at any step."""
    task = find_task("factory-noisy")
    environment = task.make(1, teleport_rate=1e-9)
    expert = task.expert(environment.slots)
    observation, _ = environment.reset(seed=3)
    assert not environment.is_restless
    expert.reset(observation)
    while not environment.is_restless:
        control = expert.act(observation)
        assert control is not None
        observation, *_ = environment.step(control)
    assert environment.achieved(observation).any()
    environment.teleport_rate = 0.0
    assert not environment.is_restless

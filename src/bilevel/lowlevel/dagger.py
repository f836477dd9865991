"""DAgger: let the learner act, let the expert say what it would have done, and learn from both.

Behaviour cloning sees only where the expert goes. A learner makes small mistakes, and with a jostled hand large ones,
and finds itself where nobody has shown it what to do. Here the learner's rules decide, its network moves the hand, and
the expert's hand is asked for its control at every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bilevel.demonstrations.processes import Work, in_order, spread
from bilevel.environments.noise import Bursts, Jostle
from bilevel.environments.observation import Array, Observation
from bilevel.execution.policies import BilevelPolicy, LowLevelPolicy
from bilevel.execution.rollout import Moment, rollout
from bilevel.lowlevel.architecture import CONTROL, Architecture, Weights
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.samples import Samples, Situation, encode_episode
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import practice_seed
from bilevel.tasks import find_task


@dataclass(frozen=True)
class DaggerConfig:
    """How often the learner practises, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the bursts that jostle the learner's hand, in two of three episodes
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


@dataclass(frozen=True)
class Learner:
    """A policy as it is handed to other processes, with the world that it practises in."""

    task: str
    arguments: Mapping[str, Any]  # of the environment
    rules: Sequence[Rule]
    architecture: Architecture
    weights: Weights
    seed: int


def practise(learner: Learner, config: DaggerConfig, round_: int, workers: int = 1) -> Iterator[Samples]:
    """The samples of each episode of a round, in the order of their numbers."""
    start = partial(_start, learner, config, round_)
    with closing(spread(start, range(config.episodes), workers)) as done:
        yield from in_order(done)


def _start(learner: Learner, config: DaggerConfig, round_: int) -> Work[tuple[int, Samples]]:
    """Make the environment, once; what comes back runs an episode."""
    task = find_task(learner.task)
    environment = task.make(**learner.arguments)
    slots = environment.slots
    low = GnnPolicy(learner.architecture, learner.weights, slots)
    policy = BilevelPolicy(task.labels(slots), RulePolicy(learner.rules, task.domain), low)
    teacher = task.expert(slots).low

    def practise_once(number: int) -> tuple[int, Samples]:
        seed = practice_seed(learner.seed, round_, number)
        lesson = _Lesson(policy, teacher, config)
        disturb = Jostle(Bursts(amplitude=config.noise), seed) if config.noise and number % 3 else None
        rollout(environment, policy, seed, disturb=disturb, watch=lesson, stop=lesson.is_over)
        controls = np.array(lesson.controls, np.float32).reshape(-1, CONTROL)
        encoding = learner.architecture.encoding
        return number, encode_episode(encoding, slots, lesson.seen, lesson.situations, controls, number)

    return practise_once


class _Lesson:
    """Notes every step of the learner, with what its teacher would have done there."""

    def __init__(self, policy: BilevelPolicy, teacher: LowLevelPolicy, config: DaggerConfig) -> None:
        self._policy, self._teacher, self._config = policy, teacher, config
        self.seen: list[Observation] = []
        self.situations: list[Situation] = []
        self.controls: list[Array] = []
        self._still = 0  # steps since the situation last changed

    def __call__(self, moment: Moment) -> None:
        policy = self._policy
        assert policy.action is not None
        situation = policy.state, policy.goal, policy.action
        self._still = self._still + 1 if self.situations and self.situations[-1] == situation else 0
        self.seen.append(moment.observation)
        self.situations.append(situation)
        self.controls.append(self._teacher.control(moment.observation, *situation))

    def is_over(self) -> bool:
        return self._still >= self._config.patience or len(self.seen) >= self._config.longest

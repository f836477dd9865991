"""DAgger: let the learner act, let the expert say what it would have done, and learn from both.

Behaviour cloning sees only where the expert goes. A learner makes small mistakes, and with a jostled hand large ones,
and finds itself where nobody has shown it what to do. Here the learner acts, and its teacher is asked for a control at
every step: for a bilevel policy the expert's hand, which is told what the learner's rules have decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from bilevel.lowlevel.architecture import CONTROL, Architecture, Weights
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.samples import Samples, Situation, encode_episode
from bilevel.policies.policies import BilevelPolicy, Control, Policy
from bilevel.policies.rollout import Moment, rollout
from bilevel.processes import Work, in_order, spread
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import practice_seed
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.observation import Array, Observation, Slots
from bilevel.tabletop.tasks import find_task

Found = TypeVar("Found", covariant=True)
Teach = Callable[[Observation], "Control | None"]  # what the teacher would do, if it knows


@dataclass(frozen=True)
class DaggerConfig:
    """How often the learner practises, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the bursts that jostle the learner's hand, in two of three episodes
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


class Practising(Policy, Protocol):
    """A policy that can be watched while it practises."""

    state: Facts
    goal: Facts
    action: Action | None


class Learner(Protocol[Found]):
    """Somebody who practises, as it is handed to other processes, with the world to practise in."""

    @property
    def task(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Those of the environment."""

    @property
    def seed(self) -> int: ...

    def begin(self, slots: Slots) -> tuple[Practising, Teach]:
        """The policy for an environment with these slots, and its teacher."""

    def encode(
        self, slots: Slots, seen: Sequence[Observation], situations: Sequence[Situation], controls: Array, number: int
    ) -> Found:
        """What is learned from an episode."""


@dataclass(frozen=True)
class BilevelLearner:
    """Rules decide and a network moves the hand; the teacher is the expert's hand alone."""

    task: str
    arguments: Mapping[str, Any]
    rules: Sequence[Rule]
    architecture: Architecture
    weights: Weights
    seed: int

    def begin(self, slots: Slots) -> tuple[Practising, Teach]:
        task = find_task(self.task)
        low = GnnPolicy(self.architecture, self.weights, slots)
        policy = BilevelPolicy(task.labels(slots), RulePolicy(self.rules, task.domain), low)
        hand = task.expert(slots).low

        def teach(observation: Observation) -> Control:
            assert policy.action is not None
            return hand.control(observation, policy.state, policy.goal, policy.action)

        return policy, teach

    def encode(
        self, slots: Slots, seen: Sequence[Observation], situations: Sequence[Situation], controls: Array, number: int
    ) -> Samples:
        return encode_episode(self.architecture.encoding, slots, seen, situations, controls, number)


def practise(
    learner: Learner[Found], config: DaggerConfig, round_: int, workers: int = 1, begin: int = 0
) -> Iterator[Found]:
    """The samples of each episode of a round, in the order of their numbers, from the given one on."""
    start = partial(_start, learner, config, round_)
    with closing(spread(start, range(begin, config.episodes), workers)) as done:
        yield from in_order(done, begin)


def _start(learner: Learner[Found], config: DaggerConfig, round_: int) -> Work[tuple[int, Found]]:
    """Make the environment, once; what comes back runs an episode."""
    environment = find_task(learner.task).make(**learner.arguments)
    policy, teach = learner.begin(environment.slots)

    def practise_once(number: int) -> tuple[int, Found]:
        seed = practice_seed(learner.seed, round_, number)
        lesson = _Lesson(policy, teach, config)
        disturb = Jostle(Bursts(amplitude=config.noise), seed) if config.noise and number % 3 else None
        rollout(environment, policy, seed, disturb=disturb, watch=lesson, stop=lesson.is_over)
        controls = np.array(lesson.controls, np.float32).reshape(-1, CONTROL)
        return number, learner.encode(environment.slots, lesson.seen, lesson.situations, controls, number)

    return practise_once


class _Lesson:
    """Notes every step of the learner for which its teacher knows what it would have done there."""

    def __init__(self, policy: Practising, teach: Teach, config: DaggerConfig) -> None:
        self._policy, self._teach, self._config = policy, teach, config
        self.seen: list[Observation] = []
        self.situations: list[Situation] = []
        self.controls: list[Array] = []
        self._last: Situation | None = None
        self._steps = 0
        self._still = 0  # steps since the situation last changed

    def __call__(self, moment: Moment) -> None:
        situation = self._policy.state, self._policy.goal, self._policy.action
        self._still = self._still + 1 if situation == self._last else 0
        self._last = situation
        self._steps += 1
        control = self._teach(moment.observation)
        if control is not None:
            self.seen.append(moment.observation)
            self.situations.append(situation)
            self.controls.append(control)

    def is_over(self) -> bool:
        return self._still >= self._config.patience or self._steps >= self._config.longest

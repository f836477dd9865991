"""DAgger: let the learner act, let the expert say what it would have done, and learn from both.

Behaviour cloning sees only where the expert goes. A learner makes small mistakes, and with noise on its controls large
ones, and finds itself where nobody has shown it what to do. Here the learner acts, and the expert is asked for a
control at every step: for a bilevel policy the expert's low level, conditioned on what the learner's rules decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import Encoding, Samples, Situation, encode_episode
from bilevel.policies.policy import BilevelPolicy, ControllingExpert, LowLevelPolicy, ObservedPolicy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.processes import Work, in_order, spread
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import dagger_seed
from bilevel.symbolic.domain import BadInput, Domain
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

Found = TypeVar("Found", covariant=True)
Practice = Callable[[], SceneEnv]  # makes where a learner acts: the task at the size of the demonstrations
Teacher = Callable[[Scene], "Control | None"]  # what the expert would do, if it knows


class DaggerConfig(msgspec.Struct, frozen=True):
    """How often the learner acts and asks the expert, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the control noise, in two of three episodes
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


class Learner(Protocol[Found]):
    """A policy in the making, as it is handed to other processes."""

    @property
    def seed(self) -> int: ...

    def begin(self, env: SceneEnv) -> tuple[ObservedPolicy, Teacher]:
        """The policy for an environment, and its teacher."""

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: NDArray[np.float32], number: int
    ) -> Found:
        """What is learned from an episode."""


@dataclass(frozen=True)
class BilevelLearner:
    """Rules decide and a network moves the agent; the teacher is the expert's low level alone."""

    domain: Domain
    rules: Sequence[Rule]
    encoding: Encoding
    make_low: Callable[[], LowLevelPolicy]
    seed: int

    def begin(self, env: SceneEnv) -> tuple[ObservedPolicy, Teacher]:
        if env.expert is None or env.expert.control is None:
            raise BadInput(f"the expert of the task '{env.task.name}' cannot be asked for controls, so no DAgger")
        policy = BilevelPolicy(env.labels, RulePolicy(self.rules, self.domain), self.make_low())
        expert = ControllingExpert(env.expert.control)

        def teach(scene: Scene) -> Control:
            assert policy.action is not None
            return expert.control(scene, policy.state, policy.goal, policy.action)

        return policy, teach

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: NDArray[np.float32], number: int
    ) -> Samples:
        return encode_episode(self.encoding, scenes, situations, targets, number)


def dagger_rollouts(
    learner: Learner[Found], practice: Practice, config: DaggerConfig, round_: int, workers: int = 1, begin: int = 0
) -> Iterator[Found]:
    """The samples of each episode of a round, in the order of their numbers, from the given one on."""
    start = partial(_start, learner, practice, config, round_)
    with closing(spread(start, range(begin, config.episodes), workers)) as done:
        yield from in_order(done, begin)


def _start(learner: Learner[Found], practice: Practice, config: DaggerConfig, round_: int) -> Work[tuple[int, Found]]:
    """Make the environment, once; what comes back runs an episode."""
    env = practice()
    policy, teacher = learner.begin(env)

    def run(number: int) -> tuple[int, Found]:
        seed = dagger_seed(learner.seed, round_, number)
        lesson = _Lesson(policy, teacher, config)
        noise = Perturbation(amplitude=config.noise) if config.noise and number % 3 else None
        perturb = Perturb(noise, env.controls, env.task.switches, seed) if noise else None
        rollout(env, policy, seed, perturb=perturb, callback=lesson, stop=lesson.is_over)
        targets = env.controls.encode(np.array(lesson.controls))
        return number, learner.encode(lesson.scenes, lesson.situations, targets, number)

    return run


class _Lesson:
    """Notes every step of the learner for which its teacher knows what it would have done there."""

    def __init__(self, policy: ObservedPolicy, teacher: Teacher, config: DaggerConfig) -> None:
        self._policy, self._teacher, self._config = policy, teacher, config
        self.scenes: list[Scene] = []
        self.situations: list[Situation] = []
        self.controls: list[Control] = []
        self._last: Situation | None = None
        self._steps = 0
        self._still = 0  # steps since the situation last changed

    def __call__(self, transition: Transition) -> None:
        situation = self._policy.state, self._policy.goal, self._policy.action
        self._still = self._still + 1 if situation == self._last else 0
        self._last = situation
        self._steps += 1
        control = self._teacher(transition.scene)
        if control is not None:
            self.scenes.append(transition.scene)
            self.situations.append(situation)
            self.controls.append(control)

    def is_over(self) -> bool:
        return self._still >= self._config.patience or self._steps >= self._config.longest

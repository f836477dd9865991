"""DAgger: let the learner act, let the expert say what it would have done, and learn from both.

Behaviour cloning sees only where the expert goes. A learner makes small mistakes, and with noise on its controls large
ones, and finds itself where nobody has shown it what to do. Here the learner acts, and the expert is asked for a
control at every step: for a bilevel policy the expert's low level, conditioned on what the learner's rules decided.
Where these have nothing to say, the teacher decides as well, and the rules learn from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.learning.asking import asking_policy
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.learning.translation import Translation
from bilevel.lowlevel.encoding import Encoding, Samples, Situation, encode_episode
from bilevel.policies.policy import LowLevelPolicy, Policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.processes import Work, in_order, spread
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import dagger_seed
from bilevel.symbolic.domain import Domain
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv

Found = TypeVar("Found", covariant=True)
_APART = 2  # keeps the random numbers of actions apart from those of the environment and of the noise

Practice = Callable[[], SceneEnv]  # makes where a learner acts: the task at the size of the demonstrations
Teacher = Callable[[Scene], "Control | None"]  # what the expert would do, if it knows


class DaggerConfig(msgspec.Struct, frozen=True):
    """How often the learner acts and asks the expert, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the control noise, in two of three episodes
    random_actions: int = 12  # at most, with which one of these two begins
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


def _no_gaps(scene: Scene) -> RuleGaps:
    return RuleGaps()


def _not_scrambled(actions: int, rng: np.random.Generator) -> None:
    """One that does not know of actions does none at random."""


@dataclass(frozen=True)
class Apprentice:
    """A policy at work in an environment, and its teacher.

    `scramble(actions, rng)` makes the next episode begin with so many random actions, and `gaps(scene)` are those of
    the rules in the episode that ended with this scene.
    """

    policy: Policy
    teacher: Teacher
    scramble: Callable[[int, np.random.Generator], None] = _not_scrambled
    gaps: Callable[[Scene], RuleGaps] = _no_gaps


@dataclass(frozen=True)
class DaggerEpisode(Generic[Found]):
    """What is learned from an episode: at the low level samples, at the high level what the rules lack."""

    samples: Found
    gaps: RuleGaps
    success: bool = False


class Learner(Protocol[Found]):
    """A policy in the making, as it is handed to other processes."""

    @property
    def seed(self) -> int:
        """Decides what is random in its episodes."""

    def begin(self, env: SceneEnv) -> Apprentice:
        """The policy for an environment, and its teacher."""

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: NDArray[np.float32], number: int
    ) -> Found:
        """The samples of an episode."""


@dataclass(frozen=True)
class BilevelLearner:
    """Rules decide and a network moves the agent; the teacher decides only where the rules do not."""

    domain: Domain
    rules: Sequence[Rule]
    encoding: Encoding
    make_low: Callable[[], LowLevelPolicy]
    seed: int
    commit: bool = False
    translation: Translation | None = None  # of a learned domain's actions into the expert's

    def begin(self, env: SceneEnv) -> Apprentice:
        """Return the policy as it is now, beside an expert that answers."""
        rules = RulePolicy(self.rules, self.domain, commit=self.commit)
        policy = asking_policy(env, rules, self.make_low(), self.translation)
        return Apprentice(policy, policy.teach, policy.high.scramble, policy.gaps)

    def encode(
        self, scenes: Sequence[Scene], situations: Sequence[Situation], targets: NDArray[np.float32], number: int
    ) -> Samples:
        """Return an episode as samples."""
        return encode_episode(self.encoding, scenes, situations, targets, number)


def dagger_rollouts(
    learner: Learner[Found],
    practice: Practice,
    config: DaggerConfig,
    round_: int,
    workers: int | None = 1,
    begin: int = 0,
) -> Iterator[DaggerEpisode[Found]]:
    """What is learned from each episode of a round, in the order of their numbers, from the given one on."""
    start = partial(_start, learner, practice, config, round_)
    with closing(spread(start, range(begin, config.episodes), workers)) as done:
        yield from in_order(done, begin)


def _start(
    learner: Learner[Found], practice: Practice, config: DaggerConfig, round_: int
) -> Work[tuple[int, DaggerEpisode[Found]]]:
    """Make the environment, once; what comes back runs an episode."""
    env = practice()
    apprentice = learner.begin(env)
    policy = apprentice.policy

    def run(number: int) -> tuple[int, DaggerEpisode[Found]]:
        seed = dagger_seed(learner.seed, round_, number)
        rng = np.random.default_rng([seed, _APART])
        lesson = _Lesson(policy, apprentice.teacher, config)
        apprentice.scramble(int(rng.integers(config.random_actions + 1)) if number % 3 == 2 else 0, rng)
        noise = Perturbation(amplitude=config.noise) if config.noise and number % 3 else None
        perturb = Perturb(noise, env.controls, env.task.switches, seed) if noise else None
        episode = rollout(env, policy, seed, perturb=perturb, callback=lesson, stop=lesson.is_over)
        targets = env.controls.encode(np.array(lesson.controls))
        samples = learner.encode(lesson.scenes, lesson.situations, targets, number)
        return number, DaggerEpisode(samples, apprentice.gaps(episode.scene), episode.success)

    return run


class _Lesson:
    """Notes every step of the learner for which its teacher knows what it would have done there."""

    def __init__(self, policy: Policy, teacher: Teacher, config: DaggerConfig) -> None:
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

"""How a policy is learned."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bilevel.lowlevel.training import TrainingConfig


class DaggerConfig(msgspec.Struct, frozen=True):
    """How often the learner acts and asks the expert, and how much."""

    rounds: int = 0
    episodes: int = 60  # in a round
    epochs: int = 5  # of training after each round
    noise: float = 0.7  # amplitude of the control noise, in two of three episodes
    patience: int = 300  # steps without any change of the symbols before an episode is given up
    longest: int = 3000  # steps after which it is given up in any case


class LearningConfig(msgspec.Struct, frozen=True):
    """Both levels; as it is here, by the paper's settings."""

    hidden: int = 64
    rounds: int = 2  # of messages in the network
    training: TrainingConfig = msgspec.field(default_factory=TrainingConfig)
    dagger: DaggerConfig = msgspec.field(default_factory=DaggerConfig)


PRESETS: Mapping[str, LearningConfig] = {
    "paper": LearningConfig(),
    "best": LearningConfig(training=TrainingConfig(epochs=8), dagger=DaggerConfig(rounds=2)),
}

"""The ways of training that are compared with few demonstrations: each a name and a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.networks import LearningConfig
from bilevel.lowlevel.training import TrainingConfig

# `best` as it was, without DAgger
BEFORE = LearningConfig(recorded_actions=True, training=TrainingConfig(epochs=8, device="cpu"))


def but(config: LearningConfig, **changes: Any) -> LearningConfig:
    """Return a configuration with other settings of training, or of all else."""
    training = {name: value for name, value in changes.items() if name in TrainingConfig.__struct_fields__}
    rest = {name: value for name, value in changes.items() if name not in training}
    return replace(config, training=replace(config.training, **training), **rest)


UPDATES = but(BEFORE, updates=5000)
RELEVANT = but(UPDATES, relevance=True)
CENTRE = but(RELEVANT, symmetries=True, hold_out_from=10)

VARIANTS: Mapping[str, LearningConfig] = {
    "before": BEFORE,
    "paper": LearningConfig(training=TrainingConfig(device="cpu")),
    "updates": UPDATES,
    "relevance": RELEVANT,
    "symmetries": but(UPDATES, symmetries=True),
    "centre": CENTRE,
    "fewer-updates": but(CENTRE, updates=2000),
    "more-updates": but(CENTRE, updates=15000),
    "held-out": but(CENTRE, hold_out_from=2),
    "narrow": but(CENTRE, hidden=32),
    "wide": but(CENTRE, hidden=128),
    "fast": but(CENTRE, learning_rate=3e-3),
    "before-dagger": but(BEFORE, dagger=DaggerConfig(rounds=2)),
    "centre-dagger": but(CENTRE, dagger=DaggerConfig(rounds=2)),
}

"""Training a network by imitation, and further by DAgger: the same for policies of all kinds.

With a folder for checkpoints, everything goes on where an earlier call with the same arguments was stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from bilevel.learning.checkpoint import (
    dagger_fingerprint,
    fingerprint,
    read_episode,
    resume,
    write_checkpoint,
    write_episode,
)
from bilevel.learning.config import DaggerConfig, LearningConfig
from bilevel.learning.dagger import Learner, Practice, dagger_rollouts
from bilevel.lowlevel.network import ImitationNetwork
from bilevel.lowlevel.samples import ImitationSamples
from bilevel.lowlevel.training import Epoch, Trained, Training, TrainingConfig
from bilevel.lowlevel.weights_file import Weights

Found = TypeVar("Found", bound=ImitationSamples)

SAVED_EVERY = 10.0  # seconds, where an epoch takes longer


@dataclass(frozen=True)
class Progress:
    """How far learning is."""

    stage: str
    done: int
    total: int
    epoch: Epoch | None = None  # the one that was just trained


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Curve:
    """The losses over one training: the first on the demonstrations, the others after rounds of DAgger."""

    round: int
    epochs: Sequence[Epoch]


@dataclass(frozen=True)
class TrainedNetwork:
    """A network, and how it came about."""

    trained: Trained
    curves: tuple[Curve, ...]
    samples: int  # that it was last trained on


def train_network(
    samples: Found,
    make_network: Callable[[], ImitationNetwork],
    seed: int,
    config: LearningConfig,
    learner: Callable[[Trained], Learner[Found]],
    practice: Practice | None,
    *,
    workers: int,
    checkpoints: Path | None,
    callback: Callback,
) -> TrainedNetwork:
    """Train a network; where there is `practice`, let it act there as the `learner` that it makes, and train again."""
    trainer = _Trainer(make_network, config.training, checkpoints, callback)
    network = trainer.train("training", samples, seed)
    if practice is None:
        return network
    for round_ in range(1, config.dagger.rounds + 1):
        rollouts = partial(dagger_rollouts, learner(network.trained), practice, config.dagger, round_, workers)
        run = dagger_fingerprint(network.trained, samples, config.dagger, round_)
        samples = samples.followed_by(list(trainer.kept(rollouts, run, samples, config.dagger, round_)))
        further = trainer.further(config.dagger.epochs, round_)
        after = further.train(f"training, round {round_}", samples, seed, network.trained.weights)
        network = replace(after, curves=network.curves + after.curves)
    return network


@dataclass(frozen=True)
class _Trainer:
    """Trains, shows how far it is, and writes checkpoints."""

    make_network: Callable[[], ImitationNetwork]
    config: TrainingConfig
    checkpoints: Path | None
    callback: Callback
    round: int = 0  # of DAgger

    def further(self, epochs: int, round_: int) -> _Trainer:
        return replace(self, config=msgspec.structs.replace(self.config, epochs=epochs), round=round_)

    def train(self, stage: str, samples: ImitationSamples, seed: int, initial: Weights | None = None) -> TrainedNetwork:
        training = Training(samples, self.make_network, seed, self.config, initial)
        run = fingerprint(training, samples)
        path = self.checkpoints / f"{run[:16]}.safetensors" if self.checkpoints else None
        if path:
            resume(path, training, run)
        while not training.done:
            epoch = training.learn(SAVED_EVERY if path else math.inf)
            if path:
                write_checkpoint(path, training, run)
            self.callback(Progress(stage, training.epoch, self.config.epochs, epoch))
        return TrainedNetwork(training.result(), (Curve(self.round, tuple(training.curve)),), len(samples))

    def kept(
        self, rollouts: Callable[[int], Iterator[Found]], run: str, like: Found, config: DaggerConfig, round_: int
    ) -> Iterator[Found]:
        """The episodes of a round: those that were kept, then those from the next one on, kept as well."""
        folder, total = self.checkpoints, config.episodes
        paths = [folder / f"{run[:16]}-{number:03d}.safetensors" for number in range(total)] if folder else []
        done = 0
        for path in paths:
            known = read_episode(path, like, run)
            if known is None:
                break
            yield self._shown(known, done := done + 1, total, round_)
        for episode in rollouts(done):
            if paths:
                write_episode(paths[done], episode, run)
            yield self._shown(episode, done := done + 1, total, round_)

    def _shown(self, episode: Found, done: int, total: int, round_: int) -> Found:
        self.callback(Progress(f"DAgger, round {round_}", done, total))
        return episode

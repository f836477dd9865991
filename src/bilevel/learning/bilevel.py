"""Learning a bilevel policy from demonstrations: the rules of its high level and the network of its low level.

Every demonstration is labelled once, which gives the traces that rules are learned from and the samples that the
network is trained on. With DAgger, the policy then practises, and its network is trained further on what it met.
How a network is trained and practises, `learn_networks`, is the same for policies of other kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from bilevel.demonstrations.dataset import Dataset
from bilevel.demonstrations.traces import abstract
from bilevel.lowlevel.architecture import Architecture, Shape, Weights
from bilevel.lowlevel.checkpoint import (
    fingerprint,
    practice_fingerprint,
    read_episode,
    resume,
    write_checkpoint,
    write_episode,
)
from bilevel.lowlevel.dagger import BilevelLearner, DaggerConfig, Learner, practise
from bilevel.lowlevel.encoding import encoding_of
from bilevel.lowlevel.samples import Experience, Samples, encode_episode, together
from bilevel.lowlevel.training import Epoch, Trained, Training, TrainingConfig
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Abstraction
from bilevel.symbolic.domain import BadInput

Found = TypeVar("Found", bound=Experience)

SAVED_EVERY = 10.0  # seconds, where an epoch takes longer


@dataclass(frozen=True)
class LearningConfig:
    """How a policy is learned; as it is here, by the paper's settings."""

    hidden: int = 64
    rounds: int = 2  # of messages in the network
    training: TrainingConfig = field(default_factory=TrainingConfig)
    dagger: DaggerConfig = field(default_factory=DaggerConfig)


RECIPES: Mapping[str, LearningConfig] = {
    "paper": LearningConfig(),
    "best": LearningConfig(training=TrainingConfig(epochs=8), dagger=DaggerConfig(rounds=2)),
}


@dataclass(frozen=True)
class Progress:
    """How far learning is."""

    stage: str
    done: int
    total: int
    epoch: Epoch | None = None  # the one that was just trained


Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Curve:
    """The losses of one network over one training: the first on the demonstrations, the others after practice."""

    round: int
    epochs: Sequence[Epoch]


@dataclass(frozen=True)
class Learned:
    """A policy, and how it came about."""

    rules: tuple[Rule, ...]
    architecture: Architecture
    network: Trained
    curves: tuple[Curve, ...]
    samples: int  # that the network was last trained on
    traces: int
    exogenous: int  # changes in the demonstrations that no action explains
    ambiguous: int  # changes that several actions explain


@dataclass(frozen=True)
class Study:
    """What the demonstrations show, at both levels."""

    abstractions: tuple[Abstraction, ...]
    samples: Samples


def study(dataset: Dataset, architecture: Architecture, tell: Tell) -> Study:
    """Label every demonstration."""
    labels = dataset.task.labels(dataset.manifest.slots)
    abstractions, parts = [], []
    for number, demonstration in enumerate(dataset):
        found = abstract(demonstration, labels, dataset.task.domain)
        seen = demonstration.observations()[:-1]
        situations = [(labels.state(o), labels.goal(o), a) for o, a in zip(seen, found.actions, strict=True)]
        abstractions.append(found)
        parts.append(
            encode_episode(architecture.encoding, labels.slots, seen, situations, demonstration.controls, number)
        )
        tell(Progress("labelling", number + 1, len(dataset)))
    return Study(tuple(abstractions), together(parts))


def learn_policies(
    dataset: Dataset,
    seeds: Sequence[int],
    config: LearningConfig = RECIPES["best"],
    *,
    workers: int = 1,
    checkpoints: Path | None = None,
    tell: Tell = lambda progress: None,
) -> list[Learned]:
    """Learn a policy for each seed. They share rules, and their networks are first trained together.

    With a folder for checkpoints, go on where an earlier call with the same arguments was stopped.
    """
    architecture = Architecture(encoding_of(dataset.task.domain), config.hidden, config.rounds)
    found = study(dataset, architecture, tell)
    traces = [trace for abstraction in found.abstractions for trace in abstraction.traces]
    rules = learn_rules(traces, dataset.task.domain)
    if not rules:
        raise BadInput(f"{dataset.folder}: the demonstrations show no rule: no goal is achieved by an action in them")
    recipe = dataset.manifest.recipe

    def learner(network: Trained) -> BilevelLearner:
        return BilevelLearner(recipe.task, recipe.arguments, rules, architecture, network.weights, network.seed)

    networks = learn_networks(
        found.samples, architecture, seeds, config, learner, workers=workers, checkpoints=checkpoints, tell=tell
    )
    return [
        Learned(
            rules=rules,
            architecture=architecture,
            network=network.trained,
            curves=network.curves,
            samples=network.samples,
            traces=len(traces),
            exogenous=sum(abstraction.exogenous for abstraction in found.abstractions),
            ambiguous=sum(abstraction.ambiguous for abstraction in found.abstractions),
        )
        for network in networks
    ]


# Networks, of whatever kind


@dataclass(frozen=True)
class LearnedNetwork:
    """A network, and how it came about."""

    trained: Trained
    curves: tuple[Curve, ...]
    samples: int  # that it was last trained on


def learn_networks(
    samples: Found,
    architecture: Shape,
    seeds: Sequence[int],
    config: LearningConfig,
    learner: Callable[[Trained], Learner[Found]],
    *,
    workers: int,
    checkpoints: Path | None,
    tell: Tell,
) -> list[LearnedNetwork]:
    """Train networks together, one for each seed; then each of them practises, as the `learner` that it makes."""
    trainer = _Trainer(architecture, config.training, checkpoints, tell)
    return [
        _with_practice(network, samples, config.dagger, learner, trainer, workers)
        for network in trainer.train("training", samples, seeds)
    ]


def _with_practice(
    network: LearnedNetwork,
    samples: Found,
    config: DaggerConfig,
    learner: Callable[[Trained], Learner[Found]],
    trainer: _Trainer,
    workers: int,
) -> LearnedNetwork:
    """The network after all rounds of DAgger."""
    for round_ in range(1, config.rounds + 1):
        before = network.trained
        run = practice_fingerprint(trainer.architecture, before, samples, config, round_)
        practice = partial(practise, learner(before), config, round_, workers)
        episodes: list[Found] = []
        for episode in trainer.keep(practice, run, samples, config.episodes):
            episodes.append(episode)
            trainer.tell(Progress(f"practising, round {round_}", len(episodes), config.episodes))
        samples = samples.followed_by(episodes)
        further = trainer.further(config.epochs, round_)
        (after,) = further.train(f"training, round {round_}", samples, [before.seed], [before.weights])
        network = replace(after, curves=network.curves + after.curves)
    return network


@dataclass(frozen=True)
class _Trainer:
    """Trains, shows how far it is, and writes checkpoints."""

    architecture: Shape
    config: TrainingConfig
    checkpoints: Path | None
    tell: Tell
    round: int = 0  # of practice

    def further(self, epochs: int, round_: int) -> _Trainer:
        return replace(self, config=replace(self.config, epochs=epochs), round=round_)

    def train(
        self, stage: str, samples: Experience, seeds: Sequence[int], initial: Sequence[Weights] = ()
    ) -> list[LearnedNetwork]:
        training = Training(samples, self.architecture, seeds, self.config, initial)
        run = fingerprint(training, samples)
        path = self.checkpoints / f"{run[:16]}.safetensors" if self.checkpoints else None
        if path:
            resume(path, training, run)
        while not training.done:
            epoch = training.learn(SAVED_EVERY if path else math.inf)
            if path:
                write_checkpoint(path, training, run)
            self.tell(Progress(stage, training.epoch, self.config.epochs, epoch))
        return [
            LearnedNetwork(trained, (self._curve(training.curve, index),), len(samples))
            for index, trained in enumerate(training.result())
        ]

    def keep(self, practice: Callable[[int], Iterator[Found]], run: str, like: Found, total: int) -> Iterator[Found]:
        """So many episodes: those that were kept, then those that practice from the next one on gives, kept as well."""
        if self.checkpoints is None:
            yield from practice(0)
            return
        paths = [self.checkpoints / f"{run[:16]}-{number:03d}.safetensors" for number in range(total)]
        done = 0
        while done < total and (known := read_episode(paths[done], like, run)) is not None:
            yield known
            done += 1
        for path, episode in zip(paths[done:], practice(done), strict=True):
            write_episode(path, episode, run)
            yield episode

    def _curve(self, epochs: Sequence[Epoch], index: int) -> Curve:
        """That of one network."""
        return Curve(self.round, tuple(_of_network(epoch, index) for epoch in epochs))


def _of_network(epoch: Epoch, index: int) -> Epoch:
    return replace(epoch, training_loss=[epoch.training_loss[index]], validation_loss=[epoch.validation_loss[index]])

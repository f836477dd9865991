"""Training a network by imitation, and further by DAgger: the same for policies of all kinds.

With a folder for checkpoints, everything goes on where an earlier call with the same arguments was stopped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from bilevel.files import write_atomically
from bilevel.learning.dagger import DaggerConfig, DaggerEpisode, Learner, Practice, dagger_rollouts
from bilevel.learning.learned_symbols import LearnedSymbols
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.lowlevel.encoding import ImitationSamples
from bilevel.lowlevel.network import ImitationNetwork, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Epoch, Trained, Training, TrainingConfig
from bilevel.policies.policy_folder import LearnedPolicy
from bilevel.rules.learning import SINGLE_GOAL
from bilevel.symbolic.domain import Problem
from bilevel.tasks.task import Task

Found = TypeVar("Found", bound=ImitationSamples)

SUCCESS = "success"  # what the checkpoint of an episode calls that
SAVED_EVERY = 10.0  # seconds, where an epoch takes longer


class LearningConfig(msgspec.Struct, frozen=True):
    """Both levels; as it is here, by the paper's settings."""

    hidden: int = 64  # width of the layers of BISON's network
    end_to_end_hidden: int | None = None  # that of a network that does all; `None` for as many parameters as BISON's
    rounds: int = 2  # of messages in the network
    complete: bool = False  # the rules, for what nobody has shown
    relevance: bool = False  # leave out arguments that play no part in how an action is done
    algorithm: str = SINGLE_GOAL  # that rules are learned by, one of `ALGORITHMS`
    recorded_actions: bool = False  # use them for steps before changes that no action explains, which are else left out
    training: TrainingConfig = msgspec.field(default_factory=TrainingConfig)
    dagger: DaggerConfig = msgspec.field(default_factory=DaggerConfig)


PRESETS: Mapping[str, LearningConfig] = {
    "paper": LearningConfig(),
    "best": LearningConfig(
        complete=True,
        relevance=True,
        recorded_actions=True,
        training=TrainingConfig(epochs=8, updates=5000, symmetries=True, hold_out_from=10),
        dagger=DaggerConfig(rounds=2),
    ),
}


class DaggerRound(msgspec.Struct, frozen=True):
    """How often a policy in the making has succeeded in a round of DAgger, perturbed as it was."""

    round: int
    rollouts: int
    successes: int

    @staticmethod
    def of(round_: int, episodes: Sequence[DaggerEpisode[Any]]) -> DaggerRound:
        """Return how the episodes of a round went."""
        return DaggerRound(round_, len(episodes), sum(episode.success for episode in episodes))


@dataclass(frozen=True)
class Progress:
    """How far learning is."""

    stage: str
    done: int
    total: int
    epoch: Epoch | None = None  # the one that was just trained
    rollouts: DaggerRound | None = None  # those of the round that was just run
    epochs: int = 0  # trained so far, over all rounds


Callback = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """The callback of those who do not want to know how far it is."""


@dataclass(frozen=True)
class LearningOptions:
    """How a policy is learned, whatever its method; see `learn`. A `config` goes before the preset."""

    task: Task | None = None
    preset: str = "best"
    config: LearningConfig | None = None
    seed: int = 0
    workers: int | None = 1  # `None` for as many as there are cores
    checkpoints: Path | None = None
    callback: Callback = silent
    met: Sequence[Problem] = ()  # situations in which a policy was at a loss
    learned: LearnedSymbols | None = None  # where the domain of the demonstrations was learned from them
    network: LearnedPolicy | None = None  # whose network is kept, so that rules alone are learned

    @property
    def settings(self) -> LearningConfig:
        """The configuration that was given, else that of the preset."""
        return self.config or PRESETS[self.preset]


@dataclass(frozen=True)
class TrainedNetwork:
    """A network, and how it came about."""

    trained: Trained
    curve: tuple[tuple[int, Epoch], ...]  # epochs on the demonstrations, round 0, and after rounds of DAgger
    samples: int  # that it was last trained on
    gaps: RuleGaps = field(default_factory=RuleGaps)  # of the rules, found by DAgger
    rounds: tuple[DaggerRound, ...] = ()


def as_it_was_trained(policy: LearnedPolicy) -> TrainedNetwork:
    """Return the network of a policy, and what its folder says of how it came about."""
    card, told = policy.card, policy.card.summary
    trained = Trained(policy.weights, card.seed, told["best_epoch"], told["validation_loss"], told["device"])
    return TrainedNetwork(trained, (), told["samples"])


def train_network(
    samples: Found,
    make_network: Callable[[], ImitationNetwork],
    learner: Callable[[Trained, RuleGaps], Learner[Found]],
    practice: Practice | None,
    options: LearningOptions,
) -> TrainedNetwork:
    """Train a network; where there is `practice`, let it act there as the `learner` that it makes, and train again.

    A learner is made of a network and of the gaps that its rules had so far.
    """
    trainer, dagger = _Trainer(make_network, options), options.settings.dagger
    network = trainer.train(samples)
    if practice is None:
        return network
    for round_ in range(1, dagger.rounds + 1):
        now = learner(network.trained, network.gaps)
        rollouts = partial(dagger_rollouts, now, practice, dagger, round_, options.workers)
        run = dagger_fingerprint(network.trained, samples, dagger, round_, network.gaps.to_json())
        episodes = list(trainer.kept(rollouts, run, samples, round_))
        samples = samples.followed_by([episode.samples for episode in episodes])
        gaps = sum((episode.gaps for episode in episodes), network.gaps)
        found = (DaggerRound.of(round_, episodes),) if episodes else ()
        after = trainer.train(samples, round_, network.trained.weights)
        network = replace(after, curve=network.curve + after.curve, gaps=gaps, rounds=network.rounds + found)
    return network


@dataclass(frozen=True)
class _Trainer:
    """Trains, shows how far it is, and writes checkpoints."""

    make_network: Callable[[], ImitationNetwork]
    options: LearningOptions

    def train(self, samples: ImitationSamples, round_: int = 0, initial: Weights | None = None) -> TrainedNetwork:
        """Train on the demonstrations, or further after a round of DAgger."""
        config, folder = self.options.settings.training, self.options.checkpoints
        if round_:
            epochs = self.options.settings.dagger.epochs
            updates = config.updates * epochs // config.epochs
            config = msgspec.structs.replace(config, epochs=epochs, updates=updates)
        training = Training(samples, self.make_network, self.options.seed, config, initial)
        run = fingerprint(training, samples)
        path = folder / f"{run[:16]}.safetensors" if folder else None
        if path:
            resume(path, training, run)
        while not training.done:
            epoch = training.learn(SAVED_EVERY if path else math.inf)
            if path:
                write_checkpoint(path, training, run)
            stage = f"training, round {round_}" if round_ else "training"
            epochs = self._epochs_before(round_) + training.epoch
            self.options.callback(Progress(stage, training.epoch, config.epochs, epoch, epochs=epochs))
        return TrainedNetwork(training.result(), tuple((round_, epoch) for epoch in training.curve), len(samples))

    def _epochs_before(self, round_: int) -> int:
        """How many epochs are trained before those of a round."""
        settings = self.options.settings
        return settings.training.epochs + (round_ - 1) * settings.dagger.epochs if round_ else 0

    def kept(
        self, rollouts: Callable[[int], Iterator[DaggerEpisode[Found]]], run: str, like: Found, round_: int
    ) -> Iterator[DaggerEpisode[Found]]:
        """The episodes of a round: those that were kept, then those from the next one on, kept as well."""
        folder, total = self.options.checkpoints, self.options.settings.dagger.episodes
        paths = [folder / f"{run[:16]}-{number:03d}.safetensors" for number in range(total)] if folder else []
        known: list[DaggerEpisode[Found]] = []
        for path in paths:
            episode = read_episode(path, like, run)
            if episode is None:
                break
            known.append(episode)
        done: list[DaggerEpisode[Found]] = []
        for episode in chain(known, rollouts(len(known))):
            if paths and len(done) >= len(known):
                write_episode(paths[len(done)], episode, run)
            done.append(episode)
            found = DaggerRound.of(round_, done) if len(done) == total else None
            stage, epochs = f"DAgger, round {round_}", self._epochs_before(round_)
            self.options.callback(Progress(stage, len(done), total, rollouts=found, epochs=epochs))
            yield episode


# Checkpoints: all numbers of a training run in one file, and every DAgger episode in another


def fingerprint(training: Training, samples: ImitationSamples) -> str:
    """All that a run depends on, asked before its first epoch: no other one goes on from its checkpoint."""
    about = (str(training.network), training.seed, training.config, training.device)
    return _fingerprint(about, [*weights_of(training.network).values(), *samples.arrays()])


def dagger_fingerprint(network: Trained, samples: ImitationSamples, *settings: object) -> str:
    """The same for the rollouts of a network that has learned from these samples."""
    weights = [network.weights[name] for name in sorted(network.weights)]
    return _fingerprint((network.seed, *settings), [*weights, *samples.arrays()])


def _fingerprint(about: tuple[object, ...], arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256(repr(about).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_checkpoint(path: Path, training: Training, run: str) -> None:
    """`run` is the fingerprint."""
    _write(path, run, training.state(), msgspec.json.encode(training.curve).decode())


def resume(path: Path, training: Training, run: str) -> bool:
    """Go on from a checkpoint, if there is one that is whole and of this run."""
    found = _read(path, run)
    if found is None:
        return False
    state, curve = found
    training.restore(state, msgspec.json.decode(curve, type=list[Epoch]))
    return True


def write_episode(path: Path, episode: DaggerEpisode[Found], run: str) -> None:
    """Write an episode of DAgger to a file, for a run that is taken up again."""
    arrays = {f"{number:02d}": array for number, array in enumerate(episode.samples.arrays())}
    _write(path, run, {**arrays, SUCCESS: np.array(episode.success)}, episode.gaps.to_json())


def read_episode(path: Path, like: Found, run: str) -> DaggerEpisode[Found] | None:
    """An episode that was kept, if it is whole and of this run; its samples are of the same type as these."""
    found = _read(path, run)
    if found is None:
        return None
    arrays, gaps = found
    success = bool(arrays.pop(SUCCESS, False))
    samples = type(like)(*(array for _, array in sorted(arrays.items())))
    return DaggerEpisode(samples, RuleGaps.from_json(gaps), success)


def _write(path: Path, run: str, state: Mapping[str, NDArray[Any]], text: str) -> None:
    """Write arrays and a text: the curve of a training run, or the gaps of an episode."""
    about = {"run": run, "text": text, "digest": _digest(state, text)}
    contiguous = {name: np.array(array, order="C") for name, array in state.items()}  # keeps the shape, even ()
    write_atomically(path, save(contiguous, about))


def _read(path: Path, run: str) -> tuple[dict[str, NDArray[Any]], str] | None:
    try:
        with safe_open(path, "numpy") as file:
            about = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (OSError, SafetensorError):
        return None
    text = about.get("text", "")
    return (state, text) if about.get("run") == run and about.get("digest") == _digest(state, text) else None


def _digest(state: Mapping[str, NDArray[Any]], curve: str) -> str:
    """Of all that is restored: safetensors itself does not notice numbers that have changed on the disk."""
    digest = hashlib.sha256(curve.encode())
    for name in sorted(state):
        digest.update(f"{name} {state[name].dtype} {state[name].shape}".encode())
        digest.update(state[name].tobytes())
    return digest.hexdigest()

"""Training a network by imitation, and further after each round of DAgger: the same for policies of all kinds.

After each round there is a checkpoint in a file, from which a later call goes on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.files import write_atomically
from bilevel.learning.dagger import DaggerAgent, DaggerConfig, DaggerRollouts, Encode
from bilevel.learning.learned_domain import LearnedSymbols
from bilevel.learning.rules import RuleGaps
from bilevel.lowlevel.encoding import ImitationSamples
from bilevel.lowlevel.network import ImitationNetwork
from bilevel.lowlevel.numpy_network import Weights
from bilevel.lowlevel.training import Epoch, Trained, TrainingConfig, train
from bilevel.metrics import Log
from bilevel.progress import Callback, Progress
from bilevel.rules.learning import SINGLE_GOAL
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task


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


UNTRAINED = Trained({}, 0, 0, math.inf)


@dataclass(frozen=True)
class Round:
    """A round of DAgger, or the training before the first: what was met, and the network trained on that, too."""

    network: Trained
    samples: ImitationSamples | None = None  # of its episodes
    gaps: RuleGaps = field(default_factory=RuleGaps)
    successes: int | None = None  # of its episodes, perturbed as they were


@dataclass(frozen=True)
class TrainedNetwork:
    """A network, and how it came about."""

    rounds: tuple[Round, ...]
    samples: int  # that it was last trained on

    @property
    def network(self) -> Trained:
        """The network after the last round."""
        return self.rounds[-1].network

    @property
    def gaps(self) -> RuleGaps:
        """The gaps of the rules that all rounds have shown."""
        return sum((done.gaps for done in self.rounds), RuleGaps())


@dataclass(frozen=True)
class LearningRun:
    """One run of `learn`: what it learns from and how, and whom it tells; there is a checkpoint for each round."""

    demonstrations: Demonstrations
    task: Task | None
    method: str
    preset: str
    config: LearningConfig
    seed: int
    workers: int | None
    learned: LearnedSymbols | None  # where the domain of the demonstrations was learned from them
    why_no_dagger: str | None  # where it is wanted
    folder: Path  # of checkpoints
    callback: Callback
    note: Log

    @property
    def remarks(self) -> list[str]:
        """What somebody should know who expected DAgger."""
        if self.why_no_dagger:
            return [f"{self.why_no_dagger}: learned without DAgger"]
        asked_as = self.learned.summary["asked_as"] if self.learned and self.config.dagger.rounds else {}
        unknown = ", ".join(name for name, known in asked_as.items() if not known)
        return [f"the expert cannot be asked about {unknown}: it was never seen to do it"] if unknown else []

    def train(
        self,
        samples: ImitationSamples,
        make_network: Callable[[], ImitationNetwork],
        make_agent: Callable[[TrainedNetwork], Callable[[SceneEnv], DaggerAgent]],
        encode: Encode,
    ) -> TrainedNetwork:
        """Train on the demonstrations, then let the policy act in rounds of DAgger and train on what it met, too."""
        dagger, trained = self.config.dagger, TrainedNetwork((), len(samples))
        for number in range(1 if self.why_no_dagger or not dagger.episodes else 1 + dagger.rounds):
            path = self.folder / f"round-{number}.safetensors"
            done = _read_round(path, self.seed, type(samples))
            if done is None:
                met = self._act(number, make_agent(trained), encode) if number else Round(UNTRAINED)
                everything = samples.followed_by([met.samples]) if met.samples else samples
                initial = trained.network.weights if number else None
                done = replace(met, network=self._train_once(everything, make_network, number, initial))
                _write_round(path, done)
            if done.samples:
                samples = samples.followed_by([done.samples])
            trained = TrainedNetwork((*trained.rounds, done), len(samples))
        return trained

    def _act(self, number: int, make_agent: Callable[[SceneEnv], DaggerAgent], encode: Encode) -> Round:
        """Run the episodes of a round of DAgger, before the network is trained on them."""
        assert self.task is not None
        data, dagger, episodes = self.demonstrations, self.config.dagger, []
        env_factory = partial(SceneEnv, self.task, data.objects, **data.env_arguments)
        for episode in DaggerRollouts(env_factory, make_agent, encode, dagger, number, self.seed).run(self.workers):
            episodes.append(episode)
            self.callback(Progress(f"DAgger, round {number}", len(episodes), dagger.episodes))
        successes = sum(episode.success for episode in episodes)
        values = {"DAgger/success rate": successes / dagger.episodes, "DAgger/round": number}
        self.note(values, self._epochs_before(number))
        samples = type(episodes[0].samples).concatenate([episode.samples for episode in episodes])
        return Round(UNTRAINED, samples, sum((episode.gaps for episode in episodes), RuleGaps()), successes)

    def _train_once(
        self,
        samples: ImitationSamples,
        make_network: Callable[[], ImitationNetwork],
        number: int,
        initial: Weights | None,
    ) -> Trained:
        """Train on the demonstrations, or further after a round of DAgger."""
        config, before, began = self.config.training, self._epochs_before(number), time.perf_counter()
        if number:
            epochs = self.config.dagger.epochs
            config = msgspec.structs.replace(config, epochs=epochs, updates=config.updates * epochs // config.epochs)

        def callback(epoch: Epoch) -> None:
            values = {"loss/training": epoch.training_loss, "loss/validation": epoch.validation_loss}
            values |= {"learning rate": epoch.learning_rate, "seconds": time.perf_counter() - began}
            stage = f"training, round {number}" if number else "training"
            self.callback(Progress(stage, epoch.number, config.epochs, values))
            self.note(values, before + epoch.number)

        return train(samples, make_network, self.seed, config, initial, callback)

    def _epochs_before(self, number: int) -> int:
        """Return how many epochs are trained before those of a round."""
        return self.config.training.epochs + (number - 1) * self.config.dagger.epochs if number else 0


# Checkpoints


class SavedRound(msgspec.Struct):
    """What a checkpoint says of a round beside its arrays."""

    best_epoch: int
    validation_loss: float
    device: str
    curve: tuple[Epoch, ...]
    gaps: RuleGaps
    successes: int | None


def _write_round(path: Path, done: Round) -> None:
    network = done.network
    if not math.isfinite(network.validation_loss):
        raise BadInput("training diverged: its loss is not finite; try another --seed or a lower learning rate")
    saved = SavedRound(
        network.best_epoch, network.validation_loss, network.device, tuple(network.curve), done.gaps, done.successes
    )
    arrays = {f"weights {name}": array for name, array in network.weights.items()}
    if done.samples:
        arrays |= {f"samples {part.name}": getattr(done.samples, part.name) for part in fields(done.samples)}
    contiguous = {name: np.array(array, order="C") for name, array in arrays.items()}
    write_atomically(path, save(contiguous, {"round": msgspec.json.encode(saved).decode()}))


def _read_round(path: Path, seed: int, kind: type[ImitationSamples]) -> Round | None:
    """Return a round that was done; `None` where it was not."""
    if not path.exists():
        return None
    with safe_open(path, "numpy") as file:
        saved = msgspec.json.decode(file.metadata()["round"], type=SavedRound)
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    weights = {name.removeprefix("weights "): arrays[name] for name in arrays if name.startswith("weights ")}
    parts = {name.removeprefix("samples "): arrays[name] for name in arrays if name.startswith("samples ")}
    network = Trained(weights, seed, saved.best_epoch, saved.validation_loss, saved.device, saved.curve)
    return Round(network, kind(**parts) if parts else None, saved.gaps, saved.successes)

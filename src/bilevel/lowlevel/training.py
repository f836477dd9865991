"""Behaviour cloning: the whole training loop, whatever the network.

Some episodes are set aside, and the network of the epoch that does best on them is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilevel.lowlevel.augmentation import augmentation
from bilevel.lowlevel.encoding import ImitationSamples
from bilevel.lowlevel.network import ImitationNetwork, Table, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.symbolic.domain import BadInput

Samples = TypeVar("Samples", bound=ImitationSamples)

WARM_UP = 3  # steps on a GPU before one is recorded


AUTO, CPU, CUDA = DEVICES = "auto", "cpu", "cuda"


class TrainingConfig(msgspec.Struct, frozen=True):
    """The paper's settings."""

    epochs: int = 200
    batch: int = 128
    learning_rate: float = 1e-3  # at first; it falls to 0 along a cosine
    set_aside: int = 10  # every tenth episode, for validation
    device: str = AUTO  # what to train on: cpu, cuda, or auto for a GPU where there is one
    updates: int = 0  # over all epochs, each a share of them, however many samples there are; 0 for one pass an epoch
    symmetries: bool = False  # show each sample as one of its images under the spec's symmetries
    hold_out_from: int = 2  # episodes; of fewer, none is set aside, and the loss is that on what is learned from


class Epoch(msgspec.Struct, frozen=True):
    """The losses after an epoch, and the learning rate at its end."""

    number: int
    training_loss: float
    validation_loss: float
    learning_rate: float = 0.0


@dataclass(frozen=True)
class Trained:
    """A network as it was after its best epoch."""

    weights: Weights
    seed: int
    best_epoch: int
    validation_loss: float
    device: str = CPU  # that it was trained on


class Training:
    """A training run: the network, how far it is, and the best so far.

    What comes of it depends on the samples, the network, the seed and the settings alone.
    """

    def __init__(
        self,
        samples: ImitationSamples,
        make_network: Callable[[], ImitationNetwork],
        seed: int,
        config: TrainingConfig,
        initial: Weights | None = None,
        device: torch.device | None = None,
    ) -> None:
        """Begin with a new network, or where `initial` weights are given with those."""
        self.seed, self.config, self.device = seed, config, device or find_device(config.device)
        learned, held_out = split(samples, config.set_aside, config.hold_out_from)
        self.network = _initialised(make_network, seed)
        if initial is None:
            self.network.set_scales(learned)
        else:
            self.network.load_state_dict({name: torch.tensor(array) for name, array in initial.items()})
        self._learned, self._held_out = self._table(learned), self._table(held_out)
        self.network.to(self.device)
        self._samples, self._tests = len(learned), len(held_out)
        self._batch = min(config.batch, self._samples)
        self._per_pass = self._samples // self._batch  # what is left over comes up in another pass
        self._batches = max(1, config.updates // config.epochs) if config.updates else self._per_pass  # of an epoch
        columns = self.network.columns(self._learned) if config.symmetries else None
        self._augmentation = augmentation(columns, self._learned, seed)
        self._rate = torch.tensor(config.learning_rate, device=self.device)
        self._optimiser = _adam(self.network, self._rate)
        self._index = torch.zeros(self._batch, dtype=torch.int64, device=self.device)
        self._loss = torch.zeros((), device=self.device)  # summed over the batches of an epoch
        self._advance = self._recorded_step() if self.device.type == "cuda" else self._step
        self.curve: list[Epoch] = []
        self._number = 0  # of the next batch in its epoch
        self._best = weights_of(self.network)
        self._best_loss, self._best_epoch = math.inf, 0

    @property
    def epoch(self) -> int:
        """How many are done."""
        return len(self.curve)

    @property
    def done(self) -> bool:
        """Whether all epochs are over."""
        return self.epoch >= self.config.epochs

    def learn(self, seconds: float = math.inf) -> Epoch | None:
        """Go on with an epoch until it is over, or until the time is up: then the next call goes on with it.

        An epoch goes over every sample once or, where the number of updates is given, over as many as that makes, in an
        order that depends on the seed and the epoch alone.
        """
        end, batches, order = time.monotonic() + seconds, self._batches, self._order()
        if self._number == 0:
            self._loss.zero_()
        with _one_thread():
            while self._number < batches:
                progress = (self.epoch + self._number / batches) / self.config.epochs
                self._rate.fill_(self.config.learning_rate * (1 + math.cos(math.pi * progress)) / 2)
                self._index.copy_(order[self._number])
                if self._augmentation:
                    self._augmentation(self.epoch, self._number // self._per_pass)
                self._advance()
                self._number += 1
                if time.monotonic() > end and self._number < batches:
                    return None
            validation = self._validate()
        self._number = 0
        self.curve.append(Epoch(self.epoch + 1, float(self._loss / batches), validation, float(self._rate)))
        if validation < self._best_loss:
            self._best, self._best_loss, self._best_epoch = weights_of(self.network), validation, self.epoch
        return self.curve[-1]

    def result(self) -> Trained:
        """Return the weights with the smallest validation loss so far, and where they come from."""
        return Trained(self._best, self.seed, self._best_epoch, self._best_loss, self.device.type)

    def _order(self) -> Tensor:
        """(batches, batch): that of the samples in this epoch."""
        rng, used = np.random.default_rng([self.seed, self.epoch]), self._per_pass * self._batch
        passes = [rng.permutation(self._samples)[:used] for _ in range(math.ceil(self._batches / self._per_pass))]
        order = np.concatenate(passes)[: self._batches * self._batch]
        return torch.from_numpy(order).to(self.device).view(self._batches, self._batch)

    def _step(self) -> None:
        """Learn from the samples at the index."""
        loss = self.network.loss(*self.network.predict(self._learned, self._index))
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._loss += loss.detach()

    @torch.no_grad()
    def _validate(self) -> float:
        """The loss on the episodes that are set aside."""
        total, network = 0.0, self.network
        network.eval()
        for index in torch.split(torch.arange(self._tests, device=self.device), network.rows_at_once):
            total += float(network.loss(*network.predict(self._held_out, index))) * len(index)
        network.train()
        return total / self._tests

    def _table(self, samples: ImitationSamples) -> Table:
        return tuple(part.to(self.device) for part in self.network.table(samples))

    def _recorded_step(self) -> Callable[[], None]:
        """On a GPU, a step is recorded once and then replayed: calling its operations one by one takes far longer."""
        before = {name: tensor.detach().clone() for name, tensor in self._tensors().items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        with torch.no_grad():  # the recording itself does nothing, but the steps before it did
            for name, tensor in self._tensors().items():
                tensor.copy_(before[name])
        return graph.replay

    # Going on from a checkpoint

    def state(self) -> dict[str, NDArray[Any]]:
        """All numbers of this run but its curve, as they are now."""
        counts = {"number": self._number, "best_epoch": self._best_epoch, "best_loss": self._best_loss}
        arrays = {name: np.array(count) for name, count in counts.items()}
        arrays |= {f"best.{name}": array for name, array in self._best.items()}
        return arrays | {name: tensor.detach().to("cpu", copy=True).numpy() for name, tensor in self._tensors().items()}

    def restore(self, state: Mapping[str, NDArray[Any]], curve: Sequence[Epoch]) -> None:
        """Go on from the state of a run that began like this one."""
        self.curve, self._number = list(curve), int(state["number"])
        self._best_loss, self._best_epoch = float(state["best_loss"]), int(state["best_epoch"])
        self._best = {name: np.array(state[f"best.{name}"]) for name in self._best}
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(torch.tensor(state[name]))

    def _tensors(self) -> dict[str, Tensor]:
        """What a step changes."""
        tensors = {"loss": self._loss, **dict(self.network.named_parameters())}
        for name, parameter in self.network.named_parameters():
            tensors |= {f"{name} {part}": moment for part, moment in self._optimiser.state[parameter].items()}
        return tensors


def find_device(name: str = AUTO) -> torch.device:
    """Return the device of this name; `BadInput` where there is none. `auto` is a GPU where there is one."""
    if name not in DEVICES:
        raise BadInput(f"unknown device '{name}'; there are {', '.join(DEVICES)}")
    if name == CUDA and not torch.cuda.is_available():
        raise BadInput("there is no GPU here that torch can use; train on cpu or auto")
    return torch.device(CUDA if name != CPU and torch.cuda.is_available() else CPU)


def _initialised(make_network: Callable[[], ImitationNetwork], seed: int) -> ImitationNetwork:
    """A new network whose weights depend on the seed alone; torch's own random numbers stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)  # it takes no more
        return make_network()


def _adam(network: ImitationNetwork, rate: Tensor) -> torch.optim.Adam:
    """Adam with all it remembers in place, so that it can be saved and restored before the first step.

    Fused, one operation does all of a step, where torch has that: on a CPU it does from version 2.4 on.
    """
    try:
        optimiser = torch.optim.Adam(network.parameters(), lr=rate, fused=True, capturable=rate.is_cuda)
    except RuntimeError:
        optimiser = torch.optim.Adam(network.parameters(), lr=rate, capturable=rate.is_cuda)
    for parameter in network.parameters():
        moments = {"exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
        optimiser.state[parameter] = {"step": torch.zeros((), device=parameter.device), **moments}
    return optimiser


@contextmanager
def _one_thread() -> Iterator[None]:
    """For so small a network several threads are no faster, and sums would depend on how many there are."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def split(samples: Samples, every: int, fewest: int = 2) -> tuple[Samples, Samples]:
    """Whole episodes for training and for validation: every tenth, say, is set aside, or else the last one.

    More episodes than ten leave those that are there already where they are. Of fewer than the `fewest`, none can be
    spared: all are both.
    """
    episodes = np.unique(samples.episodes)
    if not len(episodes):
        raise BadInput("training needs at least one episode with a step that an action explains")
    if len(episodes) < max(2, fewest):
        return samples, samples
    place = np.searchsorted(episodes, samples.episodes)
    held_out = place % every == min(every, len(episodes)) - 1
    return samples.where(~held_out), samples.where(held_out)

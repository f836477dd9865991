"""Behaviour cloning: the whole training loop, whatever the network.

The loss is the mean squared error between the expert's controls and the network's. Some episodes are set aside, and the
network of the epoch that does best on them is kept. Several networks, with a seed each, are trained at the same time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilevel.lowlevel.architecture import Shape, Weights
from bilevel.lowlevel.network import Networks, Table
from bilevel.lowlevel.samples import Experience
from bilevel.symbolic.domain import BadInput

Samples = TypeVar("Samples", bound=Experience)

WARM_UP = 3  # steps on a GPU before one is recorded


@dataclass(frozen=True)
class TrainingConfig:
    """The paper's settings."""

    epochs: int = 200
    batch: int = 128
    learning_rate: float = 1e-3  # at first; it falls to 0 along a cosine
    set_aside: int = 10  # every tenth episode, for validation


@dataclass(frozen=True)
class Epoch:
    """What is told after an epoch, with a loss for each network."""

    number: int
    training_loss: list[float]
    validation_loss: list[float]


@dataclass(frozen=True)
class Trained:
    """One network, as it was after its best epoch."""

    weights: Weights
    seed: int
    best_epoch: int
    validation_loss: float


class Training:
    """A training run: the networks, how far they are, and the best of each so far."""

    def __init__(
        self,
        samples: Experience,
        architecture: Shape,
        seeds: Sequence[int],
        config: TrainingConfig,
        initial: Sequence[Weights] = (),
        device: torch.device | None = None,
    ) -> None:
        """Begin with new networks, one for each seed, or where `initial` ones are given with these."""
        self.architecture, self.seeds, self.config = architecture, tuple(seeds), config
        self.device = device or usual_device()
        self.network = architecture.networks(seeds, initial).to(self.device)
        learned, held_out = split(samples, config.set_aside)
        self._learned, self._held_out = self._table(learned), self._table(held_out)
        self._samples, self._tests = len(learned), len(held_out)
        self._batch = min(config.batch, self._samples)
        self._batches = self._samples // self._batch  # what is left over comes up in another epoch
        self._rate = torch.tensor(config.learning_rate, device=self.device)
        self._optimiser = _adam(self.network, self._rate)
        flat = self.network.flat
        moments = {"exp_avg": torch.zeros_like(flat), "exp_avg_sq": torch.zeros_like(flat)}
        self._optimiser.state[flat] = {"step": torch.zeros((), device=self.device), **moments}
        self._index = torch.zeros((len(self.seeds), self._batch), dtype=torch.int64, device=self.device)
        self._loss = torch.zeros(len(self.seeds), device=self.device)  # summed over the batches of an epoch
        self._advance = self._recorded_step() if self.device.type == "cuda" else self._step
        self.curve: list[Epoch] = []
        self._number = 0  # of the next batch in its epoch
        self._best = self.network.flat.detach().clone()
        self._best_loss = np.full(len(self.seeds), np.inf, np.float32)
        self._best_epoch = np.zeros(len(self.seeds), np.int64)

    @property
    def epoch(self) -> int:
        """How many are done."""
        return len(self.curve)

    @property
    def done(self) -> bool:
        return self.epoch >= self.config.epochs

    def one_epoch(self) -> Epoch:
        """Learn from every sample once, in an order that depends on the seed and the epoch alone."""
        epoch = self.learn()
        assert epoch is not None
        return epoch

    def learn(self, seconds: float = math.inf) -> Epoch | None:
        """Go on with an epoch until it is over, or until the time is up: then the next call goes on with it."""
        end, batches, order = time.monotonic() + seconds, self._batches, self._order()
        if self._number == 0:
            self._loss.zero_()
        with _one_thread():
            while self._number < batches:
                progress = (self.epoch + self._number / batches) / self.config.epochs
                self._rate.fill_(self.config.learning_rate * (1 + math.cos(math.pi * progress)) / 2)
                self._index.copy_(order[:, self._number])
                self._advance()
                self._number += 1
                if time.monotonic() > end and self._number < batches:
                    return None
            validation = self._validate()
        self._number = 0
        self.curve.append(Epoch(self.epoch + 1, (self._loss / batches).tolist(), validation.tolist()))
        self._keep_best(validation)
        return self.curve[-1]

    def _order(self) -> Tensor:
        """(networks, batches, batch): that of the samples in this epoch."""
        orders = [np.random.default_rng([seed, self.epoch]).permutation(self._samples) for seed in self.seeds]
        index = torch.from_numpy(np.stack(orders)[:, : self._batches * self._batch])
        return index.to(self.device).view(-1, self._batches, self._batch)

    def result(self) -> list[Trained]:
        found = zip(self.network.weights(self._best), self.seeds, self._best_epoch, self._best_loss, strict=True)
        return [Trained(weights, seed, int(epoch), float(loss)) for weights, seed, epoch, loss in found]

    def state(self) -> dict[str, NDArray[Any]]:
        """All numbers of this run but its curve, as they are now."""
        arrays = {"best_loss": self._best_loss.copy(), "best_epoch": self._best_epoch.copy()}
        arrays |= {"number": np.array(self._number)}
        tensors = {"best": self._best, **self._tensors()}
        return arrays | {name: tensor.detach().to("cpu", copy=True).numpy() for name, tensor in tensors.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], curve: Sequence[Epoch]) -> None:
        """Go on from the state of a run that began like this one."""
        state = {"number": np.array(0), "loss": np.zeros(len(self.seeds), np.float32), **state}  # not in old files
        self.curve, self._number = list(curve), int(state["number"])
        self._best_loss, self._best_epoch = np.array(state["best_loss"]), np.array(state["best_epoch"])
        self._best = torch.tensor(state["best"], device=self.device)
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(torch.tensor(state[name]))

    def _tensors(self) -> dict[str, Tensor]:
        """What a step changes."""
        return {"flat": self.network.flat, "loss": self._loss, **self._optimiser.state[self.network.flat]}

    def _step(self) -> None:
        """Learn from the samples at the index, (networks, batch)."""
        losses = self._losses(self.network.errors(self._learned, self._index))
        self._optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        self._loss += losses.detach()

    def _losses(self, errors: Tensor) -> Tensor:
        """(networks,): the mean squares of errors, (networks, samples, 4)."""
        return torch.square(errors).mean(dim=(1, 2))

    def _table(self, samples: Experience) -> Table:
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

    @torch.no_grad()
    def _validate(self) -> NDArray[np.float32]:
        index = torch.arange(self._tests, device=self.device).expand(len(self.seeds), -1)
        parts = [self.network.errors(self._held_out, part) for part in torch.split(index, self.network.at_once, dim=1)]
        losses: NDArray[np.float32] = self._losses(torch.cat(parts, dim=1)).cpu().numpy()
        return losses

    def _keep_best(self, losses: NDArray[np.float32]) -> None:
        better = losses < self._best_loss
        self._best_loss[better], self._best_epoch[better] = losses[better], self.epoch
        self._best[torch.from_numpy(better)] = self.network.flat.detach()[torch.from_numpy(better)]


def usual_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _adam(network: Networks, rate: Tensor) -> torch.optim.Adam:
    """One operation for all of a step, where torch has it: on a CPU it does from version 2.4 on."""
    try:
        return torch.optim.Adam(network.parameters(), lr=rate, fused=True, capturable=rate.is_cuda)
    except RuntimeError:
        return torch.optim.Adam(network.parameters(), lr=rate, capturable=rate.is_cuda)


@contextmanager
def _one_thread() -> Iterator[None]:
    """For so small a network several threads are no faster, and sums would depend on how many there are."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


def split(samples: Samples, every: int) -> tuple[Samples, Samples]:
    """Whole episodes for training and for validation: every tenth, say, is set aside, or else the last one.

    More episodes than ten leave those that are there already where they are.
    """
    episodes = np.unique(samples.episodes)
    if len(episodes) < 2:
        raise BadInput("training needs at least two episodes: one to learn from, and one that is set aside")
    place = np.searchsorted(episodes, samples.episodes)
    held_out = place % every == min(every, len(episodes)) - 1
    return samples.where(~held_out), samples.where(held_out)

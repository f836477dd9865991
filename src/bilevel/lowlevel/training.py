"""Behaviour cloning: the whole training loop, whatever the network.

Some episodes are set aside, and the network of the epoch that does best on them is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import CONTROL, COSINE, SCHEMA, ImitationSamples, TableColumn
from bilevel.lowlevel.network import ImitationNetwork, Table, weights_of
from bilevel.lowlevel.numpy_network import Weights
from bilevel.seeds import IMAGES
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Mirror, Symmetry

Samples = TypeVar("Samples", bound=ImitationSamples)

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
    curve: Sequence[Epoch] = ()


def train(
    samples: ImitationSamples,
    make_network: Callable[[], ImitationNetwork],
    seed: int,
    config: TrainingConfig,
    initial: Weights | None = None,
    callback: Callable[[Epoch], None] = lambda epoch: None,
) -> Trained:
    """Train a new network, or where `initial` weights are given from those; `callback` is told of each epoch.

    An epoch goes over every sample once or, where the number of updates is given, over as many as that makes, in an
    order that depends on the seed and the epoch alone. So the result depends on nothing but the arguments.
    """
    device = find_device(config.device)
    learned, held_out = split(samples, config.set_aside, config.hold_out_from)
    with torch.random.fork_rng(devices=[]):  # so that torch's own random numbers stay as they were
        torch.manual_seed(seed % 2**64)  # it takes no more
        network = make_network()
    if initial is None:
        network.set_scales(learned)
    else:
        network.load_state_dict({name: torch.tensor(array) for name, array in initial.items()})
    table, tests = (tuple(part.to(device) for part in network.table(half)) for half in (learned, held_out))
    network.to(device)
    batch = min(config.batch, len(learned))
    per_pass = len(learned) // batch  # what is left over comes up in another pass
    batches = max(1, config.updates // config.epochs) if config.updates else per_pass  # of an epoch
    augmentation = Augmentation(network, table, seed) if config.symmetries and network.symmetries else None
    rate = torch.tensor(config.learning_rate, device=device)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, fused=True)  # one operation does all of a step
    curve: list[Epoch] = []
    best = Trained(weights_of(network), seed, 0, math.inf, device.type)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a network more are no faster, and sums would depend on how many there are
    try:
        for epoch in range(config.epochs):
            rng = np.random.default_rng([seed, epoch])
            passes = [rng.permutation(len(learned))[: per_pass * batch] for _ in range(math.ceil(batches / per_pass))]
            order = torch.from_numpy(np.concatenate(passes)[: batches * batch]).to(device).view(batches, batch)
            total = torch.zeros((), device=device)
            for number in range(batches):
                progress = (epoch + number / batches) / config.epochs
                rate.fill_(config.learning_rate * (1 + math.cos(math.pi * progress)) / 2)
                if augmentation and number % per_pass == 0:
                    augmentation.write(epoch, number // per_pass)
                loss = network.loss(*network.predict(table, order[number]))
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                total += loss.detach()
            validation = _loss(network, tests, len(held_out))
            curve.append(Epoch(epoch + 1, float(total / batches), validation, float(rate)))
            if validation < best.validation_loss:
                best = replace(best, weights=weights_of(network), best_epoch=epoch + 1, validation_loss=validation)
            callback(curve[-1])
    finally:
        torch.set_num_threads(threads)
    return replace(best, curve=tuple(curve))


@torch.no_grad()
def _loss(network: ImitationNetwork, table: Table, samples: int) -> float:
    """Return the mean loss on all samples of a table."""
    total = 0.0
    network.eval()
    for index in torch.split(torch.arange(samples, device=table[0].device), network.rows_at_once):
        total += float(network.loss(*network.predict(table, index))) * len(index)
    network.train()
    return total / samples


def find_device(name: str = AUTO) -> torch.device:
    """Return the device of this name; `BadInput` where there is none. `auto` is a GPU where there is one."""
    if name not in DEVICES:
        raise BadInput(f"unknown device '{name}'; there are {', '.join(DEVICES)}")
    if name == CUDA and not torch.cuda.is_available():
        raise BadInput("there is no GPU here that torch can use; train on cpu or auto")
    return torch.device(CUDA if name != CPU and torch.cuda.is_available() else CPU)


def split(samples: Samples, every: int, fewest: int = 2) -> tuple[Samples, Samples]:
    """Return whole episodes for training and for validation: every tenth, say, is set aside, or else the last one.

    Of fewer than the `fewest`, none can be spared: all are both.
    """
    episodes = np.unique(samples.episodes)
    if not len(episodes):
        raise BadInput("training needs at least one episode with a step that an action explains")
    if len(episodes) < max(2, fewest):
        return samples, samples
    place = np.searchsorted(episodes, samples.episodes)
    held_out = place % every == min(every, len(episodes)) - 1
    return samples.where(~held_out), samples.where(held_out)


# Showing each sample as one of its images under the spec's symmetries

Image = NDArray[np.float32]  # of a row of a table, by which it is multiplied: in each row of it there is one number


def image(symmetry: Symmetry, columns: Sequence[TableColumn | None]) -> Image:
    """Return how a symmetry acts on rows; `BadInput` where a swapped feature has nothing to be swapped with."""
    known = [(index, column) for index, column in enumerate(columns) if column]
    sources = {column[:3]: (index, column.scale) for index, column in known}
    found = np.eye(len(columns), dtype=np.float32)
    for index, (group, name, form, scale) in known:
        named = symmetry.controls if form == CONTROL else symmetry.features
        if name in (named if isinstance(symmetry, Mirror) else symmetry.angles):
            found[index, index] = 1.0 if form == COSINE else -1.0
        elif name in named:
            other = named[1] if name == named[0] else named[0]
            if (group, other, form) not in sources:
                raise BadInput(f"the symmetry swaps '{name}' with '{other}', which is not told in the same way")
            source, other_scale = sources[group, other, form]
            found[index, index], found[index, source] = 0.0, scale / other_scale
    return found


def images(symmetries: Sequence[Symmetry], columns: Sequence[TableColumn | None]) -> list[Image]:
    """Return all images that the symmetries make together, the identity first."""
    generators = [image(symmetry, columns) for symmetry in symmetries]
    found = [np.eye(len(columns), dtype=np.float32)]
    for one in found:  # which grows meanwhile
        for generator in generators:
            more = generator @ one
            if not any(np.array_equal(np.sign(more), np.sign(other)) for other in found):
                found.append(more)
    return found


class Augmentation:
    """Writes a table anew, in place, before each pass over the samples: each as one of its images, by chance."""

    def __init__(self, network: ImitationNetwork, tensors: Table, seed: int) -> None:
        """Samples of an action have no images under the symmetries that do not hold for its schema."""
        columns, symmetries, table = network.columns(tensors), network.symmetries, tensors[0]
        self._table, self._original, self._seed = table, table.clone(), seed
        schemas = {column.name: place for place, column in enumerate(columns) if column and column.form == SCHEMA}
        found = [] if schemas else images(symmetries, columns)
        self._first = np.zeros(len(table), np.int64)  # for each sample, where its images begin among all
        self._count = np.full(len(table), max(1, len(found)))  # and how many it has
        for name, place in schemas.items():
            holding = [symmetry for symmetry in symmetries if name not in symmetry.except_for]
            rows, own = self._original[:, place].cpu().numpy() > 0, images(holding, columns)
            self._first[rows], self._count[rows] = len(found), len(own)
            found += own
        matrices = torch.from_numpy(np.stack(found)).to(table.device)
        self._sources = matrices.abs().argmax(dim=2)
        self._factors = matrices.sum(dim=2)

    def write(self, epoch: int, number: int) -> None:
        """Write the table for a pass of an epoch."""
        random = np.random.default_rng([self._seed, epoch, number, IMAGES]).integers(self._count)
        drawn = torch.from_numpy(self._first + random).to(self._table.device)
        self._table[:] = self._original.gather(1, self._sources[drawn]) * self._factors[drawn]

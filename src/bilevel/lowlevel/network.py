"""Networks in torch, and the one of the low level. Several networks of one shape are one module, trained together.

With so few numbers the time goes into calling operations, not into arithmetic. So all parameters of a network are one
vector, those of all networks one matrix, and a layer is one multiplication for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bilevel.lowlevel.architecture import Architecture, Layers, Weights
from bilevel.lowlevel.samples import Samples

Table = tuple[Tensor, ...]  # all that is known of each sample, so that few look-ups find it


class Networks(nn.Module, ABC):
    """As many networks as there are seeds, side by side; or as many as there are weights to begin with."""

    at_once: int  # samples that they look at together, where that is not laid down; more would take too much memory

    def __init__(self, layers: Layers, seeds: Sequence[int], initial: Sequence[Weights]) -> None:
        super().__init__()
        self._shapes = layers
        flat = [_flat(layers, weights) for weights in initial] or [_initial(layers, seed) for seed in seeds]
        self.flat = nn.Parameter(torch.stack(flat))  # (nets, size)

    @abstractmethod
    def table(self, samples: Any) -> Table:
        """The samples, of the kind that these networks learn from, as they need them."""

    @abstractmethod
    def errors(self, table: Table, index: Tensor) -> Tensor:
        """(nets, batch, 4): controls less those that should be, for the samples with these numbers, (nets, batch)."""

    def layers(self, flat: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        """Views of each layer's weights, (nets, inputs, outputs), and biases, (nets, 1, outputs)."""
        pieces = iter(torch.split(flat, [n for i, o in self._shapes.values() for n in (i * o, o)], dim=1))
        return {
            name: (next(pieces).view(-1, inputs, outputs), next(pieces).unsqueeze(1))
            for name, (inputs, outputs) in self._shapes.items()
        }

    def weights(self, flat: Tensor | None = None) -> list[Weights]:
        """The weights of each network, or of such parameters as it has, for use without torch."""
        flat = (self.flat if flat is None else flat).detach().to("cpu", copy=True)
        layers = {name: (weight.numpy(), bias.numpy()) for name, (weight, bias) in self.layers(flat).items()}
        return [
            {
                f"{name}.{part}": np.ascontiguousarray(array)
                for name, (weight, bias) in layers.items()
                for part, array in (("weight", weight[net]), ("bias", bias[net, 0]))
            }
            for net in range(len(flat))
        ]


class Network(Networks):
    """The network of the low level."""

    at_once = 1_000_000
    _names_objects: Tensor  # (schemas, 1): 0 where actions have no arguments, else 1

    def __init__(self, architecture: Architecture, seeds: Sequence[int], initial: Sequence[Weights] = ()) -> None:
        super().__init__(architecture.layers, seeds, initial)
        self.architecture = architecture
        names_objects = [[float(name not in architecture.encoding.bare)] for name in architecture.encoding.schemas]
        self.register_buffer("_names_objects", torch.tensor(names_objects))

    def table(self, samples: Samples) -> Table:
        """(samples, numbers): side by side, so that one look-up finds all."""
        one_hot = np.eye(len(self.architecture.encoding.schemas), dtype=np.float32)[samples.schemas]
        parts = samples.globals, one_hot, samples.objects.reshape(len(samples), -1), samples.controls
        return (torch.from_numpy(np.concatenate(parts, axis=1)),)

    def errors(self, table: Table, index: Tensor) -> Tensor:
        encoding, rows = self.architecture.encoding, table[0][index]
        sizes = [encoding.global_size, len(encoding.schemas), encoding.arity * encoding.object_size]
        global_, action, objects, controls = torch.split(rows, [*sizes, rows.shape[-1] - sum(sizes)], dim=-1)
        objects = objects.reshape(*rows.shape[:2], encoding.arity, encoding.object_size)
        predicted: Tensor = self(global_, action, objects)
        return predicted - controls

    def forward(self, global_: Tensor, action: Tensor, objects: Tensor) -> Tensor:
        """Controls, (nets, batch, 4), from (nets, batch, size) as encoded; for objects (nets, batch, arity, size)."""
        layers = self.layers(self.flat)
        nets, batch, arity, _ = objects.shape

        def apply(name: str, inputs: Tensor) -> Tensor:
            weight, bias = layers[name]
            return torch.baddbmm(bias, inputs, weight)

        def each(name: str, inputs: Tensor) -> Tensor:
            outputs = apply(name, inputs.reshape(nets, batch * arity, inputs.shape[-1]))
            return outputs.view(nets, batch, arity, outputs.shape[-1])

        def maximum(inputs: Tensor) -> Tensor:
            found = inputs.amax(dim=2)
            return found * (action @ self._names_objects) if self.architecture.encoding.bare else found

        h_global, h_action, h_objects = apply("global.0", global_), apply("action.0", action), each("object.0", objects)
        most = maximum(h_objects)
        for number in range(1, self.architecture.rounds + 1):
            h_global = torch.relu(apply(f"global.{number}", h_global + h_action + most))
            told = h_global + h_action
            h_objects = torch.relu(each(f"object.{number}", h_objects + told.unsqueeze(2)))
            h_action = torch.relu(apply(f"action.{number}", told + most))
            most = maximum(h_objects)
        return apply("readout.1", torch.relu(apply("readout.0", h_global + h_action + most)))


def _initial(layers: Layers, seed: int) -> Tensor:
    """(size,): uniform, within one over the root of the number of inputs, as torch's own layers begin."""
    generator = torch.Generator().manual_seed(seed)
    return torch.cat(
        [
            (2 * torch.rand((inputs + 1) * outputs, generator=generator) - 1) / inputs**0.5
            for inputs, outputs in layers.values()
        ]
    )


def _flat(layers: Layers, weights: Weights) -> Tensor:
    """(size,) of given weights."""
    arrays = [weights[f"{name}.{part}"] for name in layers for part in ("weight", "bias")]
    return torch.cat([torch.tensor(array).flatten() for array in arrays])

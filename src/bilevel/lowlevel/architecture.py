"""The shape of the network: its layers, by name, and how many numbers go into each of them and come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bilevel.lowlevel.encoding import Encoding
from bilevel.tabletop.observation import Array

if TYPE_CHECKING:  # it needs torch, which policies do without
    from bilevel.lowlevel.network import Network, Networks

CONTROL = 4  # numbers: x, y, z, fingers

Weights = Mapping[str, Array]  # for each layer its "weight", (inputs, outputs), and its "bias", (outputs,)

Layers = Mapping[str, tuple[int, int]]  # inputs and outputs of each, by its name


class Shape(Protocol):
    """Of any network that is trained by imitation."""

    @property
    def hidden(self) -> int: ...

    @property
    def rounds(self) -> int: ...

    @property
    def layers(self) -> Layers:
        """In the order of their use."""

    @property
    def size(self) -> int:
        """How many parameters there are."""

    def networks(self, seeds: Sequence[int], initial: Sequence[Weights] = ()) -> Networks:
        """One for each seed, to be trained together; or, where there are some to begin with, for each of these."""


def size_of(layers: Layers) -> int:
    """How many parameters they have."""
    return sum((inputs + 1) * outputs for inputs, outputs in layers.values())


@dataclass(frozen=True)
class Architecture:
    """A global node, an action node and a node for each argument exchange messages for some rounds."""

    encoding: Encoding
    hidden: int = 64
    rounds: int = 2

    @property
    def layers(self) -> Layers:
        encoding, hidden = self.encoding, self.hidden
        inputs = {"global": encoding.global_size, "action": len(encoding.schemas), "object": encoding.object_size}
        embed = {f"{node}.0": (size, hidden) for node, size in inputs.items()}
        rounds = {f"{node}.{number}": (hidden, hidden) for number in range(1, self.rounds + 1) for node in inputs}
        return {**embed, **rounds, "readout.0": (hidden, hidden), "readout.1": (hidden, CONTROL)}

    @property
    def size(self) -> int:
        return size_of(self.layers)

    def networks(self, seeds: Sequence[int], initial: Sequence[Weights] = ()) -> Network:
        from bilevel.lowlevel.network import Network

        return Network(self, seeds, initial)

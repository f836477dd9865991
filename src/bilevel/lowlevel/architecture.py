"""The shape of the network: its layers, by name, and how many numbers go into each of them and come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bilevel.environments.observation import Array
from bilevel.lowlevel.encoding import Encoding

CONTROL = 4  # numbers: x, y, z, fingers

Weights = Mapping[str, Array]  # for each layer its "weight", (inputs, outputs), and its "bias", (outputs,)


@dataclass(frozen=True)
class Architecture:
    """A global node, an action node and a node for each argument exchange messages for some rounds."""

    encoding: Encoding
    hidden: int = 64
    rounds: int = 2

    @property
    def layers(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of each layer, in the order of their use."""
        encoding, hidden = self.encoding, self.hidden
        inputs = {"global": encoding.global_size, "action": len(encoding.schemas), "object": encoding.object_size}
        embed = {f"{node}.0": (size, hidden) for node, size in inputs.items()}
        rounds = {f"{node}.{number}": (hidden, hidden) for number in range(1, self.rounds + 1) for node in inputs}
        return {**embed, **rounds, "readout.0": (hidden, hidden), "readout.1": (hidden, CONTROL)}

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.layers.values())

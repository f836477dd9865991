"""Any network at work, by torch: for networks that have no twin in NumPy."""

from __future__ import annotations

import torch

from bilevel.lowlevel.network import LowLevelNetwork
from bilevel.lowlevel.samples import encode_episode
from bilevel.lowlevel.weights_file import Weights
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene


class TorchNetwork:
    """A low-level policy."""

    def __init__(self, network: LowLevelNetwork, weights: Weights) -> None:
        try:
            network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        except RuntimeError as error:
            raise BadInput(f"the weights are not those of this network: {' '.join(str(error).split())}") from None
        self._network = network.eval()

    @torch.no_grad()
    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        network = self._network
        nothing = torch.zeros((1, network.controls.size)).numpy()
        sample = encode_episode(network.encoding, [scene], [(state, goal, action)], nothing, 0)
        outputs, _ = network.predict(network.table(sample), torch.zeros(1, dtype=torch.int64))
        return network.controls.decode(outputs[0].numpy())

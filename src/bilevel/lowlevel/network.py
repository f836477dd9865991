"""The network of the low level, whole: a global node, an action node, and a node for each of the action's arguments.

    policy = learn(demonstrations, output, network=partial(GraphNetwork, hidden=128))

Another network can be handed to `learn`: any `LowLevelNetwork`. The NumPy twin of the one below is in
`numpy_network.py`; policies run on that, without torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from torch import Tensor, nn
from torch.nn import functional

from bilevel.lowlevel.encoding import CONTROL, SCHEMA, Encoding, Samples, TableColumn, columns_of, encode_episode, turns
from bilevel.lowlevel.numpy_network import NODES, Weights
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control, Controls, DiscreteControls
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Symmetry

Table = tuple[Tensor, ...]  # all that is known of each sample, so that few look-ups find it

LEAST_SPREAD = 1e-3  # of a number in the samples; one that hardly changes is not blown up
LEAST_TURN = 0.1  # the same of a sine or cosine: where all face one way in the samples, there is only rounding


class ImitationNetwork(nn.Module, ABC):
    """Any network that is trained by imitation, with features of the agent and of objects among what it is told.

    Samples have `globals`, (samples, global size), and `objects`, (samples, rows, object size), which begin with
    features. These are scaled by their standard deviations in the samples; the scales are kept with the weights.
    """

    rows_at_once = 1_000_000  # samples that it looks at together outside of training; more would take too much memory
    scales = ("global_scale", "object_scale")  # the names of the two; numbers after these are not scaled
    symmetries: Sequence[Symmetry] = ()  # under which its table can be shown in other forms

    def __init__(self, encoding: Any, controls: Controls) -> None:
        super().__init__()
        self.encoding, self.controls = encoding, controls
        self.is_choice = isinstance(controls, DiscreteControls)  # whether it scores controls; else it puts out numbers

    @abstractmethod
    def table(self, samples: Any) -> Table:
        """The samples, of the kind that this network learns from, as it needs them."""

    @abstractmethod
    def predict(self, table: Table, index: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs and the targets, (batch, outputs) each, of the samples with these numbers, (batch,)."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean squared error, or, where a control is a choice, the cross-entropy."""
        if self.is_choice:
            return functional.cross_entropy(outputs, targets)
        return functional.mse_loss(outputs, targets)

    def set_scales(self, samples: Any) -> None:
        """Take the scale of each number from the samples."""
        encoder, (agent, thing) = self.encoding.features, map(self.get_buffer, self.scales)
        numbers = samples.objects[..., : encoder.object_size].reshape(-1, encoder.object_size)
        with torch.no_grad():
            seen = samples.globals[:, : encoder.agent_size]
            agent[: encoder.agent_size] = scales_of(seen, turns(encoder.agent_numbers))
            thing[: encoder.object_size] = scales_of(numbers, turns(encoder.object_numbers), without_zeros=True)

    def scaled(self, samples: Any, *action: Array) -> Tensor:
        """(samples, numbers): side by side global numbers, a one-hot action, numbers of objects, and targets."""
        parts = samples.globals.copy(), samples.objects.copy()
        for part, name in zip(parts, self.scales, strict=True):
            part[..., : len(self.get_buffer(name))] *= self.get_buffer(name).cpu().numpy()
        side_by_side = [part.reshape(len(samples), -1) for part in (parts[0], *action, parts[1], samples.targets)]
        return torch.from_numpy(np.concatenate(side_by_side, axis=1, dtype=np.float32))

    def parts(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What `scaled` put side by side, objects as (samples, rows, object size)."""
        first, end = self.encoding.global_size, numbers.shape[1] - self.controls.size
        start = first + len(self.encoding.schemas)
        objects = numbers[:, start:end].reshape(len(numbers), -1, self.encoding.object_size)
        return numbers[:, :first], numbers[:, first:start], objects, numbers[:, end:]

    def columns(self, table: Table) -> list[TableColumn | None]:
        """What the columns of a table are, for training that shows samples in other forms; `None` for facts."""
        encoding, (agent, thing) = self.encoding, (self.get_buffer(name).tolist() for name in self.scales)
        encoder, rows = encoding.features, self.parts(table[0][:1])[2].shape[1]
        found: list[TableColumn | None] = [*columns_of(encoder.agent_numbers, 0, agent)]
        found += [None] * (encoding.global_size - encoder.agent_size)
        found += [TableColumn(0, name, SCHEMA) for name in encoding.schemas]
        for row in range(rows):
            found += columns_of(encoder.object_numbers, row + 1, thing)
            found += [None] * (encoding.object_size - encoder.object_size)
        return found + [TableColumn(0, number, CONTROL) for number in range(self.controls.size)]


class LowLevelNetwork(ImitationNetwork):
    """From the encoded agent, action and arguments to a control. A subclass has a `forward`."""

    def __init__(self, encoding: Encoding, controls: Controls) -> None:
        linked = {link.action for link in encoding.links if link.sharing}  # what is there need not share symmetries
        found = [replace(each, except_for=(*each.except_for, *sorted(linked))) for each in encoding.spec.symmetries]
        super().__init__(encoding, controls)
        self.register_buffer("global_scale", torch.ones(encoding.global_size))
        self.register_buffer("object_scale", torch.ones(encoding.object_size))
        self.symmetries = () if self.is_choice else found

    @abstractmethod
    def forward(self, global_: Tensor, action: Tensor, objects: Tensor) -> Tensor:
        """(batch, outputs) from (batch, global size), (batch, schemas) one-hot, and (batch, nodes, object size).

        All are scaled already. Where an action has fewer arguments than others, its last one stands there again.
        """

    def table(self, samples: Samples) -> Table:
        """(samples, numbers): side by side, so that one look-up finds all."""
        return (self.scaled(samples, np.eye(len(self.encoding.schemas), dtype=np.float32)[samples.schemas]),)

    def predict(self, table: Table, index: Tensor) -> tuple[Tensor, Tensor]:
        global_, action, objects, targets = self.parts(table[0][index])
        return self(global_, action, objects), targets


MakeNetwork = Callable[[Encoding, Controls], LowLevelNetwork]


class GraphNetwork(LowLevelNetwork):
    """The paper's network. In each round, every node hears the others: arguments through their maximum.

    It has about 30,000 parameters with 64 hidden numbers and 2 rounds.
    """

    def __init__(self, encoding: Encoding, controls: Controls, hidden: int = 64, rounds: int = 2) -> None:
        super().__init__(encoding, controls)
        sizes = dict(zip(NODES, (encoding.global_size, len(encoding.schemas), encoding.object_size), strict=True))
        self.embed = nn.ModuleDict({node: nn.Linear(size, hidden) for node, size in sizes.items()})
        self.rounds = nn.ModuleList(
            nn.ModuleDict({node: nn.Linear(hidden, hidden) for node in sizes}) for _ in range(rounds)
        )
        self.readout = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, controls.size))

    def forward(self, global_: Tensor, action: Tensor, objects: Tensor) -> Tensor:
        h_global, h_action = self.embed["global"](global_), self.embed["action"](action)  # (batch, hidden)
        h_objects = self.embed["object"](objects)  # (batch, nodes, hidden)
        has_arguments = objects.any(dim=2).any(dim=1, keepdim=True)  # (batch, 1)
        most = h_objects.amax(dim=1) * has_arguments  # (batch, hidden): over the arguments, zero where there are none
        for layers in self.rounds:
            assert isinstance(layers, nn.ModuleDict)
            h_global = torch.relu(layers["global"](h_global + h_action + most))
            heard = h_global + h_action
            h_objects = torch.relu(layers["object"](h_objects + heard.unsqueeze(1)))
            h_action = torch.relu(layers["action"](heard + most))
            most = h_objects.amax(dim=1) * has_arguments
        outputs: Tensor = self.readout(h_global + h_action + most)
        return outputs


def weights_of(network: nn.Module) -> dict[str, Array]:
    """All numbers of a network by their names, for use without torch."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def scales_of(numbers: Array, turns: Sequence[int] = (), without_zeros: bool = False) -> Tensor:
    """(columns,): one over the standard deviation of each column; of objects, where they have the number at all.

    Those that hardly change stay as they are. `turns` are the columns of sines and cosines.
    """
    spread = []
    for column in numbers.T:
        found = column[column != 0] if without_zeros else column
        spread.append(float(found.std()) if len(found) > 1 else 1.0)
    least = LEAST_SPREAD * np.abs(numbers).max(axis=0, initial=0.0)
    least[list(turns)] = LEAST_TURN
    return torch.tensor([1 / wide if wide > at_least else 1.0 for wide, at_least in zip(spread, least, strict=True)])


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
        """Return how to do an action in this scene."""
        network = self._network
        nothing = np.zeros((1, network.controls.size), np.float32)
        sample = encode_episode(network.encoding, [scene], [(state, goal, action)], nothing, 0)
        outputs, _ = network.predict(network.table(sample), torch.zeros(1, dtype=torch.int64))
        return network.controls.decode(outputs[0].numpy())

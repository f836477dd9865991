"""The end-to-end network in torch, on graphs that all have room for the same number of objects and facts.

What is not there is masked: its node stays zero, and no maximum sees it. Before the first object there is one more row
that nothing is ever seen in: it stands for arguments that there are not. Policies run on the network's twin in NumPy,
`end_to_end.py`, without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bilevel.baselines.graph_encoding import GraphEncoding, GraphSamples
from bilevel.lowlevel.network import ImitationNetwork, Table, scales_of
from bilevel.lowlevel.table_columns import CONTROL, TableColumn, TableColumns
from bilevel.tasks.controls import Controls, DiscreteControls

FAR_BELOW = 1e9  # what is masked comes so far below all that is not


class Graphs(NamedTuple):
    """A batch of graphs. All numbers are scaled already."""

    globals: Tensor  # (batch, global size)
    objects: Tensor  # (batch, rows, object size)
    visible: Tensor  # (batch, rows, 1): 1 or 0
    facts: Tensor  # (batch, facts, fact size)
    known: Tensor  # (batch, facts, 1): 1, or 0 where there is none
    arguments: Tensor  # (batch, facts, arity): rows


class EndToEndNetwork(ImitationNetwork):
    """A global node, objects and facts exchange messages for some rounds.

    In each round, an object takes for each position j the maximum over what the facts with it as argument j tell it; a
    fact takes what each of its arguments tells it; both add what they were, what the global node tells them, and a
    bias. Then the global node adds the maximum over what objects tell it, that over facts, and its own. A maximum over
    nothing is zero. Controls are read from the sum of the global node and the maxima over objects and over facts, as
    BISON's are: the paper says of all nodes, but a network that has only ever seen graphs of one size is lost in others
    if each node adds to the sum.
    """

    rows_at_once = 2048
    agent_scale: Tensor  # (agent size,): one over the standard deviations in the samples; kept with the weights
    object_scale: Tensor  # (feature size,)

    def __init__(self, encoding: GraphEncoding, controls: Controls, hidden: int = 64, rounds: int = 2) -> None:
        super().__init__()
        self.encoding, self.controls = encoding, controls
        self.is_choice = isinstance(controls, DiscreteControls)
        self.register_buffer("agent_scale", torch.ones(encoding.features.agent_size))
        self.register_buffer("object_scale", torch.ones(encoding.features.object_size))
        embed = {"global": encoding.global_size, "object": encoding.object_size}
        layers = dict.fromkeys(("global", "object", "global_to_object", "object_to_global"), (hidden, hidden))
        if encoding.relations:  # what goes to each argument, or comes from each, is side by side
            embed["fact"] = encoding.fact_size
            layers["fact"] = (1 + encoding.arity) * hidden, hidden  # from itself and from each argument
            layers["fact_to_object"] = hidden, encoding.arity * hidden
            layers |= dict.fromkeys(("global_to_fact", "fact_to_global"), (hidden, hidden))
        self.embed = nn.ModuleDict({node: nn.Linear(size, hidden) for node, size in embed.items()})
        self.rounds = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(*sizes) for name, sizes in layers.items()}) for _ in range(rounds)
        )
        self.readout = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, controls.size))

    # From samples to graphs

    def set_scales(self, samples: object) -> None:
        assert isinstance(samples, GraphSamples)
        with torch.no_grad():
            told = self.encoding.features
            self.agent_scale.copy_(scales_of(samples.agents, told.agent_turns))
            features = samples.features.reshape(-1, told.object_size)
            self.object_scale.copy_(scales_of(features, told.object_turns, without_zeros=True))

    def table(self, samples: object) -> Table:
        """Numbers of steps; the structure of each; numbers of structures; the rows of arguments in each structure."""
        assert isinstance(samples, GraphSamples)
        agents = samples.agents * self.agent_scale.cpu().numpy()
        features = _with_first_row(samples.features * self.object_scale.cpu().numpy())
        objects, facts = samples.counts[:, :1], samples.counts[:, 1:]
        row = np.arange(samples.objects.shape[1] + 1)
        visible = (row > 0) & (row <= objects)
        known = np.arange(samples.facts.shape[1]) < facts
        return (
            _side_by_side([agents, features, samples.targets]),
            torch.from_numpy(samples.structure),
            _side_by_side([samples.globals, _with_first_row(samples.objects), visible, samples.facts, known]),
            torch.from_numpy(samples.arguments),
        )

    def columns(self, table: Table) -> TableColumns | None:
        encoding, told = self.encoding, self.encoding.features
        _, _, structures, arguments = table
        found: list[TableColumn | None] = [*told.agent_columns(self.agent_scale.tolist())]
        for row in range(self._rows(structures, arguments.shape[1])):
            found += told.object_columns(row + 1, self.object_scale.tolist())
        found += [TableColumn(0, number, CONTROL) for number in range(self.controls.size)]
        return TableColumns(found, {}, () if self.is_choice else encoding.symmetries)

    def predict(self, table: Table, index: Tensor) -> tuple[Tensor, Tensor]:
        steps, structure_of, structures, arguments = table
        encoding, told, structure = self.encoding, self.encoding.features, structure_of[index]
        batch, facts, outputs = len(index), arguments.shape[1], self.controls.size
        rows = self._rows(structures, facts)
        sizes = [told.agent_size, rows * told.object_size, outputs]
        agents, features, targets = torch.split(steps[index], sizes, dim=-1)
        sizes = [2 * len(encoding.nullary), rows * encoding.about_size, rows, facts * encoding.fact_size, facts]
        globals_, about, visible, content, known = torch.split(structures[structure], sizes, dim=-1)
        objects = [features.view(batch, rows, told.object_size), about.view(batch, rows, encoding.about_size)]
        graphs = Graphs(
            globals=torch.cat([agents, globals_], dim=-1),
            objects=torch.cat(objects, dim=-1),
            visible=visible.unsqueeze(-1),
            facts=content.view(batch, facts, encoding.fact_size),
            known=known.unsqueeze(-1),
            arguments=arguments[structure],
        )
        return self(graphs), targets

    def _rows(self, structures: Tensor, facts: int) -> int:
        """How many rows for objects there are in a table."""
        encoding = self.encoding
        others = 2 * len(encoding.nullary) + facts * (encoding.fact_size + 1)
        return (structures.shape[1] - others) // (encoding.about_size + 1)

    # From graphs to controls

    def forward(self, graphs: Graphs) -> Tensor:
        """(batch, outputs)"""
        visible, known = graphs.visible, graphs.known
        edges = _Edges(graphs) if graphs.facts.shape[1] and self.encoding.relations else None
        h_global = self.embed["global"](graphs.globals)  # (batch, hidden)
        h_objects = self.embed["object"](graphs.objects) * visible  # (batch, rows, hidden)
        h_facts = self.embed["fact"](graphs.facts) * known if edges else None  # (batch, facts, hidden)
        for layers in self.rounds:
            assert isinstance(layers, nn.ModuleDict)
            objects = layers["object"](h_objects) + layers["global_to_object"](h_global).unsqueeze(1)
            heard = layers["global"](h_global)
            if edges and h_facts is not None:
                objects = objects + edges.to_objects(layers["fact_to_object"](h_facts))
                facts = layers["fact"](torch.cat([h_facts, edges.from_objects(h_objects)], dim=-1))
                h_facts = torch.relu(facts + layers["global_to_fact"](h_global).unsqueeze(1)) * known
                heard = heard + _maximum(layers["fact_to_global"](h_facts), known)
            h_objects = torch.relu(objects) * visible
            h_global = torch.relu(heard + _maximum(layers["object_to_global"](h_objects), visible))
        total = h_global + _maximum(h_objects, visible)
        if h_facts is not None:
            total = total + _maximum(h_facts, known)
        outputs: Tensor = self.readout(total)
        return outputs


class _Edges:
    """Between facts and their arguments, one kind for each position."""

    def __init__(self, graphs: Graphs) -> None:
        self._shape = batch, _, arity = graphs.arguments.shape
        self._rows = graphs.objects.shape[1]
        device = graphs.arguments.device
        first = torch.arange(batch, device=device).view(batch, 1, 1) * self._rows
        ends = graphs.arguments + first  # (batch, facts, arity): among the rows of all graphs
        self._sources = ends.flatten()
        self._targets = (ends * arity + torch.arange(arity, device=device)).flatten()

    def from_objects(self, objects: Tensor) -> Tensor:
        """(batch, facts, arity * size): what the arguments of each fact are, side by side."""
        batch, facts, arity = self._shape
        found = objects.reshape(-1, objects.shape[-1]).index_select(0, self._sources)
        return found.view(batch, facts, arity * objects.shape[-1])

    def to_objects(self, messages: Tensor) -> Tensor:
        """(batch, rows, size): for each object the sum, over positions, of the greatest message from a fact.

        Messages are (batch, facts, arity * size).
        """
        batch, _, arity = self._shape
        size = messages.shape[-1] // arity
        nothing = messages.new_zeros(batch * self._rows * arity, size)
        targets = self._targets.unsqueeze(1).expand(-1, size)
        greatest = nothing.scatter_reduce(0, targets, messages.reshape(-1, size), "amax", include_self=False)
        return greatest.view(batch, self._rows, arity, size).sum(dim=2)


def _maximum(nodes: Tensor, there: Tensor) -> Tensor:
    """(batch, size): the maximum over (batch, nodes, size) that are there; zero over none."""
    return (nodes + (there - 1) * FAR_BELOW).amax(dim=1) * there.amax(dim=1)


def _with_first_row(rows: NDArray[Any]) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (1, 0), (0, 0)))


def _side_by_side(parts: Sequence[NDArray[Any]]) -> Tensor:
    """(rows, numbers): all numbers of each row, so that one look-up finds them."""
    flat = [part.reshape(len(part), -1).astype(np.float32) for part in parts]
    return torch.from_numpy(np.concatenate(flat, axis=1))

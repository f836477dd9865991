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
    """A batch of graphs. All numbers are scaled already.

    The nodes of all graphs that stand in one row are side by side: that makes maxima over the nodes of a graph fast.
    """

    globals: Tensor  # (batch, global size)
    objects: Tensor  # (rows, batch, object size)
    visible: Tensor  # (rows, batch, 1): 1 or 0
    facts: Tensor  # (facts, batch, fact size)
    known: Tensor  # (facts, batch, 1): 1, or 0 where there is none
    arguments: Tensor  # (facts, batch, arity): rows


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
            objects=_by_row(torch.cat(objects, dim=-1)),
            visible=_by_row(visible.unsqueeze(-1)),
            facts=_by_row(content.view(batch, facts, encoding.fact_size)),
            known=_by_row(known.unsqueeze(-1)),
            arguments=_by_row(arguments[structure]),
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
        visible = graphs.visible
        edges = _Edges(graphs) if graphs.facts.shape[0] and self.encoding.relations else None
        among_objects, among_facts = _Among(visible), _Among(graphs.known) if edges else None
        h_global = self.embed["global"](graphs.globals)  # (batch, hidden)
        h_objects = self.embed["object"](graphs.objects) * visible  # (rows, batch, hidden)
        h_facts = self.embed["fact"](graphs.facts) if edges else None  # (facts, batch, hidden)
        for layers in self.rounds:
            assert isinstance(layers, nn.ModuleDict)
            objects = layers["object"](h_objects) + layers["global_to_object"](h_global)
            heard = layers["global"](h_global)
            if edges and among_facts and h_facts is not None:
                objects = objects + edges.to_objects(layers["fact_to_object"](h_facts))
                facts = layers["fact"](torch.cat([h_facts, edges.from_objects(h_objects)], dim=-1))
                h_facts = torch.relu(facts + layers["global_to_fact"](h_global))
                heard = heard + among_facts.maximum(layers["fact_to_global"](h_facts))
            h_objects = torch.relu(objects) * visible
            h_global = torch.relu(heard + among_objects.maximum(layers["object_to_global"](h_objects)))
        total = h_global + among_objects.maximum(h_objects)
        if among_facts and h_facts is not None:
            total = total + among_facts.maximum(h_facts)
        outputs: Tensor = self.readout(total)
        return outputs


class _Among:
    """Nodes, of which some are there: (rows, batch, 1)."""

    def __init__(self, there: Tensor) -> None:
        self._absent, self._any = (there - 1) * FAR_BELOW, there.amax(dim=0)

    def maximum(self, nodes: Tensor) -> Tensor:
        """(batch, size): the maximum over (rows, batch, size) that are there; zero over none."""
        most: Tensor = Maximum.apply(nodes + self._absent)  # type: ignore[no-untyped-call]
        return most * self._any


class Maximum(torch.autograd.Function):
    """The maximum over the first axis: `amax`, whose own gradient takes twice as long."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor) -> Tensor:
        """Return the maximum, and keep where it is."""
        most = nodes.amax(dim=0)
        ctx.save_for_backward(nodes == most)
        return most

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Equal ones share the gradient."""
        (greatest,) = ctx.saved_tensors
        shared: Tensor = greatest * (gradient / greatest.sum(dim=0))
        return shared


class _Edges:
    """Between facts and their arguments, one kind for each position."""

    def __init__(self, graphs: Graphs) -> None:
        self._shape = _, batch, arity = graphs.arguments.shape
        self._rows = graphs.objects.shape[0]
        device = graphs.arguments.device
        ends = graphs.arguments * batch + torch.arange(batch, device=device).unsqueeze(1)  # among those of all graphs
        self._sources = ends.flatten()  # (facts * batch * arity,)
        self._targets = (ends + torch.arange(arity, device=device) * (self._rows * batch)).flatten()

    def from_objects(self, objects: Tensor) -> Tensor:
        """(facts, batch, arity * size): what the arguments of each fact are, side by side."""
        facts, batch, arity = self._shape
        found = objects.reshape(-1, objects.shape[-1]).index_select(0, self._sources)
        return found.view(facts, batch, arity * objects.shape[-1])

    def to_objects(self, messages: Tensor) -> Tensor:
        """(rows, batch, size): for each object the sum, over positions, of the greatest message from a fact.

        Messages are (facts, batch, arity * size).
        """
        _, batch, arity = self._shape
        size = messages.shape[-1] // arity
        heard: Tensor = MaximumAtTargets.apply(  # type: ignore[no-untyped-call]
            messages.reshape(-1, size), self._targets, arity * self._rows * batch
        )
        return heard.view(arity, self._rows, batch, size).sum(dim=0)


class MaximumAtTargets(torch.autograd.Function):
    """(targets, size): the maximum over the messages, (messages, size), to each target; zero where there is none.

    It is `scatter_reduce`, whose own gradient takes several times as long.
    """

    @staticmethod
    def forward(ctx: Any, messages: Tensor, targets: Tensor, count: int) -> Tensor:
        """Return the maxima, and keep where they are."""
        index = targets.unsqueeze(1).expand_as(messages)
        heard = messages.new_zeros(count, messages.shape[1])
        heard.scatter_reduce_(0, index, messages, "amax", include_self=False)
        ctx.save_for_backward(messages == heard.index_select(0, targets), targets)
        return heard

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Equal ones share the gradient."""
        greatest, targets = ctx.saved_tensors
        share = torch.zeros_like(gradient).index_add_(0, targets, greatest.to(gradient.dtype)).clamp_(min=1)
        return greatest * (gradient / share).index_select(0, targets), None, None


def _by_row(nodes: Tensor) -> Tensor:
    """(rows, batch, numbers) of (batch, rows, numbers)."""
    return nodes.transpose(0, 1).contiguous()


def _with_first_row(rows: NDArray[Any]) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (1, 0), (0, 0)))


def _side_by_side(parts: Sequence[NDArray[Any]]) -> Tensor:
    """(rows, numbers): all numbers of each row, so that one look-up finds them."""
    flat = [part.reshape(len(part), -1).astype(np.float32) for part in parts]
    return torch.from_numpy(np.concatenate(flat, axis=1))

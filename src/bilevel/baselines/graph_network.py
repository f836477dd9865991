"""The end-to-end networks in torch, on graphs that all have room for the same number of objects and facts.

What is not there is masked: its node stays zero, and no maximum sees it. After the last object there is one more row
that nothing is ever seen in: it stands for arguments that there are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilevel.baselines.graph_architecture import GraphArchitecture
from bilevel.baselines.graph_encoding import MOVING_SIZE, NOWHERE
from bilevel.baselines.graph_samples import GraphSamples
from bilevel.lowlevel.architecture import CONTROL, Weights
from bilevel.lowlevel.encoding import AGENT_SIZE
from bilevel.lowlevel.network import Networks, Table

FAR_BELOW = 1e9  # what is masked comes so far below all that is not


class Graphs(NamedTuple):
    """A batch of graphs for each of several networks."""

    globals: Tensor  # (nets, batch, global size)
    objects: Tensor  # (nets, batch, rows, object size)
    visible: Tensor  # (nets, batch, rows, 1): 1 or 0
    facts: Tensor  # (nets, batch, facts, fact size)
    known: Tensor  # (nets, batch, facts, 1): 1, or 0 where there is none
    arguments: Tensor  # (nets, batch, facts, arity): rows


class GraphNetwork(Networks):
    """Several networks of one shape."""

    at_once = 2048

    def __init__(self, architecture: GraphArchitecture, seeds: Sequence[int], initial: Sequence[Weights] = ()) -> None:
        super().__init__(architecture.layers, seeds, initial)
        self.architecture = architecture

    # From samples to graphs

    def table(self, samples: GraphSamples) -> Table:
        """Numbers of steps; for each its scene; numbers of scenes; the rows of arguments in each scene."""
        scenes, slots = samples.scenes, samples.moving.shape[1]
        facts = scenes.facts.shape[1]
        known = np.arange(facts) < scenes.counts[:, None]
        arguments = np.where(scenes.arguments == NOWHERE, slots, scenes.arguments)
        steps = samples.agents, _with_last_row(samples.moving), samples.controls
        looks = _with_last_row(scenes.objects), _with_last_row(scenes.visible[..., None]), scenes.facts, known
        return (
            _side_by_side(steps),
            torch.from_numpy(samples.scene),
            _side_by_side((scenes.globals, *looks)),
            torch.from_numpy(arguments),
        )

    def errors(self, table: Table, index: Tensor) -> Tensor:
        steps, scene_of, scenes, arguments = table
        encoding, scene = self.architecture.encoding, scene_of[index]
        facts = arguments.shape[1]
        rows = (steps.shape[1] - AGENT_SIZE - CONTROL) // MOVING_SIZE
        agents, moving, controls = torch.split(steps[index], [AGENT_SIZE, rows * MOVING_SIZE, CONTROL], dim=-1)
        sizes = [2 * len(encoding.nullary), rows * encoding.scene_size, rows, facts * encoding.fact_size, facts]
        globals_, looks, visible, content, known = torch.split(scenes[scene], sizes, dim=-1)

        def each(numbers: Tensor, count: int, size: int) -> Tensor:
            return numbers.reshape(*index.shape, count, size)

        graphs = Graphs(
            globals=torch.cat([agents, globals_], dim=-1),
            objects=torch.cat([each(moving, rows, MOVING_SIZE), each(looks, rows, encoding.scene_size)], dim=-1),
            visible=each(visible, rows, 1),
            facts=each(content, facts, encoding.fact_size),
            known=each(known, facts, 1),
            arguments=arguments[scene],
        )
        predicted: Tensor = self(graphs)
        errors: Tensor = predicted - controls
        return errors

    # From graphs to controls

    def forward(self, graphs: Graphs) -> Tensor:
        """Controls, (nets, batch, 4)."""
        layers = self.layers(self.flat)

        def apply(name: str, nodes: Tensor) -> Tensor:
            """To each node, (nets, batch, size) or (nets, batch, nodes, size)."""
            weight, bias = layers[name]
            outputs = torch.baddbmm(bias, nodes.reshape(len(nodes), -1, nodes.shape[-1]), weight)
            return outputs.view(*nodes.shape[:-1], outputs.shape[-1])

        def told(name: str, nodes: Tensor, there: Tensor) -> Tensor:
            """(nets, batch, hidden): the maximum over what all nodes say that are there."""
            return _maximum(apply(name, nodes), there)

        related = graphs.facts.shape[2] > 0 and self.architecture.encoding.arity > 0
        edges = _Edges(graphs) if related else None
        h_global = apply("global.0", graphs.globals)
        h_objects = apply("object.0", graphs.objects) * graphs.visible
        h_facts = apply("fact.0", graphs.facts) * graphs.known if edges else None
        for number in range(1, self.architecture.rounds + 1):
            objects = apply(f"object.{number}", h_objects)
            objects = objects + apply(f"global-to-object.{number}", h_global).unsqueeze(2)
            heard = apply(f"global.{number}", h_global)
            if edges and h_facts is not None:
                objects = objects + edges.to_objects(apply(f"fact-to-object.{number}", h_facts))
                facts = apply(f"fact.{number}", torch.cat([h_facts, edges.from_objects(h_objects)], dim=-1))
                facts = facts + apply(f"global-to-fact.{number}", h_global).unsqueeze(2)
                h_facts = torch.relu(facts) * graphs.known
                heard = heard + told(f"fact-to-global.{number}", h_facts, graphs.known)
            h_objects = torch.relu(objects) * graphs.visible
            h_global = torch.relu(heard + told(f"object-to-global.{number}", h_objects, graphs.visible))
        total = h_global + _maximum(h_objects, graphs.visible)
        if h_facts is not None:
            total = total + _maximum(h_facts, graphs.known)
        return apply("readout.1", torch.relu(apply("readout.0", total)))


class _Edges:
    """Between facts and their arguments, one kind for each position."""

    def __init__(self, graphs: Graphs) -> None:
        self._shape = graphs.arguments.shape  # (nets, batch, facts, arity)
        self._rows = graphs.objects.shape[2]
        nets, batch, _, arity = self._shape
        device = graphs.arguments.device
        first = torch.arange(nets * batch, device=device).view(nets, batch, 1, 1) * self._rows
        ends = graphs.arguments + first  # among the rows of all graphs
        self._sources = ends.flatten()
        self._targets = (ends * arity + torch.arange(arity, device=device)).flatten()

    def from_objects(self, objects: Tensor) -> Tensor:
        """(nets, batch, facts, arity * size): what the arguments of each fact are, side by side."""
        nets, batch, facts, arity = self._shape
        found = objects.reshape(-1, objects.shape[-1]).index_select(0, self._sources)
        return found.view(nets, batch, facts, arity * objects.shape[-1])

    def to_objects(self, messages: Tensor) -> Tensor:
        """(nets, batch, rows, size): for each object the sum, over positions, of the greatest message from a fact.

        Messages are (nets, batch, facts, arity * size).
        """
        nets, batch, _, arity = self._shape
        size = messages.shape[-1] // arity
        nothing = messages.new_zeros(nets * batch * self._rows * arity, size)
        targets = self._targets.unsqueeze(1).expand(-1, size)
        greatest = nothing.scatter_reduce(0, targets, messages.reshape(-1, size), "amax", include_self=False)
        return greatest.view(nets, batch, self._rows, arity, size).sum(dim=3)


def _maximum(nodes: Tensor, there: Tensor) -> Tensor:
    """(nets, batch, size): the maximum over (nets, batch, nodes, size) that are there; zero over none."""
    return (nodes + (there - 1) * FAR_BELOW).amax(dim=2) * there.amax(dim=2)


def _with_last_row(rows: NDArray[Any]) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (0, 1), (0, 0)))


def _side_by_side(parts: Sequence[NDArray[Any]]) -> Tensor:
    """(rows, numbers): all numbers of each row, so that one look-up finds them."""
    flat = [part.reshape(len(part), -1).astype(np.float32) for part in parts]
    return torch.from_numpy(np.concatenate(flat, axis=1))

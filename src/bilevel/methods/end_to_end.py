"""The rivals PddlNN and PureNN: one network from all that is seen, and all facts or none, to a control.

What it is told is a graph. There is a global node with the agent, a node for each object, and one for each fact of the
state or the goal with two arguments or more, with an edge to each of its arguments. Facts about one object alone stand
in its node, facts about nothing in the global node.

Features are told in the roles of the spec. `LabelOnly` ones, such as colours and where a tray ends, are told only to a
network that has no facts: for the other one, the facts say all that is to be known of them, and with more objects there
are colours that no demonstration shows. The order of names is told to both: of objects that are alike an expert takes
the first by name, and a network that cannot tell which one that is learns to go between them. It is told as a share of
all objects of the type, from 0 to 1: with more objects a number would be one that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bilevel.lowlevel.encoding import FeatureEncoder, ImitationSamples, Situation
from bilevel.lowlevel.network import ImitationNetwork, Table
from bilevel.lowlevel.numpy_network import Weights
from bilevel.policies.folder import DOMAIN, WEIGHTS, LearnedPolicy, check_encoding, read_learned
from bilevel.policies.policy import LabellingPolicy
from bilevel.symbolic.domain import BadInput, Domain, Facts
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Mirror, Spec
from bilevel.tasks.task import Labels

KIND = "end-to-end"  # the kind of network, in policy.json
HAS_FACTS = {"pure-nn": False, "pddl-nn": True}  # the methods, and whether their networks are told facts and goals

Rows = NDArray[np.int64]


class GraphEncoding:
    """Which number stands where, for a network that sees facts and goals, too, or features alone."""

    schemas = ()  # it is not told what is being done

    def __init__(self, method: str, domain: Domain, spec: Spec) -> None:
        self.method, self.domain, self.spec, has_facts = method, domain, spec, HAS_FACTS[method]
        self.features = FeatureEncoder(spec, label_only=not has_facts)
        self.types = sorted(spec.objects)
        arities = {name: len(domain.predicates[name].parameters) for name in sorted(domain.predicates) if has_facts}
        self.nullary, self.unary = ([name for name, arity in arities.items() if arity == count] for count in (0, 1))
        self.relations = [name for name, arity in arities.items() if arity > 1]
        self.arity = max((arities[name] for name in self.relations), default=0)
        self.global_size = self.features.agent_size + 2 * len(self.nullary)
        self.object_size = self.features.object_size + 1 + len(self.types) + 2 * len(self.unary)
        self.fact_size = 2 + len(self.relations)
        # Those that hold whatever is being done. Without facts, nothing says how `LabelOnly` features would be swapped.
        always = [each for each in spec.symmetries if domain.schemas.keys().isdisjoint(each.except_for)]
        self.symmetries = [each for each in always if has_facts or isinstance(each, Mirror)]

    @property
    def symbols(self) -> dict[str, Any]:
        """The symbols that a network is told of."""
        return {name: getattr(self, name) for name in ("types", "nullary", "unary", "relations", "arity")}

    def structure(self, roster: Roster, state: Facts, goal: Facts) -> tuple[Array, Array, Array, Rows]:
        """Encode which objects are seen, and the facts, as rows for the global node, the objects and the facts.

        Of each object it is said which share of all objects of its type comes before it by name, of which type it is,
        and what is true of it alone. The last array, (facts, arity), has the objects that a fact is about, counted from
        1 on, and 0 for an argument that is not seen, or that a fact does not have.
        """
        members = [sorted(roster.of_type(kind)) for kind in self.types]
        places = {name: place / len(names) for names in members for place, name in enumerate(names)}
        about = [
            [
                places[name],
                *(kind == other for other in self.types),
                *((predicate, (name,)) in facts for facts in (state, goal) for predicate in self.unary),
            ]
            for name, kind in roster.objects.items()
        ]
        related = sorted(fact for fact in state | goal if fact.predicate in self.relations)
        arguments = np.zeros((len(related), self.arity), np.int64)
        for row, fact in enumerate(related):
            arguments[row, : len(fact.terms)] = [roster.row.get(name, -1) + 1 for name in fact.terms]
        facts = [
            [fact in state, fact in goal, *(fact.predicate == name for name in self.relations)] for fact in related
        ]
        return (
            np.array([(name, ()) in f for f in (state, goal) for name in self.nullary], np.float32),
            np.array(about, np.float32).reshape(-1, self.object_size - self.features.object_size),
            np.array(facts, np.float32).reshape(-1, self.fact_size),
            arguments,
        )

    def for_spec(self, spec: Spec) -> GraphEncoding:
        """The same encoding for scenes of a spec that has the same features to tell; `BadInput` for any other."""
        if spec is self.spec:
            return self
        found = GraphEncoding(self.method, self.domain, spec)
        if (found.types, found.features.layout) != (self.types, self.features.layout):
            raise BadInput("the scenes have other features or roles than those that the network was trained on")
        return found


# What the network learns from


@dataclass(frozen=True)
class GraphSamples(ImitationSamples):
    """One graph per step. There are zeros where a graph is smaller than others."""

    globals: Array  # (steps, global size): the agent, then facts about nothing
    objects: Array  # (steps, most objects, object size): features, then what is said of an object
    facts: Array  # (steps, most facts, fact size)
    arguments: Rows  # (steps, most facts, arity)

    @classmethod
    def concatenate(cls, parts: Sequence[GraphSamples]) -> GraphSamples:
        return cls(*(_stacked(arrays) for arrays in zip(*(part.arrays() for part in parts), strict=True)))


def _stacked(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one after the other, those that are shorter along their second axis filled up with zeros."""
    if arrays[0].ndim < 3:
        return np.concatenate(arrays)
    most = max(array.shape[1] for array in arrays)
    return np.concatenate([np.pad(array, ((0, 0), (0, most - array.shape[1]), (0, 0))) for array in arrays])


def encode_graphs(
    encoding: GraphEncoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> GraphSamples:
    """The samples of one episode. What is said of a scene comes back, so each such structure is encoded once."""
    encoder, structure = encoding.features, cache(encoding.structure)
    sizes = (encoding.global_size,), (0, encoding.object_size), (0, encoding.fact_size)
    empty = [np.zeros(size, np.float32) for size in sizes]
    graphs = [(*empty, np.zeros((0, encoding.arity), np.int64))]  # so that there is one; it is dropped in the end
    for scene, (state, goal, _) in zip(scenes, situations, strict=True):
        nullary, about, facts, arguments = structure(scene.roster, state, goal)
        features = encoder.objects(scene.values, scene.features, encoder.mask(list(scene.objects.values())))
        nodes = np.concatenate([encoder.agent(scene.values), nullary]), np.concatenate([features, about], axis=1)
        graphs.append((*nodes, facts, arguments))
    parts = (_stacked([part[None] for part in parts])[1:] for parts in zip(*graphs, strict=True))
    return GraphSamples(targets, np.full(len(scenes), number), *parts)


# The network. The graphs of a batch have room for equally many objects and facts; what is not there is masked: its node
# stays zero, and no maximum sees it. Row 0 of the objects is nothing: it stands for arguments that there are not. The
# nodes of all graphs that stand in one row are side by side: that makes maxima over the nodes of a graph fast.

FAR_BELOW = 1e9  # what is masked comes so far below all that is not


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
    scales = ("agent_scale", "object_scale")

    def __init__(self, encoding: GraphEncoding, controls: Controls, hidden: int = 64, rounds: int = 2) -> None:
        super().__init__(encoding, controls)
        self.register_buffer("agent_scale", torch.ones(encoding.features.agent_size))
        self.register_buffer("object_scale", torch.ones(encoding.features.object_size))
        self.symmetries = () if self.is_choice else encoding.symmetries
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

    def table(self, samples: GraphSamples) -> Table:
        """Side by side the global node, the objects, of which the first is nothing, and the targets; then the facts."""
        padded = replace(samples, objects=np.pad(samples.objects, ((0, 0), (1, 0), (0, 0))))
        return self.scaled(padded), torch.from_numpy(samples.facts), torch.from_numpy(samples.arguments)

    def predict(self, table: Table, index: Tensor) -> tuple[Tensor, Tensor]:
        numbers, facts, arguments = (part[index] for part in table)
        encoding, (global_, _, objects, targets) = self.encoding, self.parts(numbers)
        kinds = objects[..., encoding.features.object_size + 1 :][..., : len(encoding.types)]
        visible = kinds.sum(dim=-1, keepdim=True)  # of one type
        known = facts[..., :2].amax(dim=-1, keepdim=True)  # it holds or is wanted
        nodes = (part.transpose(0, 1).contiguous() for part in (objects, visible, facts, known, arguments))
        return self(global_, *nodes), targets

    # From graphs to controls

    def forward(
        self, global_: Tensor, objects: Tensor, visible: Tensor, facts: Tensor, known: Tensor, arguments: Tensor
    ) -> Tensor:
        """(batch, outputs) from numbers that are scaled already.

        They are (batch, global size), (rows, batch, object size) with `visible`, (rows, batch, 1), and (facts, batch,
        fact size) with `known`, (facts, batch, 1): 1, or 0 where there is none. `arguments`, (facts, batch, arity), are
        rows of objects.
        """
        has_facts = bool(self.encoding.relations) and facts.shape[0] > 0
        rows, batch = objects.shape[:2]
        ends = arguments * batch + torch.arange(batch, device=arguments.device).unsqueeze(
            1
        )  # among those of all graphs
        h_global = self.embed["global"](global_)  # (batch, hidden)
        h_objects = self.embed["object"](objects) * visible  # (rows, batch, hidden)
        h_facts = self.embed["fact"](facts) if has_facts else facts  # (facts, batch, hidden)
        for layers in self.rounds:
            assert isinstance(layers, nn.ModuleDict)
            told = layers["object"](h_objects) + layers["global_to_object"](h_global)
            heard = layers["global"](h_global)
            if has_facts:
                told = told + _to_objects(layers["fact_to_object"](h_facts), ends, rows)
                about = h_objects.flatten(0, 1).index_select(0, ends.flatten())  # what their arguments are
                inputs = torch.cat([h_facts, about.view(*facts.shape[:2], -1)], dim=-1)  # side by side
                h_facts = torch.relu(layers["fact"](inputs) + layers["global_to_fact"](h_global))
                heard = heard + _maximum(layers["fact_to_global"](h_facts), known)
            h_objects = torch.relu(told) * visible
            h_global = torch.relu(heard + _maximum(layers["object_to_global"](h_objects), visible))
        total = h_global + _maximum(h_objects, visible)
        if has_facts:
            total = total + _maximum(h_facts, known)
        outputs: Tensor = self.readout(total)
        return outputs


def _maximum(nodes: Tensor, there: Tensor) -> Tensor:
    """(batch, size): the maximum over those of the nodes, (rows, batch, size), that are there; zero over none."""
    return (nodes + (there - 1) * FAR_BELOW).amax(dim=0) * there.amax(dim=0)


def _to_objects(messages: Tensor, ends: Tensor, rows: int) -> Tensor:
    """(rows, batch, size): for each object the sum, over positions, of the greatest message from a fact.

    Messages are (facts, batch, arity * size), and ends, (facts, batch, arity), are where they go among all objects.
    """
    _, batch, arity = ends.shape
    targets = ends + torch.arange(arity, device=ends.device) * (rows * batch)
    flat = messages.reshape(-1, messages.shape[-1] // arity)
    heard = flat.new_zeros(arity * rows * batch, flat.shape[1])
    heard = heard.scatter_reduce(0, targets.view(-1, 1).expand_as(flat), flat, "amax", include_self=False)
    return heard.view(arity, rows, batch, -1).sum(dim=0)


# The network at work


class EndToEndPolicy(LabellingPolicy):
    """A policy that has no high level: what it is doing it cannot say."""

    is_memoryless = True  # what it does depends on what it sees alone

    def __init__(self, network: EndToEndNetwork, labels: Labels) -> None:
        super().__init__(labels)
        self._network, self._encoding = network.eval(), network.encoding
        self._nothing = np.zeros((1, network.controls.size), np.float32)

    @torch.no_grad()
    def act(self, scene: Scene) -> Control:
        """Return the network's control for what is seen now."""
        self.reset(scene)
        self._encoding, network = self._encoding.for_spec(scene.spec), self._network
        samples = encode_graphs(self._encoding, [scene], [(self.state, self.goal, None)], self._nothing, 0)
        outputs, _ = network.predict(network.table(samples), torch.zeros(1, dtype=torch.int64))
        return network.controls.decode(outputs[0].numpy())


def network_with(make_network: Callable[[], EndToEndNetwork], weights: Weights) -> EndToEndNetwork:
    """Return a network with these weights; whatever its size is said to be, it takes no more memory than they do."""
    with torch.device("meta"):
        network = make_network()
    network.load_state_dict({name: torch.tensor(array) for name, array in weights.items()}, assign=True)
    return network


def read_end_to_end(folder: Path, method: str) -> tuple[LearnedPolicy, EndToEndNetwork]:
    """Return what is in a folder, with its network; `BadInput` where it is not of this method, or does not fit."""
    learned = read_learned(folder, method)
    card, shape = learned.card, learned.card.network
    encoding = GraphEncoding(method, learned.domain, card.spec)
    check_encoding(encoding.symbols, card.encoding, folder / DOMAIN)
    make_network = partial(EndToEndNetwork, encoding, card.controls, shape.hidden, shape.rounds)
    try:
        return learned, network_with(make_network, learned.weights)
    except RuntimeError as error:
        raise BadInput(f"{folder / WEIGHTS}: not the weights of this network: {' '.join(str(error).split())}") from None

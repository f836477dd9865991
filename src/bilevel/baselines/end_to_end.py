"""An end-to-end network at work, without torch: from all that is seen, and the facts if it takes them, to a control."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bilevel.baselines.graph_encoding import ENCODINGS, NOTHING, GraphEncoding, Rows
from bilevel.lowlevel.numpy_network import Weights, check_shapes
from bilevel.policies.policy import LabellingPolicy
from bilevel.policies.policy_folder import (
    BISON,
    DOMAIN,
    POLICY,
    WEIGHTS,
    Card,
    LearnedNetwork,
    LearnedPolicy,
    bilevel_policy,
    check_encoding,
    read_card,
    read_domain_and_weights,
)
from bilevel.symbolic.domain import BadInput, Facts
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Labels


def weight_shapes(encoding: GraphEncoding, controls: Controls, hidden: int, rounds: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all arrays of an `EndToEndNetwork`."""
    told, arity = encoding.features, encoding.arity
    layers = {"embed.global": (hidden, encoding.global_size), "embed.object": (hidden, encoding.object_size)}
    square = ["global", "object", "global_to_object", "object_to_global"]
    if encoding.relations:
        layers["embed.fact"] = hidden, encoding.fact_size
        square += ["global_to_fact", "fact_to_global"]
        for number in range(rounds):
            layers[f"rounds.{number}.fact"] = hidden, (1 + arity) * hidden
            layers[f"rounds.{number}.fact_to_object"] = arity * hidden, hidden
    layers |= {f"rounds.{number}.{name}": (hidden, hidden) for number in range(rounds) for name in square}
    layers |= {"readout.0": (hidden, hidden), "readout.2": (controls.size, hidden)}
    shapes: dict[str, tuple[int, ...]] = {"agent_scale": (told.agent_size,), "object_scale": (told.object_size,)}
    for name, shape in layers.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


@dataclass(frozen=True)
class _Edges:
    """From facts to their arguments at one position: facts in the order of their targets."""

    facts: Rows  # (edges,)
    first: Rows  # (targets,): the first edge to each
    targets: Rows  # (targets,): objects

    @classmethod
    def to(cls, arguments: Rows) -> _Edges:
        """`arguments`, (facts,), are objects, counted from 1 on, or nothing."""
        facts = np.argsort(arguments, kind="stable")
        facts = facts[arguments[facts] != NOTHING]
        targets, first = np.unique(arguments[facts], return_index=True)
        return cls(facts, first, targets - 1)


@dataclass(frozen=True)
class _Embedded:
    """What a structure contributes: computed once, and kept while it lasts."""

    mask: Array  # (objects, feature size)
    globals: Array  # (hidden,)
    objects: Array  # (objects, hidden)
    facts: Array  # (facts, hidden)
    arguments: Rows  # (facts, arity)
    edges: tuple[_Edges, ...]  # for each position


class EndToEndPolicy(LabellingPolicy):
    """A policy that has no high level: what it is doing it cannot say.

    A network without facts does not look at them.
    """

    is_memoryless = True  # what it does depends on what it sees alone

    def __init__(
        self, encoding: GraphEncoding, controls: Controls, weights: Weights, rounds: int, labels: Labels
    ) -> None:
        super().__init__(labels)
        self._encoding, self._controls = encoding, controls
        names = [name.removesuffix(".weight") for name in weights if name.endswith(".weight")]
        self._weight = {name: np.ascontiguousarray(weights[f"{name}.weight"].T) for name in names}
        self._bias = {name: weights[f"{name}.bias"] for name in names}
        told = encoding.features
        agent, self._facts_weight = np.split(self._weight["embed.global"], [told.agent_size])
        seen, self._about_weight = np.split(self._weight["embed.object"], [told.object_size])
        self._agent_weight = agent * weights["agent_scale"][:, None]  # scaled once, here, instead of at every step
        self._seen_weight = seen * weights["object_scale"][:, None]
        self._rounds = [f"rounds.{number}." for number in range(rounds)]
        self._hidden = len(self._bias["embed.global"])
        self._nothing = np.zeros((1, self._hidden), np.float32)
        self._conditions: tuple[Facts, Facts, Roster] | None = None

    def __repr__(self) -> str:
        numbers = sum(array.size for arrays in (self._weight, self._bias) for array in arrays.values())
        return f"EndToEndPolicy({numbers:,} parameters)"

    def act(self, scene: Scene) -> Control:
        """Return the network's control for what is seen now."""
        self.reset(scene)
        conditions = self.state, self.goal, scene.roster
        if conditions != self._conditions:
            self._embedded = self._embed(scene)
            self._conditions = conditions
        told, embedded = self._encoding.features, self._embedded
        features = told.objects(scene.values, scene.features, embedded.mask)
        global_ = embedded.globals + told.agent(scene.values) @ self._agent_weight
        return self._controls.decode(self._forward(global_, embedded.objects + features @ self._seen_weight, embedded))

    def _embed(self, scene: Scene) -> _Embedded:
        self._encoding = encoding = self._encoding.for_spec(scene.spec)
        structure = encoding.structure(scene.objects, self.state, self.goal)
        no_facts = np.zeros((0, self._hidden), np.float32)
        return _Embedded(
            mask=encoding.features.mask(list(scene.objects.values())),
            globals=structure.globals @ self._facts_weight + self._bias["embed.global"],
            objects=structure.objects @ self._about_weight + self._bias["embed.object"],
            facts=self._linear("embed.fact", structure.facts) if encoding.relations else no_facts,
            arguments=structure.arguments,
            edges=tuple(_Edges.to(position) for position in structure.arguments.T),
        )

    def _forward(self, global_: Array, objects: Array, embedded: _Embedded) -> Array:
        """The outputs from the embedded nodes, (hidden,) and (objects, hidden)."""
        facts, linear = embedded.facts, self._linear
        for round_ in self._rounds:
            heard = linear(f"{round_}global", global_)
            told = linear(f"{round_}object", objects)
            told += linear(f"{round_}global_to_object", global_)
            if len(facts):
                self._tell_objects(told, linear(f"{round_}fact_to_object", facts), embedded.edges)
                ends = np.concatenate([self._nothing, objects])[embedded.arguments]  # (facts, arity, hidden)
                facts = linear(f"{round_}fact", np.concatenate([facts, ends.reshape(len(facts), -1)], axis=1))
                facts += linear(f"{round_}global_to_fact", global_)
                np.maximum(facts, 0, out=facts)
                heard += linear(f"{round_}fact_to_global", facts).max(axis=0)
            objects = np.maximum(told, 0, out=told)
            if len(objects):
                heard += linear(f"{round_}object_to_global", objects).max(axis=0)
            global_ = np.maximum(heard, 0, out=heard)
        total = global_ + _most(objects) + _most(facts)
        return linear("readout.2", np.maximum(linear("readout.0", total), 0))

    def _tell_objects(self, objects: Array, messages: Array, edges: tuple[_Edges, ...]) -> None:
        """Add to each object, for each position, the greatest message from the facts that have it there."""
        by_position = messages.reshape(len(messages), -1, self._hidden)
        for position, ends in enumerate(edges):
            if len(ends.facts):
                sent = by_position[ends.facts, position]
                objects[ends.targets] += np.maximum.reduceat(sent, ends.first, axis=0)

    def _linear(self, name: str, inputs: Array) -> Array:
        outputs: Array = inputs @ self._weight[name]
        outputs += self._bias[name]
        return outputs


def _most(nodes: Array) -> Array:
    """(hidden,): the maximum over nodes; zero over none."""
    most: Array = nodes.max(axis=0) if len(nodes) else np.zeros(nodes.shape[1], np.float32)
    return most


# A learned policy as a folder: policy.json, domain.pddl, weights.safetensors. There are no rules in it.


END_TO_END = "end-to-end"  # the kind of network


@dataclass(frozen=True, repr=False)
class LearnedEndToEnd(LearnedNetwork):
    """All that is in the folder of an end-to-end policy; its method is one of `ENCODINGS`."""

    @property
    def encoding(self) -> GraphEncoding:
        """What the network is told, by its method."""
        return ENCODINGS[self.card.method](self.domain, self.spec)

    def bind(self, labels: Labels) -> EndToEndPolicy:
        """The policy with somebody's labels."""
        return EndToEndPolicy(self.encoding, self.card.controls, self.weights, self.card.network.rounds, labels)

    def for_environment(self, env: SceneEnv) -> EndToEndPolicy:
        """The policy with the labels of an environment."""
        self.check_controls(env.controls)
        return self.bind(env.labels)


def read_any(folder: Path) -> LearnedPolicy | LearnedEndToEnd:
    """`BadInput`, which names the file, where one is missing, damaged, or does not fit the others."""
    card = read_card(folder)
    if card.method == BISON:
        return bilevel_policy(folder, card)
    if card.method not in ENCODINGS:
        known = " or ".join([BISON, *ENCODINGS])
        raise BadInput(f"{folder / POLICY}: a policy of the method {card.method!r}, not of {known}")
    return _end_to_end_policy(folder, card)


def read_end_to_end(folder: Path, method: str) -> LearnedEndToEnd:
    """The same for a policy of this method; `BadInput` where it is of another."""
    found = read_any(folder)
    if not isinstance(found, LearnedEndToEnd) or found.card.method != method:
        raise BadInput(f"{folder}: a policy of the method '{found.card.method}', not of '{method}'")
    return found


def _end_to_end_policy(folder: Path, card: Card) -> LearnedEndToEnd:
    """The policy in a folder with this policy.json."""
    learned = LearnedEndToEnd(card, *read_domain_and_weights(folder))
    encoding, shape = learned.encoding, card.network
    check_encoding(encoding.symbols, card.encoding, folder / DOMAIN)
    check_shapes(folder / WEIGHTS, learned.weights, weight_shapes(encoding, card.controls, shape.hidden, shape.rounds))
    return learned

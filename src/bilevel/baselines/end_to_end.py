"""An end-to-end network at work, without torch: from all that is seen, and the facts if it takes them, to a control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bilevel.baselines.graph_architecture import GraphArchitecture
from bilevel.baselines.graph_encoding import MOVING_SIZE, NOWHERE, Movement, Rows, look
from bilevel.lowlevel.architecture import Weights
from bilevel.lowlevel.encoding import AGENT_SIZE, agent_state
from bilevel.policies.policies import Control
from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tabletop.labelling import Labels
from bilevel.tabletop.observation import Array, Observation


@dataclass(frozen=True)
class _Edges:
    """From facts to their arguments at one position: facts in the order of their targets."""

    facts: Rows  # (edges,)
    first: Rows  # (targets,): the first edge to each
    targets: Rows  # (targets,): objects

    @classmethod
    def to(cls, arguments: Rows) -> _Edges:
        """`arguments`, (facts,), are objects, or nowhere."""
        facts = np.argsort(arguments, kind="stable")
        facts = facts[arguments[facts] != NOWHERE]
        targets, first = np.unique(arguments[facts], return_index=True)
        return cls(facts, first, targets)


@dataclass(frozen=True)
class _Embedded:
    """What a scene contributes: computed once, and kept while it lasts. Objects are those that are visible."""

    rows: Rows  # (objects,): their slots
    globals: Array  # (hidden,)
    objects: Array  # (objects, hidden)
    facts: Array  # (facts, hidden)
    arguments: Rows  # (facts, arity): objects; for one that there is not, the number after the last
    edges: tuple[_Edges, ...]  # for each position


class EndToEndPolicy:
    """A policy that has no high level: what it is doing it cannot say. Its labels are for those who watch it.

    A network without facts does not look at them.
    """

    is_memoryless = True  # what it does depends on what it sees alone

    def __init__(self, architecture: GraphArchitecture, weights: Weights, labels: Labels) -> None:
        self.labels = labels
        self.state: Facts = NO_FACTS
        self.goal: Facts = NO_FACTS
        self.action: Action | None = None
        self._encoding, self._rounds, self._hidden = architecture.encoding, architecture.rounds, architecture.hidden
        self._weight = {name: weights[f"{name}.weight"] for name in architecture.layers}
        self._bias = {name: weights[f"{name}.bias"] for name in architecture.layers}
        self._none = np.zeros((0, architecture.hidden), np.float32)
        self._movement = Movement(labels.slots)
        self._told: tuple[Facts, Facts, bytes] | None = None

    def reset(self, observation: Observation) -> None:
        self.state, self.goal = self.labels.state(observation), self.labels.goal(observation)

    def act(self, observation: Observation) -> Control:
        self.reset(observation)
        told = self.state, self.goal, look(observation)
        if told != self._told:
            self._told = told
            self._scene = self._embed(observation)
        agent, scene, weight = observation["agent"], self._scene, self._weight
        moving = self._movement(agent, observation["objects"], scene.rows)
        global_ = scene.globals + agent_state(agent) @ weight["global.0"][:AGENT_SIZE]
        return self._forward(global_, scene.objects + moving @ weight["object.0"][:MOVING_SIZE], scene)

    def _embed(self, observation: Observation) -> _Embedded:
        encoding, weight, bias = self._encoding, self._weight, self._bias
        scene = encoding.scene(self.labels.slots, observation, self.state, self.goal)
        rows = np.flatnonzero(scene.visible)
        place = np.full(len(scene.visible) + 1, NOWHERE)  # the last stands for nowhere
        place[rows] = np.arange(len(rows))
        arguments = place[scene.arguments]
        return _Embedded(
            rows=rows,
            globals=scene.globals @ weight["global.0"][AGENT_SIZE:] + bias["global.0"],
            objects=scene.objects[rows] @ weight["object.0"][MOVING_SIZE:] + bias["object.0"],
            facts=self._linear("fact.0", scene.facts) if encoding.relations else self._none,
            arguments=np.where(arguments == NOWHERE, len(rows), arguments),
            edges=tuple(_Edges.to(position) for position in arguments.T),
        )

    def _forward(self, global_: Array, objects: Array, scene: _Embedded) -> Array:
        """The control from the embedded nodes, (hidden,) and (objects, hidden)."""
        facts, related = scene.facts, len(scene.facts) > 0
        for number in range(1, self._rounds + 1):
            heard = self._linear(f"global.{number}", global_)
            told = self._linear(f"object.{number}", objects)
            told += self._linear(f"global-to-object.{number}", global_)
            if related:
                self._tell_objects(told, self._linear(f"fact-to-object.{number}", facts), scene)
                arguments = np.append(objects, np.zeros((1, self._hidden), np.float32), axis=0)[scene.arguments]
                facts = np.concatenate([facts, arguments.reshape(len(facts), -1)], axis=1)
                facts = self._linear(f"fact.{number}", facts)
                facts += self._linear(f"global-to-fact.{number}", global_)
                np.maximum(facts, 0, out=facts)
                heard += self._linear(f"fact-to-global.{number}", facts).max(axis=0)
            objects = np.maximum(told, 0, out=told)
            if len(objects):
                heard += self._linear(f"object-to-global.{number}", objects).max(axis=0)
            global_ = np.maximum(heard, 0, out=heard)
        total = global_ + _most(objects) + _most(facts)
        hidden = np.maximum(self._linear("readout.0", total), 0)
        control: Array = np.clip(self._linear("readout.1", hidden), -1, 1)
        return control

    def _tell_objects(self, objects: Array, messages: Array, scene: _Embedded) -> None:
        """Add to each object, for each position, the greatest message from the facts that have it there."""
        by_position = messages.reshape(len(messages), -1, self._hidden)
        for position, edges in enumerate(scene.edges):
            if len(edges.facts):
                sent = by_position[edges.facts, position]
                objects[edges.targets] += np.maximum.reduceat(sent, edges.first, axis=0)

    def _linear(self, name: str, inputs: Array) -> Array:
        outputs: Array = inputs @ self._weight[name]
        outputs += self._bias[name]
        return outputs


def _most(nodes: Array) -> Array:
    """(hidden,): the maximum over nodes; zero over none."""
    most: Array = nodes.max(axis=0) if len(nodes) else np.zeros(nodes.shape[1], np.float32)
    return most

"""The network of the low level at work, without torch: on a single step that is several times as fast."""

from __future__ import annotations

import numpy as np

from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.lowlevel.encoding import AGENT_SIZE, STATE_SIZE, agent_state, object_states, placed_rows
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tabletop.observation import SERIAL, Array, Observation, Slots


class GnnPolicy:
    """A low-level policy. What a state, a goal and an action contribute is computed once and kept while they last."""

    def __init__(self, architecture: Architecture, weights: Weights, slots: Slots) -> None:
        self._encoding, self._rounds = architecture.encoding, architecture.rounds
        self._weight = {name: weights[f"{name}.weight"] for name in architecture.layers}
        self._bias = {name: weights[f"{name}.bias"] for name in architecture.layers}
        self._slots, self._placed = slots, placed_rows(slots)
        self._told: tuple[Facts, Facts, Action, bytes] | None = None

    def control(self, observation: Observation, state: Facts, goal: Facts, action: Action) -> Array:
        told = state, goal, action, observation["objects"][:, SERIAL].tobytes()  # the last says what is seen where
        if told != self._told:
            self._told = told
            self._tell(observation, state, goal, action)
        agent = observation["agent"]
        objects = object_states(agent, observation["objects"][self._rows], self._placed[self._rows])
        global_ = self._global + agent_state(agent) @ self._weight["global.0"][:AGENT_SIZE]
        return self._forward(global_, self._objects + objects @ self._weight["object.0"][:STATE_SIZE])

    def _tell(self, observation: Observation, state: Facts, goal: Facts, action: Action) -> None:
        """Embed the symbols, and find where the action's arguments are seen."""
        encoding, weight, bias = self._encoding, self._weight, self._bias
        self._global = encoding.global_facts(state, goal) @ weight["global.0"][AGENT_SIZE:] + bias["global.0"]
        self._action = weight["action.0"][encoding.schemas.index(action.name)] + bias["action.0"]
        facts = encoding.object_facts(state, goal, action)
        self._objects = facts @ weight["object.0"][STATE_SIZE:] + bias["object.0"]
        self._rows = encoding.padded([self._row(name, observation, action) for name in action.arguments])

    def _row(self, name: str, observation: Observation, action: Action) -> int:
        try:
            return self._slots.find(name, observation)
        except KeyError:
            raise BadInput(f"the rules want {action}, but no '{name}' is seen") from None

    def _forward(self, global_: Array, objects: Array) -> Array:
        """The control from the embedded nodes, (hidden,) and (arity, hidden), or (0, hidden) without arguments."""
        action, most = self._action, _most(objects)
        for number in range(1, self._rounds + 1):
            global_ = self._layer(f"global.{number}", global_ + action + most)
            told = global_ + action
            objects = self._layer(f"object.{number}", objects + told)
            action = self._layer(f"action.{number}", told + most)
            most = _most(objects)
        hidden = self._layer("readout.0", global_ + action + most)
        control: Array = np.clip(hidden @ self._weight["readout.1"] + self._bias["readout.1"], -1, 1)
        return control

    def _layer(self, name: str, inputs: Array) -> Array:
        outputs: Array = inputs @ self._weight[name]
        outputs += self._bias[name]
        return np.maximum(outputs, 0, out=outputs)


def _most(objects: Array) -> Array:
    """(hidden,): the maximum over the objects, which is zero over none."""
    most: Array = objects.max(axis=0) if len(objects) else np.zeros(objects.shape[1], np.float32)
    return most

"""The low level at work without torch: the twin of `GraphNetwork` in NumPy, several times as fast on a single step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from bilevel.files import read_bytes
from bilevel.lowlevel.encoding import Encoding
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import Control, Controls
from bilevel.tasks.scene import Array, Roster, Scene

NODES = ("global", "action", "object")


def weight_shapes(encoding: Encoding, controls: Controls, hidden: int, rounds: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all arrays of a `GraphNetwork`."""
    sizes = dict(zip(NODES, (encoding.global_size, len(encoding.schemas), encoding.object_size), strict=True))
    layers = {f"embed.{node}": (hidden, size) for node, size in sizes.items()}
    layers |= {f"rounds.{number}.{node}": (hidden, hidden) for number in range(rounds) for node in NODES}
    layers |= {"readout.0": (hidden, hidden), "readout.2": (controls.size, hidden)}
    shapes: dict[str, tuple[int, ...]] = {"global_scale": (sizes["global"],), "object_scale": (sizes["object"],)}
    for name, shape in layers.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


class NumpyNetwork:
    """A low-level policy. What a state, a goal and an action contribute is computed once and kept while they last."""

    def __init__(self, encoding: Encoding, controls: Controls, weights: Mapping[str, Array], rounds: int) -> None:
        self._encoding, self._controls, self._features = encoding, controls, encoding.features
        names = [name.removesuffix(".weight") for name in weights if name.endswith(".weight")]
        self._weight = {name: np.ascontiguousarray(weights[f"{name}.weight"].T) for name in names}
        self._bias = {name: weights[f"{name}.bias"] for name in names}
        with np.errstate(over="ignore", invalid="ignore"):
            for node in ("global", "object"):  # scaled once, here, instead of at every step
                self._weight[f"embed.{node}"] *= weights[f"{node}_scale"][:, None]
        self._layers = [
            tuple((self._weight[f"rounds.{number}.{node}"], self._bias[f"rounds.{number}.{node}"]) for node in NODES)
            for number in range(rounds)
        ]
        agent, seen = self._features.agent_size, self._features.object_size
        self._agent_weight, self._facts_weight = np.split(self._weight["embed.global"], [agent])
        self._seen_weight, self._about_weight = np.split(self._weight["embed.object"], [seen])
        self._conditions: tuple[Facts, Facts, Action, Roster] | None = None
        self.looks_at = ""  # what the last control regards although the action does not name it, if anything

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control:
        """Return the control for an action; `BadInput` where the weights are too large for numbers to stay finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = self._outputs(scene, state, goal, action)
        if not np.isfinite(outputs).all():
            raise BadInput("the network's outputs are not finite: its weights, or what is seen, are too large")
        return self._controls.decode(outputs)

    def _outputs(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Array:
        conditions = state, goal, action, scene.roster
        if conditions != self._conditions or scene.spec is not self._encoding.spec:
            self._conditions = None  # where an error is raised half way, nothing is known
            self._condition(scene, state, goal, action)
            self._conditions = conditions
        values, features = scene.values, self._encoding.seen(scene, self._rows)
        mask, objects = self._mask, self._objects
        if self._candidates:
            row = int(self._encoding.nearest_row(action, self._candidates, values, features))
            self.looks_at = scene.roster.names[self._rows[row]] if row >= self._encoding.nodes else ""
            seen = [*range(self._encoding.arity), row]
            features, mask, objects = features[seen], mask[seen], objects[seen]
        objects = objects + self._features.objects(values, features, mask) @ self._seen_weight
        return self._forward(self._global + self._features.agent(values) @ self._agent_weight, objects)

    def _condition(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> None:
        """Embed the symbols, and find where the action's arguments are seen."""
        self._encoding = encoding = self._encoding.for_spec(scene.spec)
        self._features, weight, bias = encoding.features, self._weight, self._bias
        self._global = encoding.global_facts(state, goal) @ self._facts_weight + bias["embed.global"]
        schema = encoding.schema_index(action)
        self._action = weight["embed.action"][schema] + bias["embed.action"]
        seen = encoding.seen_objects(scene, state, goal, action)
        self._rows, self._mask, about, self._candidates, self.looks_at = seen
        self._objects = about @ self._about_weight + bias["embed.object"]

    def _forward(self, global_: Array, objects: Array) -> Array:
        """The outputs from the embedded nodes, (hidden,) and (nodes, hidden), or (0, hidden) without arguments."""
        action, most = self._action, objects.max(axis=0) if len(objects) else np.zeros(objects.shape[1], np.float32)
        for (global_weight, global_bias), (action_weight, action_bias), (object_weight, object_bias) in self._layers:
            global_ = np.maximum((global_ + action + most) @ global_weight + global_bias, 0)
            heard = global_ + action
            objects = np.maximum((objects + heard) @ object_weight + object_bias, 0)
            action = np.maximum((heard + most) @ action_weight + action_bias, 0)
            most = objects.max(axis=0, initial=0)  # zero over none
        hidden = np.maximum((global_ + action + most) @ self._weight["readout.0"] + self._bias["readout.0"], 0)
        outputs: Array = hidden @ self._weight["readout.2"] + self._bias["readout.2"]
        return outputs


# The weights as a safetensors file: arrays of numbers and nothing else

Weights = Mapping[str, Array]


def count_parameters(weights: Weights) -> int:
    """Return how many numbers of a network are learned: all but scales, which are measured."""
    return sum(array.size for name, array in weights.items() if not name.endswith("_scale"))


def weights_data(weights: Weights) -> bytes:
    """The bytes of the file."""
    return save({name: np.ascontiguousarray(array) for name, array in weights.items()})


def read_weights(path: Path) -> Weights:
    """All arrays of a file, which must be whole, of 32-bit numbers, and finite."""
    try:
        weights = load(read_bytes(path))
    except (SafetensorError, KeyError, ValueError) as error:
        raise BadInput(f"{path}: damaged: {error}") from None
    for name, array in weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise BadInput(f"{path}: the tensor '{name}' does not hold finite 32-bit numbers")
    return weights


def check_shapes(path: Path, weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """`BadInput` where the weights are not those of a network with these shapes."""
    found = {name: array.shape for name, array in weights.items()}
    for name in sorted({*found, *shapes}):
        if found.get(name) != shapes.get(name):
            shape, wanted = (each.get(name, "missing") for each in (found, shapes))
            raise BadInput(f"{path}: the tensor '{name}' is {shape}, but in this network it is {wanted}")

"""The network as it is defined, one node and one number at a time: slow, obvious, and the judge of the fast ones."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tabletop.observation import COLUMN, FEATURES_OF, Observation, Slots

Vector = list[float]


def slow_control(
    domain: Domain,
    architecture: Architecture,
    weights: Weights,
    slots: Slots,
    observation: Observation,
    state: Facts,
    goal: Facts,
    action: Action,
) -> Vector:
    """The control, not clipped."""

    def layer(name: str, inputs: Vector) -> Vector:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [
            float(bias[out]) + sum(x * float(weight[number, out]) for number, x in enumerate(inputs))
            for out in range(len(bias))
        ]

    h_global = layer("global.0", encode_global(domain, observation, state, goal))
    h_action = layer("action.0", one_hot(sorted(domain.schemas).index(action.name), len(domain.schemas)))
    h_objects = [
        layer("object.0", encode_object(domain, slots, observation, state, goal, name, position))
        for position, name in enumerate(action.arguments)
    ]
    for number in range(1, architecture.rounds + 1):
        most = maximum(h_objects, architecture.hidden)
        new_global = relu(layer(f"global.{number}", plus(h_global, h_action, most)))
        new_action = relu(layer(f"action.{number}", plus(new_global, h_action, most)))
        h_objects = [relu(layer(f"object.{number}", plus(new_global, h_action, h))) for h in h_objects]
        h_global, h_action = new_global, new_action
    total = plus(h_global, h_action, maximum(h_objects, architecture.hidden))
    return layer("readout.1", relu(layer("readout.0", total)))


def encode_global(domain: Domain, observation: Observation, state: Facts, goal: Facts) -> Vector:
    _, _, z, opening = map(float, observation["agent"])
    nullary = sorted(name for name, predicate in domain.predicates.items() if predicate.arity == 0)
    return [
        10 * z,
        2 * opening,
        *(float(Atom(name) in state) for name in nullary),
        *(float(Atom(name) in goal) for name in nullary),
    ]


def encode_object(
    domain: Domain, slots: Slots, observation: Observation, state: Facts, goal: Facts, name: str, position: int
) -> Vector:
    row = slots.names.index(name)
    features = observation["objects"][row]
    relative = [0.0, 0.0, 0.0]
    if "x" in FEATURES_OF[slots[row].type]:
        relative = [
            10 * (float(features[COLUMN[axis]]) - float(observation["agent"][i])) for i, axis in enumerate("xyz")
        ]
    unary = sorted(name for name, predicate in domain.predicates.items() if predicate.arity == 1)
    return [
        *relative,
        10 * float(features[COLUMN["travel"]]),
        *(float(Atom(predicate, (name,)) in state) for predicate in unary),
        *(float(Atom(predicate, (name,)) in goal) for predicate in unary),
        *one_hot(position, max(len(schema.parameters) for schema in domain.schemas.values())),
    ]


def one_hot(index: int, size: int) -> Vector:
    return [float(number == index) for number in range(size)]


def plus(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def maximum(vectors: Sequence[Vector], size: int) -> Vector:
    return [max((vector[number] for vector in vectors), default=0.0) for number in range(size)]


def relu(vector: Vector) -> Vector:
    return [max(0.0, number) for number in vector]

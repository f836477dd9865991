"""Encoding and network as they are defined, one number at a time: slow, obvious, and the judge of the fast ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tasks.scene import Array, Scene, Thing
from bilevel.tasks.spec import Angle, LabelOnly, Position, Role, Scalar

Vector = list[float]


def slow_outputs(
    domain: Domain, rounds: int, weights: Mapping[str, Array], scene: Scene, state: Facts, goal: Facts, action: Action
) -> Vector:
    """What the network puts out."""

    def layer(name: str, inputs: Vector) -> Vector:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [
            float(shift) + sum(number * float(w) for number, w in zip(inputs, row, strict=True))
            for row, shift in zip(weight, bias, strict=True)
        ]

    def scaled(node: str, numbers: Vector) -> Vector:
        return [number * float(scale) for number, scale in zip(numbers, weights[f"{node}_scale"], strict=True)]

    hidden = len(weights["readout.0.bias"])
    h_global = layer("embed.global", scaled("global", encode_global(domain, scene, state, goal)))
    h_action = layer("embed.action", one_hot(sorted(domain.schemas).index(action.name), len(domain.schemas)))
    h_objects = [
        layer("embed.object", scaled("object", encode_argument(domain, scene, state, goal, name, position)))
        for position, name in enumerate(action.arguments)
    ]
    for number in range(rounds):
        most = maximum(h_objects, hidden)
        new_global = relu(layer(f"rounds.{number}.global", plus(h_global, h_action, most)))
        new_action = relu(layer(f"rounds.{number}.action", plus(new_global, h_action, most)))
        h_objects = [relu(layer(f"rounds.{number}.object", plus(new_global, h_action, h))) for h in h_objects]
        h_global, h_action = new_global, new_action
    return layer("readout.2", relu(layer("readout.0", plus(h_global, h_action, maximum(h_objects, hidden)))))


def encode_global(domain: Domain, scene: Scene, state: Facts, goal: Facts) -> Vector:
    """The agent: numbers that are told as they are, then angles; and the facts without arguments."""
    roles = {name: role for name, role in scene.spec.agent_roles.items() if not isinstance(role, LabelOnly)}
    plain = [
        scene.agent[name]
        for name, role in roles.items()
        if isinstance(role, Scalar) or (isinstance(role, Position) and role.absolute)
    ]
    angles = [
        function(role.symmetry * scene.agent[name])
        for name, role in roles.items()
        if isinstance(role, Angle)
        for function in (math.sin, math.cos)
    ]
    nullary = sorted(name for name, predicate in domain.predicates.items() if not predicate.parameters)
    return plain + angles + [float(Atom(name) in facts) for facts in (state, goal) for name in nullary]


def encode_argument(domain: Domain, scene: Scene, state: Facts, goal: Facts, name: str, position: int) -> Vector:
    """An object that the action names: what is seen of it, the facts about it alone, and which argument it is."""
    unary = sorted(name for name, predicate in domain.predicates.items() if len(predicate.parameters) == 1)
    arity = max([1, *(len(schema.parameters) for schema in domain.schemas.values())])
    facts = [float(Atom(predicate, (name,)) in facts) for facts in (state, goal) for predicate in unary]
    return encode_features(scene, name) + facts + one_hot(position, arity)


def encode_features(scene: Scene, name: str) -> Vector:
    """All features in their roles, with zeros for those that are not of the object's type, or that cannot be seen."""
    told = list(
        dict.fromkeys(
            (feature, role)
            for features in scene.spec.object_roles.values()
            for feature, role in features.items()
            if not isinstance(role, LabelOnly)
        )
    )
    own = scene.spec.object_roles[scene[name].type] if name in scene else {}
    numbers: Vector = []
    for feature, role in told:
        if own.get(feature) == role:
            numbers += encode_feature(scene, scene[name], feature, role)
        else:
            two = isinstance(role, Angle) or (isinstance(role, Position) and role.absolute)
            numbers += [0.0, 0.0] if two else [0.0]
    return numbers


def encode_feature(scene: Scene, thing: Thing, feature: str, role: Role) -> Vector:
    if isinstance(role, Position):
        return [relative(scene, thing, feature, role), *([thing[feature]] if role.absolute else [])]
    if isinstance(role, Angle):
        turned = thing[feature] - (scene.agent[feature] if feature in scene.spec.agent else 0.0)
        return [math.sin(role.symmetry * turned), math.cos(role.symmetry * turned)]
    return [thing[feature]]


def relative(scene: Scene, thing: Thing, feature: str, role: Position) -> float:
    """How far a coordinate is from the agent's; in a frame, how far ahead the thing is, or how far to the left."""
    frame = scene.spec.frame
    if frame is None or feature not in frame[:2]:
        return thing[feature] - scene.agent[role.along or feature]
    dx, dy = (thing[axis] - scene.agent[axis] for axis in frame[:2])
    heading = scene.agent[frame[2]]
    direction = (math.cos(heading), math.sin(heading))
    if feature == frame[0]:
        return dx * direction[0] + dy * direction[1]
    return dy * direction[0] - dx * direction[1]


def one_hot(index: int, size: int) -> Vector:
    return [float(number == index) for number in range(size)]


def plus(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def maximum(vectors: Sequence[Vector], size: int) -> Vector:
    return [max((vector[number] for vector in vectors), default=0.0) for number in range(size)]


def relu(vector: Vector) -> Vector:
    return [max(0.0, number) for number in vector]

"""Encoding and network as they are defined, one number at a time: slow, obvious, and the judge of the fast ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bilevel.lowlevel.encoding import ObjectLink
from bilevel.symbolic.domain import Action, Atom, Domain, Facts
from bilevel.tasks.scene import Array, Scene, Thing
from bilevel.tasks.spec import Angle, LabelOnly, Position, Role, Scalar

Vector = list[float]


def slow_outputs(
    domain: Domain,
    rounds: int,
    weights: Mapping[str, Array],
    scene: Scene,
    state: Facts,
    goal: Facts,
    action: Action,
    links: Sequence[ObjectLink] = (),
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
    schema = sorted(domain.schemas).index(action.name)
    kinds, arity = sorted({link.of for link in links}), arity_of(domain)
    arguments = [
        scaled("object", encode_argument(domain, scene, state, goal, name, position, kinds))
        for position, name in enumerate(action.arguments)
    ]
    others = [
        scaled("object", encode_neighbour(domain, scene, state, goal, name, kinds))
        for name in neighbours(domain, links, scene, state, action)
    ]
    if others:

        def score(numbers: Vector) -> float:
            query = [float(number) for number in weights["query"][schema]]
            return dot(relu(plus(layer("key", numbers), query)), weights["score"].tolist())

        parameters = [parameter.name for parameter in domain.schemas[action.name].parameters]
        for place in {parameters.index(link.instead) for link in links if link.action == action.name}:
            numbers = arguments[place]
            shares = [math.exp(score(each)) for each in (numbers, *others)]
            mean = [dot(shares, column) / sum(shares) for column in zip(numbers, *others, strict=True)]
            arguments[place] = mean[:-arity] + numbers[-arity:]
    h_objects = [layer("embed.object", numbers) for numbers in arguments]
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


def encode_argument(
    domain: Domain, scene: Scene, state: Facts, goal: Facts, name: str, position: int, kinds: Sequence[str] = ()
) -> Vector:
    """An object that the action names: what is seen of it, the facts about it alone, and which argument it is."""
    own = encode_features(scene, name) + encode_facts(domain, state, goal, name)
    return own + [0.0] * len(kinds) + one_hot(position, arity_of(domain))


def encode_neighbour(
    domain: Domain, scene: Scene, state: Facts, goal: Facts, name: str, kinds: Sequence[str]
) -> Vector:
    """Another object: the same, but of which type it is."""
    own = encode_features(scene, name) + encode_facts(domain, state, goal, name)
    return own + [float(scene[name].type == kind) for kind in kinds] + [0.0] * arity_of(domain)


def encode_facts(domain: Domain, state: Facts, goal: Facts, name: str) -> Vector:
    unary = sorted(name for name, predicate in domain.predicates.items() if len(predicate.parameters) == 1)
    return [float(Atom(predicate, (name,)) in facts) for facts in (state, goal) for predicate in unary]


def arity_of(domain: Domain) -> int:
    return max([1, *(len(schema.parameters) for schema in domain.schemas.values())])


def neighbours(domain: Domain, links: Sequence[ObjectLink], scene: Scene, state: Facts, action: Action) -> set[str]:
    """The objects that any link leads to; those that a way of short enough steps leads to, where that is asked for."""
    found: set[str] = set()
    for link in (link for link in links if link.action == action.name):
        parameters = [parameter.name for parameter in domain.schemas[action.name].parameters]
        argument = action.arguments[parameters.index(link.argument)]
        linked = {
            name
            for name in scene.objects
            if any(fact.predicate == link.sharing and {argument, name} <= {*fact.terms} for fact in state)
            and name not in action.arguments
            and scene[name].type == link.of
            and all(Atom(predicate, (name,)) in state for predicate in link.where)
            and all(Atom(predicate, (argument,)) in state for predicate in link.given)
        }
        found |= linked if link.within is None else reached(scene, action, linked, link.within)
    return found


def reached(scene: Scene, action: Action, names: set[str], within: float) -> set[str]:
    """Those to which a way leads from an argument in steps that are short enough; what has no place is near."""

    def place(name: str) -> Vector | None:
        roles = scene.spec.object_roles[scene[name].type]
        has = [isinstance(roles.get(axis), Position) for axis in "xy"]
        return [scene[name][axis] for axis, one in zip("xy", has, strict=True) if one] if all(has) else None

    near = {name for name in names if place(name) is None}
    here = [where for name in action.arguments if name in scene and (where := place(name))]
    for _ in names:
        close = {name for name in names - near if any(math.dist(place(name) or [], where) <= within for where in here)}
        near |= close
        here += [place(name) or [] for name in close]
    return near


def dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


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

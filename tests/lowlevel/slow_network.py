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
    instead, kinds = seen_instead(domain, links, scene, state, action), sorted({link.of for link in links})
    arguments = [
        scaled(
            "object", encode_object(domain, scene, state, goal, action, instead.get(position, name), position, kinds)
        )
        for position, name in enumerate(action.arguments)
    ]
    arguments += [
        scaled("object", encode_object(domain, scene, state, goal, action, name, None, kinds))
        for name in nearest(links, scene, action)
    ]
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


def encode_object(
    domain: Domain,
    scene: Scene,
    state: Facts,
    goal: Facts,
    action: Action,
    name: str,
    position: int | None,
    kinds: Sequence[str],
) -> Vector:
    """What is seen of it, the facts about it alone, of which type it is if it is not named, which argument it is."""
    own = encode_features(scene, name) + encode_facts(domain, state, goal, name)
    other = [float(name not in action.arguments and name in scene and scene[name].type == kind) for kind in kinds]
    return own + other + [float(position == number) for number in range(arity_of(domain))]


def encode_facts(domain: Domain, state: Facts, goal: Facts, name: str) -> Vector:
    unary = sorted(name for name, predicate in domain.predicates.items() if len(predicate.parameters) == 1)
    return [float(Atom(predicate, (name,)) in facts) for facts in (state, goal) for predicate in unary]


def arity_of(domain: Domain) -> int:
    return max([1, *(len(schema.parameters) for schema in domain.schemas.values())])


def seen_instead(
    domain: Domain, links: Sequence[ObjectLink], scene: Scene, state: Facts, action: Action
) -> dict[int, str]:
    """What is seen in the places of arguments: of what a way of short enough steps leads to the farthest."""
    found: dict[int, str] = {}
    for link in (link for link in links if link.action == action.name and link.sharing):
        parameters = [parameter.name for parameter in domain.schemas[action.name].parameters]
        argument, replaced = parameters.index(link.argument), parameters.index(link.instead)
        linked = {
            name
            for name in scene.objects
            if any(
                fact.predicate == link.sharing and {action.arguments[argument], name} <= {*fact.terms} for fact in state
            )
            and name not in action.arguments
            and scene[name].type == link.of
            and all(Atom(predicate, (name,)) in state for predicate in link.where)
            and all(Atom(predicate, (action.arguments[argument],)) in state for predicate in link.given)
        }
        row = linked if link.within is None else reached(scene, action.arguments[replaced], linked, link)
        if row:
            start = place(scene, action.arguments[replaced])

            def far(name: str, start: Vector | None = start) -> float:
                here = place(scene, name)
                return math.dist(here, start) if here and start else 0.0

            found[replaced] = max(sorted(row), key=lambda name: (far(name), name))
    return found


def nearest(links: Sequence[ObjectLink], scene: Scene, action: Action) -> list[str]:
    """What is nearest to the agent, if it is near enough; in coordinates that it has."""
    found: list[str] = []
    for link in (link for link in links if link.action == action.name and not link.sharing and action.arguments):
        roles = scene.spec.object_roles[link.of]
        axes = [name for name, role in roles.items() if isinstance(role, Position) and role.along is None]
        apart = {
            name: math.dist([scene[name][axis] for axis in axes], [scene.agent[axis] for axis in axes])
            for name in scene.roster.of_type(link.of)
            if name not in action.arguments
        }
        near = {name: distance for name, distance in apart.items() if link.within is None or distance <= link.within}
        found += [min(near, key=lambda name: near[name])] if near else []
    return found


def place(scene: Scene, name: str) -> Vector | None:
    """Where something is, if it is seen and has both coordinates that anything has."""
    roles = scene.spec.object_roles[scene[name].type] if name in scene else {}
    known = {axis for kind in scene.spec.object_roles.values() for axis in "xy" if axis in kind}
    return [scene[name][axis] for axis in sorted(known)] if known and known <= roles.keys() else None


def reached(scene: Scene, start: str, names: set[str], link: ObjectLink) -> set[str]:
    """Those to which a way leads from an argument in steps that are short enough; what has no place is near."""
    assert link.within is not None
    places = {name: here for name in names if (here := place(scene, name))}
    begin, near = place(scene, start), dict[str, Vector]()
    for _ in names:
        for name, here in places.items():
            is_first = begin and math.dist(here, begin) <= (link.first or link.within)
            if is_first or any(math.dist(here, other) <= link.within for other in near.values()):
                near[name] = here
    return {*near, *names - {*places}}


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

"""The end-to-end network as it is defined, one node, edge and number at a time: slow, obvious, and the judge."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, sin
from typing import NamedTuple

from bilevel.lowlevel.numpy_network import Weights
from bilevel.symbolic.domain import NO_FACTS, Atom, Domain, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Angle, LabelOnly, Position, Scalar, Spec

Vector = list[float]

SPEC = Spec(
    agent={"x": Position, "y": Position, "z": Position(absolute=True), "opening": Scalar, "mood": LabelOnly},
    objects={
        "block": {"x": Position, "y": Position, "z": Position, "red": LabelOnly, "serial": LabelOnly(None)},
        "tray": {"x": Position, "y": Position, "yaw": Angle(symmetry=2), "end": LabelOnly(Position(along="x"))},
        "button": {"travel": Scalar},
    },
)


class Question(NamedTuple):
    """What a network is asked."""

    domain: Domain
    scene: Scene
    state: Facts
    goal: Facts
    has_facts: bool = True

    @property
    def without_facts(self) -> Question:
        return Question(Domain("", {}, {}, self.domain.types), self.scene, NO_FACTS, NO_FACTS, has_facts=False)

    def predicates(self, least: int, most: int) -> list[str]:
        return sorted(name for name, p in self.domain.predicates.items() if least <= len(p.parameters) <= most)

    @property
    def facts(self) -> list[Atom]:
        """Those that have nodes."""
        return [fact for fact in self.state | self.goal if len(fact.terms) >= 2]

    def holds(self, predicates: Sequence[str], *terms: str) -> Vector:
        return [float(Atom(name, terms) in facts) for facts in (self.state, self.goal) for name in predicates]


def slow_outputs(asked: Question, weights: Weights, hidden: int, rounds: int) -> Vector:
    """What the network puts out."""

    def layer(name: str, inputs: Vector) -> Vector:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        assert len(inputs) == weight.shape[1]
        return [
            float(bias[out]) + sum(x * float(weight[out, number]) for number, x in enumerate(inputs))
            for out in range(len(bias))
        ]

    agent_scale, object_scale = (list(map(float, weights[f"{name}_scale"])) for name in ("agent", "object"))
    arity = max((len(asked.domain.predicates[name].parameters) for name in asked.predicates(2, 99)), default=0)
    g = layer("embed.global", global_features(asked, agent_scale))
    objects = {o: layer("embed.object", object_features(asked, o, object_scale)) for o in asked.scene.objects}
    facts = {fact: layer("embed.fact", fact_features(asked, fact)) for fact in asked.facts}
    for number in range(rounds):
        messages = {fact: layer(f"rounds.{number}.fact_to_object", h) for fact, h in facts.items()}
        new_objects, new_facts = {}, {}
        for name, h in objects.items():
            total = plus(layer(f"rounds.{number}.object", h), layer(f"rounds.{number}.global_to_object", g))
            for j in range(arity):
                about = [f for f in facts if len(f.terms) > j and f.terms[j] == name]
                total = plus(total, maximum([messages[f][j * hidden : (j + 1) * hidden] for f in about], hidden))
            new_objects[name] = relu(total)
        for fact, h in facts.items():
            inputs = list(h)
            for j in range(arity):
                inputs += objects.get(fact.terms[j], [0.0] * hidden) if len(fact.terms) > j else [0.0] * hidden
            told = layer(f"rounds.{number}.global_to_fact", g)
            new_facts[fact] = relu(plus(layer(f"rounds.{number}.fact", inputs), told))
        objects, facts = new_objects, new_facts
        from_objects = maximum([layer(f"rounds.{number}.object_to_global", h) for h in objects.values()], hidden)
        from_facts = maximum([layer(f"rounds.{number}.fact_to_global", h) for h in facts.values()], hidden)
        g = relu(plus(layer(f"rounds.{number}.global", g), from_objects, from_facts))
    total = plus(g, maximum([*objects.values()], hidden), maximum([*facts.values()], hidden))
    return layer("readout.2", relu(layer("readout.0", total)))


def global_features(asked: Question, scale: Vector) -> Vector:
    agent = asked.scene.agent
    seen = [agent.z, agent.opening, *([] if asked.has_facts else [agent.mood])]
    return [*scaled(seen, scale), *asked.holds(asked.predicates(0, 0))]


def object_features(asked: Question, name: str, scale: Vector) -> Vector:
    agent, thing, without_facts = asked.scene.agent, asked.scene[name], not asked.has_facts
    block, tray, button = (thing.type == kind for kind in ("block", "tray", "button"))
    seen = [
        0.0 if button else thing.x - agent.x,
        0.0 if button else thing.y - agent.y,
        thing.z - agent.z if block else 0.0,
        *([thing.red if block else 0.0] if without_facts else []),
        sin(2 * thing.yaw) if tray else 0.0,
        cos(2 * thing.yaw) if tray else 0.0,
        *([thing.end - agent.x if tray else 0.0] if without_facts else []),
        thing.travel if button else 0.0,
    ]
    alike = [other for other, kind in asked.scene.objects.items() if kind == thing.type]
    return [
        *scaled(seen, scale),
        sum(other < name for other in alike) / len(alike),
        *(float(thing.type == kind) for kind in ("block", "button", "tray")),
        *asked.holds(asked.predicates(1, 1), name),
    ]


def fact_features(asked: Question, fact: Atom) -> Vector:
    one_hot = [float(fact.predicate == name) for name in asked.predicates(2, 99)]
    return [float(fact in asked.state), float(fact in asked.goal), *one_hot]


def scaled(numbers: Vector, scale: Vector) -> Vector:
    return [number * by for number, by in zip(numbers, scale, strict=True)]


def plus(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def maximum(vectors: Sequence[Vector], size: int) -> Vector:
    return [max((vector[number] for vector in vectors), default=0.0) for number in range(size)]


def relu(vector: Vector) -> Vector:
    return [max(0.0, number) for number in vector]

"""The end-to-end network as it is defined, one node, edge and number at a time: slow, obvious, and the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bilevel.lowlevel.architecture import Weights
from bilevel.symbolic.domain import NO_FACTS, Atom, Domain, Facts
from bilevel.tabletop.observation import COLUMN, FEATURES_OF, Observation, Slots, visible_objects

Vector = list[float]


class Question(NamedTuple):
    """What a network is asked."""

    domain: Domain
    slots: Slots
    observation: Observation
    state: Facts
    goal: Facts

    @property
    def without_facts(self) -> Question:
        return self._replace(domain=Domain("", {}, {}, self.domain.types), state=NO_FACTS, goal=NO_FACTS)

    def predicates(self, least: int, most: int) -> list[str]:
        return sorted(name for name, p in self.domain.predicates.items() if least <= p.arity <= most)

    @property
    def facts(self) -> list[Atom]:
        """Those that have nodes."""
        return [fact for fact in self.state | self.goal if len(fact.terms) >= 2]


def slow_control(asked: Question, weights: Weights, hidden: int, rounds: int) -> Vector:
    """The control, not clipped."""

    def layer(name: str, inputs: Vector) -> Vector:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        assert len(inputs) == len(weight)
        return [
            float(bias[out]) + sum(x * float(weight[number, out]) for number, x in enumerate(inputs))
            for out in range(len(bias))
        ]

    arity = max((asked.domain.predicates[name].arity for name in asked.predicates(2, 99)), default=0)
    g = layer("global.0", global_features(asked))
    objects = {o: layer("object.0", object_features(asked, o)) for o in visible_objects(asked.slots, asked.observation)}
    facts = {fact: layer("fact.0", fact_features(asked, fact)) for fact in asked.facts}
    for number in range(1, rounds + 1):
        messages = {fact: layer(f"fact-to-object.{number}", h) for fact, h in facts.items()}
        new_objects, new_facts = {}, {}
        for name, h in objects.items():
            total = plus(layer(f"object.{number}", h), layer(f"global-to-object.{number}", g))
            for j in range(arity):
                about = [f for f in facts if len(f.terms) > j and f.terms[j] == name]
                total = plus(total, maximum([messages[f][j * hidden : (j + 1) * hidden] for f in about], hidden))
            new_objects[name] = relu(total)
        for fact, h in facts.items():
            inputs = list(h)
            for j in range(arity):
                inputs += objects[fact.terms[j]] if len(fact.terms) > j else [0.0] * hidden
            new_facts[fact] = relu(plus(layer(f"fact.{number}", inputs), layer(f"global-to-fact.{number}", g)))
        objects, facts = new_objects, new_facts
        from_objects = maximum([layer(f"object-to-global.{number}", h) for h in objects.values()], hidden)
        from_facts = maximum([layer(f"fact-to-global.{number}", h) for h in facts.values()], hidden)
        g = relu(plus(layer(f"global.{number}", g), from_objects, from_facts))
    total = plus(g, maximum([*objects.values()], hidden), maximum([*facts.values()], hidden))
    return layer("readout.1", relu(layer("readout.0", total)))


def global_features(asked: Question) -> Vector:
    _, _, z, opening = map(float, asked.observation["agent"])
    nullary = asked.predicates(0, 0)
    return [10 * z, 2 * opening, *(float(Atom(name) in facts) for facts in asked[-2:] for name in nullary)]


def object_features(asked: Question, name: str) -> Vector:
    row = asked.slots.find(name, asked.observation)
    type_name = asked.slots[row].type
    seen: Mapping[str, float] = {
        feature: float(asked.observation["objects"][row, COLUMN[feature]]) for feature in FEATURES_OF[type_name]
    }
    x, y, z = map(float, asked.observation["agent"][:3])
    types = sorted(set(asked.domain.types) & set(FEATURES_OF))
    alike = [o for o, kind in visible_objects(asked.slots, asked.observation).items() if kind == type_name]
    return [
        *(10 * (seen[axis] - here) if axis in seen else 0.0 for axis, here in (("x", x), ("y", y), ("z", z))),
        10 * seen.get("travel", 0.0),
        *(10 * (seen[end] - x) if end in seen else 0.0 for end in ("start", "end")),
        *(seen.get(feature, 0.0) for feature in ([] if asked.domain.predicates else ["red", "green", "blue"])),
        seen.get("wanted", 0.0),
        sum(other < name for other in alike) / len(alike),
        *(float(type_name == other) for other in types),
        *(float(Atom(predicate, (name,)) in facts) for facts in asked[-2:] for predicate in asked.predicates(1, 1)),
    ]


def fact_features(asked: Question, fact: Atom) -> Vector:
    one_hot = [float(fact.predicate == name) for name in asked.predicates(2, 99)]
    return [float(fact in asked.state), float(fact in asked.goal), *one_hot]


def plus(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def maximum(vectors: Sequence[Vector], size: int) -> Vector:
    return [max((vector[number] for vector in vectors), default=0.0) for number in range(size)]


def relu(vector: Vector) -> Vector:
    return [max(0.0, number) for number in vector]

"""What an end-to-end network is told: all that is seen, and all facts or none, as a graph.

There is a global node with the agent, a node for each object, and one for each fact of the state or the goal with two
arguments or more, with an edge to each of its arguments. Facts about one object alone stand in its node, facts about
nothing in the global node.

Features are told in the roles of the spec. `LabelOnly` ones, such as colours and where a tray ends, are told only to a
network that has no facts: for the other one, the facts say all that is to be known of them, and with more objects there
are colours that no demonstration shows. The order of names is told to both: of objects that are alike an expert takes
the first by name, and a network that cannot tell which one that is learns to go between them. It is told as a share of
all objects of the type, from 0 to 1: with more objects a number would be one that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import FeatureEncoder, ImitationSamples, Situation
from bilevel.symbolic.domain import NO_FACTS, BadInput, Domain, Facts
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Mirror, Spec, Symmetry

NOTHING = 0  # instead of an object, for an argument that is not seen, or that a fact does not have

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Structure:
    """The part of a graph that stays the same for as long as no object comes or goes and no fact changes."""

    globals: Array  # (2 * nullary,)
    objects: Array  # (objects, about size)
    facts: Array  # (facts, fact size)
    arguments: Rows  # (facts, arity): the objects that a fact is about, counted from 1 on, or nothing


@dataclass(frozen=True)
class GraphEncoding:
    """Which number stands where."""

    spec: Spec
    has_facts: bool
    nullary: tuple[str, ...]  # predicates, by the number of their arguments; none for a network without facts
    unary: tuple[str, ...]
    relations: tuple[str, ...]  # with two or more
    arity: int  # of the relation with the most arguments, 0 where there are none
    symmetries: tuple[Symmetry, ...] = ()  # that hold whatever is being done, which the network is not told

    @cached_property
    def features(self) -> FeatureEncoder:
        """What turns a scene into numbers; without facts, those for labels are told, too."""
        return FeatureEncoder(self.spec, label_only=not self.has_facts)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Those of objects."""
        return tuple(sorted(self.spec.objects))

    @property
    def symbols(self) -> dict[str, Any]:
        """The symbols that a network is told of."""
        names = {name: list(getattr(self, name)) for name in ("types", "nullary", "unary", "relations")}
        return {**names, "arity": self.arity}

    @property
    def global_size(self) -> int:
        """How many numbers the global node is told."""
        return self.features.agent_size + 2 * len(self.nullary)

    @property
    def about_size(self) -> int:
        """Of what a structure says about an object: its place among the names, its type, and the facts."""
        return 1 + len(self.types) + 2 * len(self.unary)

    @property
    def object_size(self) -> int:
        """How many numbers an object's node is told."""
        return self.features.object_size + self.about_size

    @property
    def fact_size(self) -> int:
        """How many numbers a fact's node is told: whether it holds, whether it is wanted, and its predicate."""
        return 2 + len(self.relations)

    def known(self, state: Facts, goal: Facts) -> tuple[Facts, Facts]:
        """What the network knows of state and goal."""
        return (state, goal) if self.has_facts else (NO_FACTS, NO_FACTS)

    def structure(self, objects: Mapping[str, str], state: Facts, goal: Facts) -> Structure:
        """Encode which objects are seen, with their types, and the facts."""
        state, goal = self.known(state, goal)
        places = _places(objects)
        about = [
            [
                places[name],
                *(kind == other for other in self.types),
                *((predicate, (name,)) in facts for facts in (state, goal) for predicate in self.unary),
            ]
            for name, kind in objects.items()
        ]
        number = {name: row + 1 for row, name in enumerate(objects)}
        related = sorted(fact for fact in state | goal if fact.predicate in self.relations)
        arguments = np.full((len(related), self.arity), NOTHING, np.int64)
        for row, fact in enumerate(related):
            arguments[row, : len(fact.terms)] = [number.get(name, NOTHING) for name in fact.terms]
        facts = [
            [fact in state, fact in goal, *(fact.predicate == name for name in self.relations)] for fact in related
        ]
        return Structure(
            globals=np.array([(name, ()) in f for f in (state, goal) for name in self.nullary], np.float32),
            objects=np.array(about, np.float32).reshape(-1, self.about_size),
            facts=np.array(facts, np.float32).reshape(-1, self.fact_size),
            arguments=arguments,
        )

    def for_spec(self, spec: Spec) -> GraphEncoding:
        """The same encoding for scenes of a spec that has the same features to tell; `BadInput` for any other."""
        if spec is self.spec:
            return self
        found = replace(self, spec=spec)
        if (found.types, found.features.told) != (self.types, self.features.told):
            raise BadInput(
                "the scenes have other features, or in other roles, than those that the network was trained on"
            )
        return found


def _places(objects: Mapping[str, str]) -> dict[str, float]:
    """For objects and their types, which share of all objects of its type comes before each by name."""
    members: dict[str, list[str]] = {}
    for name in sorted(objects):
        members.setdefault(objects[name], []).append(name)
    return {name: place / len(names) for names in members.values() for place, name in enumerate(names)}


def encoding_with_facts(domain: Domain, spec: Spec) -> GraphEncoding:
    """Return what a network is told that sees facts and goals."""
    arities = {name: len(domain.predicates[name].parameters) for name in sorted(domain.predicates)}
    nullary, unary = (tuple(name for name, arity in arities.items() if arity == count) for count in (0, 1))
    related = {name: arity for name, arity in arities.items() if arity > 1}
    arity = max(related.values(), default=0)
    return GraphEncoding(spec, True, nullary, unary, tuple(related), arity, _symmetries(domain, spec))


def encoding_without_facts(domain: Domain, spec: Spec) -> GraphEncoding:
    """Return what a network is told that sees features alone."""
    mirrors = tuple(symmetry for symmetry in _symmetries(domain, spec) if isinstance(symmetry, Mirror))
    return GraphEncoding(spec, False, (), (), (), 0, mirrors)  # nothing says how `LabelOnly` features would be swapped


def _symmetries(domain: Domain, spec: Spec) -> tuple[Symmetry, ...]:
    return tuple(symmetry for symmetry in spec.symmetries if domain.schemas.keys().isdisjoint(symmetry.except_for))


# The end-to-end methods, and what each of them is told.
ENCODINGS: Mapping[str, Callable[[Domain, Spec], GraphEncoding]] = {
    "pure-nn": encoding_without_facts,
    "pddl-nn": encoding_with_facts,
}


# What the network learns from


@dataclass(frozen=True)
class GraphSamples(ImitationSamples):
    """One row per step, and one per structure, which many steps share. There are zeros where a graph is smaller."""

    agents: Array  # (steps, agent size)
    features: Array  # (steps, most objects, feature size)
    structure: Rows  # (steps,): the number of the structure

    globals: Array  # (structures, 2 * nullary)
    objects: Array  # (structures, most objects, about size)
    facts: Array  # (structures, most facts, fact size)
    arguments: Rows  # (structures, most facts, arity)
    counts: Rows  # (structures, 2): how many objects and facts there are

    def where(self, chosen: NDArray[np.bool_]) -> GraphSamples:
        return replace(self, **{name: getattr(self, name)[chosen] for name in PER_STEP})

    @classmethod
    def concatenate(cls, parts: Sequence[GraphSamples]) -> GraphSamples:
        firsts = np.cumsum([0, *(len(part.counts) for part in parts)]).tolist()
        moved = [replace(part, structure=part.structure + first) for part, first in zip(parts, firsts, strict=False)]
        return cls(*(_stacked(arrays) for arrays in zip(*(part.arrays() for part in moved), strict=True)))


PER_STEP = ("agents", "features", "targets", "episodes", "structure")


def _stacked(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one after the other, those that are shorter along their second axis filled up with zeros."""
    if arrays[0].ndim < 3:
        return np.concatenate(arrays)
    most = max(array.shape[1] for array in arrays)
    return np.concatenate([np.pad(array, ((0, 0), (0, most - array.shape[1]), (0, 0))) for array in arrays])


def encode_graphs(
    encoding: GraphEncoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> GraphSamples:
    """The samples of one episode. Structures come back, so each is encoded once."""
    known: dict[object, int] = {}
    structures = [encoding.structure({}, NO_FACTS, NO_FACTS)]  # so that there is one; it is dropped in the end
    structure = np.zeros(len(scenes), np.int64)
    for step, (scene, (state, goal, _)) in enumerate(zip(scenes, situations, strict=True)):
        key = *encoding.known(state, goal), tuple(scene.objects.items())
        if key not in known:
            known[key] = len(known)
            structures.append(encoding.structure(scene.objects, state, goal))
        structure[step] = known[key]
    values = np.array([scene.values for scene in scenes], np.float32).reshape(-1, len(encoding.spec.agent))
    counts = [(len(part.objects), len(part.facts)) for part in structures]
    return GraphSamples(
        agents=encoding.features.agent(values),
        features=_features(encoding.features, scenes, values, structure),
        targets=targets,
        episodes=np.full(len(scenes), number),
        structure=structure,
        counts=np.array(counts, np.int64)[1:],
        **{
            field.name: _stacked([getattr(part, field.name)[None] for part in structures])[1:]
            for field in fields(Structure)
        },
    )


def _features(told: FeatureEncoder, scenes: Sequence[Scene], values: Array, structure: Rows) -> Array:
    """(steps, most objects, feature size): for all steps of a structure at once, as they show the same objects."""
    most = max((len(scene.objects) for scene in scenes), default=0)
    features = np.zeros((len(scenes), most, told.object_size), np.float32)
    for number in np.unique(structure):
        steps = np.flatnonzero(structure == number).tolist()
        objects = scenes[steps[0]].objects
        seen = np.stack([scenes[step].features for step in steps])
        features[steps, : len(objects)] = told.objects(values[steps], seen, told.mask(list(objects.values())))
    return features

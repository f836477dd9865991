"""What an end-to-end network is told: all that is seen, and all facts or none, as a graph.

There is a global node with the hand, a node for each object, and one for each fact of the state or the goal with two
arguments or more, with an edge to each of its arguments. Facts about one object alone stand in its node, facts about
nothing in the global node. Part of that changes at every step, most of it rarely: this is the scene.

Positions are relative to the hand and in decimetres, as in `lowlevel.encoding`. Serial numbers and where on the table
the hand is are left out: what is to be done never depends on them. Colours are told only to a network that has no
facts, as they alone say what belongs where: one that has facts does better without, because with more objects there are
colours that no demonstration shows. The order of names is told to both: of blocks that are alike an expert takes the
first by name, and a network that cannot tell which one that is learns to go between them. It is told as a share of all
objects of the type, from 0 to 1: with more objects a number would be one that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import AGENT_SIZE, PER_METRE
from bilevel.symbolic.domain import NO_FACTS, Domain, Facts
from bilevel.tabletop.observation import (
    FEATURES_OF,
    POSITION,
    RGB,
    SERIAL,
    SPAN,
    TRAVEL,
    WANTED,
    Array,
    Bools,
    Observation,
    Slots,
    object_name,
)

MOVING_SIZE = 6  # an object's position relative to the hand, how far it has travelled, and a tray's two ends
LOOK_SIZE = 2  # whether it is wanted, and its place in the order of names
COLOUR_SIZE = 3

NOWHERE = -1  # instead of a row, for an argument that is not seen, or that a fact does not have

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Scene:
    """What changes rarely: how things look, and the facts. Objects stand in the rows of their slots."""

    visible: Bools  # (slots,)
    globals: Array  # (2 * nullary,)
    objects: Array  # (slots, scene size); zeros where nothing is visible
    facts: Array  # (facts, fact size)
    arguments: Rows  # (facts, arity): the rows of a fact's arguments, or nowhere


@dataclass(frozen=True)
class GraphEncoding:
    """Which number stands where."""

    types: tuple[str, ...]  # of objects
    nullary: tuple[str, ...]  # predicates, by the number of their arguments; none for a network without facts
    unary: tuple[str, ...]
    relations: tuple[str, ...]  # with two or more
    arity: int  # of the relation with the most arguments, 0 where there are none

    @property
    def has_facts(self) -> bool:
        return bool(self.nullary or self.unary or self.relations)

    @property
    def global_size(self) -> int:
        return AGENT_SIZE + 2 * len(self.nullary)

    @property
    def scene_size(self) -> int:
        """Of what a scene says about an object."""
        return LOOK_SIZE + (0 if self.has_facts else COLOUR_SIZE) + len(self.types) + 2 * len(self.unary)

    @property
    def object_size(self) -> int:
        return MOVING_SIZE + self.scene_size

    @property
    def fact_size(self) -> int:
        return 2 + len(self.relations)

    def scene(self, slots: Slots, observation: Observation, state: Facts, goal: Facts) -> Scene:
        if not self.has_facts:
            state = goal = NO_FACTS
        visible = observation["visible"].astype(bool)
        row_of = {object_name(slots[row], observation["objects"][row]): row for row in np.flatnonzero(visible).tolist()}
        places = _places({name: slots[row].type for name, row in row_of.items()})
        objects = np.zeros((len(slots), self.scene_size), np.float32)
        for name, row in row_of.items():
            look = observation["objects"][row]
            objects[row] = [
                *(() if self.has_facts else look[RGB]),
                look[WANTED],
                places[name],
                *(slots[row].type == type_name for type_name in self.types),
                *((predicate, (name,)) in facts for facts in (state, goal) for predicate in self.unary),
            ]
        related = sorted(fact for fact in state | goal if fact.predicate in self.relations)
        arguments = np.full((len(related), self.arity), NOWHERE)
        for number, fact in enumerate(related):
            arguments[number, : len(fact.terms)] = [row_of.get(name, NOWHERE) for name in fact.terms]
        facts = [
            [fact in state, fact in goal, *(fact.predicate == name for name in self.relations)] for fact in related
        ]
        return Scene(
            visible=visible,
            globals=np.array([(name, ()) in f for f in (state, goal) for name in self.nullary], np.float32),
            objects=objects,
            facts=np.array(facts, np.float32).reshape(-1, self.fact_size),
            arguments=arguments,
        )


def _places(types: Mapping[str, str]) -> dict[str, float]:
    """For objects and their types, which share of all objects of its type comes before each by name."""
    members = {kind: sorted(name for name in types if types[name] == kind) for kind in types.values()}
    return {name: place / len(names) for names in members.values() for place, name in enumerate(names)}


def encoding_with_facts(domain: Domain) -> GraphEncoding:
    return _encoding(domain, {name: domain.predicates[name].arity for name in sorted(domain.predicates)})


def encoding_without_facts(domain: Domain) -> GraphEncoding:
    return _encoding(domain, {})


def _encoding(domain: Domain, arities: Mapping[str, int]) -> GraphEncoding:
    """With facts of the predicates that are given, with their arities."""
    nullary, unary = (tuple(name for name, arity in arities.items() if arity == count) for count in (0, 1))
    related = {name: arity for name, arity in arities.items() if arity > 1}
    types = tuple(sorted(name for name in domain.types if name in FEATURES_OF))
    return GraphEncoding(types, nullary, unary, tuple(related), max(related.values(), default=0))


# The end-to-end methods, and what each of them is told.
ENCODINGS: Mapping[str, Callable[[Domain], GraphEncoding]] = {
    "pure-nn": encoding_without_facts,
    "pddl-nn": encoding_with_facts,
}


class Movement:
    """What changes at every step, for objects in these slots."""

    def __init__(self, slots: Slots) -> None:
        def having(feature: str) -> Array:
            """(slots, 1)"""
            return np.array([[feature in FEATURES_OF[slot.type]] for slot in slots], np.float32)

        self._placed, self._extended = having("x"), having("start")

    def __call__(self, agent: Array, objects: Array, rows: Rows | slice = slice(None)) -> Array:
        """(..., rows, 6) of the hand, (..., 4), and of the objects in some rows of (..., slots, features)."""
        objects = objects[..., rows, :]
        states = np.empty((*objects.shape[:-1], MOVING_SIZE), np.float32)
        states[..., :3] = (objects[..., POSITION] - agent[..., None, :3]) * self._placed[rows]
        states[..., 3] = objects[..., TRAVEL]
        states[..., 4:] = (objects[..., SPAN] - agent[..., None, :1]) * self._extended[rows]
        states *= PER_METRE
        return states


def look(observation: Observation) -> bytes:
    """All that a scene depends on besides the facts: equal where the scenes are."""
    objects = observation["objects"]
    seen = objects[:, RGB].tobytes() + objects[:, WANTED].tobytes() + objects[:, SERIAL].tobytes()
    return observation["visible"].tobytes() + seen

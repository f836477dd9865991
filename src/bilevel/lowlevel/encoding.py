"""What the network is told: the hand, the action, and the objects that the action names, as numbers.

An encoding depends on the domain alone: on its predicates with no argument and with one, on its schemas, and on how
many arguments an action can have. Positions are relative to the hand and in decimetres: a network learns badly from
numbers as small as metres, and where on the table something happens plays no part. Colours are left out: what they mean
is among the facts, and with more objects there are colours that no demonstration shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.tabletop.observation import FEATURES_OF, POSITION, TRAVEL, Array, Slots

Row = TypeVar("Row")

PER_METRE = np.float32(10.0)
PER_OPENING = np.float32(2.0)
AGENT_SIZE = 2  # the hand's height and opening
STATE_SIZE = 4  # an object's position relative to the hand, and how far it has travelled


@dataclass(frozen=True)
class Encoding:
    """Which number stands where."""

    nullary: tuple[str, ...]
    unary: tuple[str, ...]
    schemas: tuple[str, ...]
    arity: int  # of the schema with the most parameters, but at least 1
    bare: tuple[str, ...] = ()  # the schemas without parameters

    @property
    def global_size(self) -> int:
        return AGENT_SIZE + 2 * len(self.nullary)

    @property
    def object_size(self) -> int:
        return STATE_SIZE + 2 * len(self.unary) + self.arity

    def global_facts(self, state: Facts, goal: Facts) -> Array:
        """(2 * nullary,): which facts without arguments hold, and which are wanted."""
        return np.array([(name, ()) in facts for facts in (state, goal) for name in self.nullary], np.float32)

    def object_facts(self, state: Facts, goal: Facts, action: Action) -> Array:
        """(arity, 2 * unary + arity): for each argument the facts about it alone, and which argument it is.

        There are no rows where the action has no arguments.
        """
        rows = [
            [(name, (argument,)) in facts for facts in (state, goal) for name in self.unary]
            + [index == position for index in range(self.arity)]
            for position, argument in enumerate(action.arguments)
        ]
        return np.array(self.padded(rows), np.float32).reshape(-1, self.object_size - STATE_SIZE)

    def padded(self, rows: Sequence[Row]) -> list[Row]:
        """One row for each argument that an action can have: the last again and again, which a maximum ignores.

        No rows stay none.
        """
        return [*rows, *list(rows[-1:]) * (self.arity - len(rows))]


def encoding_of(domain: Domain) -> Encoding:
    def with_arguments(count: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, p in domain.predicates.items() if len(p.parameters) == count))

    arities = {name: len(domain.schemas[name].parameters) for name in sorted(domain.schemas)}
    bare = tuple(name for name, arity in arities.items() if arity == 0)
    return Encoding(with_arguments(0), with_arguments(1), tuple(arities), max([1, *arities.values()]), bare)


def agent_state(agent: Array) -> Array:
    """(..., 2) of the hand, (..., 4)."""
    return np.stack([agent[..., 2] * PER_METRE, agent[..., 3] * PER_OPENING], axis=-1)


def object_states(agent: Array, objects: Array, placed: Array) -> Array:
    """(..., arity, 4) of the hand and of objects, (..., arity, features), of which some have a place, (arity,)."""
    states = np.empty((*objects.shape[:-1], STATE_SIZE), np.float32)
    states[..., :3] = (objects[..., POSITION] - agent[..., None, :3]) * placed[:, None]
    states[..., 3] = objects[..., TRAVEL]
    states *= PER_METRE
    return states


def placed_rows(slots: Slots) -> Array:
    """(slots,): 1 for what has a place, 0 for what has none, such as a colour."""
    return np.array(["x" in FEATURES_OF[slot.type] for slot in slots], np.float32)

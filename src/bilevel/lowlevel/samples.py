"""What the network learns from: every step that has a high-level action, encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import AGENT_SIZE, STATE_SIZE, Encoding, agent_state, object_states, placed_rows
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.observation import AGENT_FEATURES, Array, Observation, Slots

Situation = tuple[Facts, Facts, "Action | None"]  # state, goal, and what is being done

Self = TypeVar("Self", bound="Experience")


class Experience(Protocol):
    """What any network learns from: samples of several episodes."""

    @property
    def episodes(self) -> NDArray[np.int64]:
        """(steps,): the number of the episode."""

    def __len__(self) -> int: ...

    def where(self: Self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the steps."""

    def followed_by(self: Self, more: Sequence[Self]) -> Self:
        """With further episodes, which are counted from 0 on among themselves."""

    def arrays(self) -> Iterator[NDArray[Any]]:
        """All that there is to learn from."""

    def with_arrays(self: Self, arrays: Sequence[NDArray[Any]]) -> Self:
        """The same with other arrays, in the order above."""


@dataclass(frozen=True)
class Samples:
    """One row per step, all of them arrays."""

    globals: Array  # (steps, global size)
    schemas: NDArray[np.int64]  # (steps,)
    objects: Array  # (steps, arity, object size); zeros where an action has no arguments
    controls: Array  # (steps, 4)
    episodes: NDArray[np.int64]  # (steps,): the number of the episode

    def __len__(self) -> int:
        return len(self.schemas)

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        return Samples(*(array[chosen] for array in self.arrays()))

    def followed_by(self, more: Sequence[Samples]) -> Samples:
        first = int(self.episodes.max()) + 1
        return together([self, *(replace(part, episodes=part.episodes + first) for part in more)])

    def arrays(self) -> Iterator[NDArray[Any]]:
        return (getattr(self, field.name) for field in fields(self))

    def with_arrays(self, arrays: Sequence[NDArray[Any]]) -> Samples:
        return Samples(*arrays)


def together(parts: Iterable[Samples]) -> Samples:
    parts = list(parts)
    return Samples(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Samples)))


def encode_episode(
    encoding: Encoding,
    slots: Slots,
    seen: Sequence[Observation],
    situations: Sequence[Situation],
    controls: Array,
    number: int,
) -> Samples:
    """The samples of one episode, (steps,) each. Symbols change rarely, so they are encoded once for each stretch."""
    steps = len(controls)
    agent = np.array([observation["agent"] for observation in seen], np.float32).reshape(-1, len(AGENT_FEATURES))
    globals_ = np.zeros((steps, encoding.global_size), np.float32)
    objects = np.zeros((steps, encoding.arity, encoding.object_size), np.float32)
    schemas = np.full(steps, -1)
    globals_[:, :AGENT_SIZE] = agent_state(agent)
    placed = placed_rows(slots)
    start = 0
    for (state, goal, action), stretch in groupby(situations):
        end = start + len(list(stretch))
        if action is not None:
            schemas[start:end] = encoding.schemas.index(action.name)
            globals_[start:end, AGENT_SIZE:] = encoding.global_facts(state, goal)
        if action is not None and action.arguments:
            rows = encoding.padded([slots.find(name, seen[start]) for name in action.arguments])
            arguments = np.stack([observation["objects"][rows] for observation in seen[start:end]])
            objects[start:end, :, :STATE_SIZE] = object_states(agent[start:end], arguments, placed[rows])
            objects[start:end, :, STATE_SIZE:] = encoding.object_facts(state, goal, action)
        start = end
    return Samples(globals_, schemas, objects, controls, np.full(steps, number)).where(schemas >= 0)

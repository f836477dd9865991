"""What the network learns from: every step that has a high-level action, encoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilevel.lowlevel.encoding import Encoding
from bilevel.symbolic.domain import Action, Facts
from bilevel.tasks.scene import Array, Scene

Situation = tuple[Facts, Facts, "Action | None"]  # state, goal, and what is being done

Self = TypeVar("Self", bound="ImitationSamples")


class ImitationSamples(Protocol):
    """What any network learns from: the samples of several episodes."""

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
    targets: Array  # (steps, outputs): the expert's controls, as the network should put them out
    episodes: NDArray[np.int64]  # (steps,): the number of the episode

    def __len__(self) -> int:
        return len(self.schemas)

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        return Samples(*(array[chosen] for array in self.arrays()))

    def followed_by(self, more: Sequence[Samples]) -> Samples:
        first = int(self.episodes.max()) + 1
        return concatenate([self, *(replace(part, episodes=part.episodes + first) for part in more)])

    def arrays(self) -> Iterator[NDArray[Any]]:
        return (getattr(self, field.name) for field in fields(self))

    def with_arrays(self, arrays: Sequence[NDArray[Any]]) -> Samples:
        return Samples(*arrays)


def concatenate(parts: Iterable[Samples]) -> Samples:
    parts = list(parts)
    return Samples(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Samples)))


def encode_episode(
    encoding: Encoding, scenes: Sequence[Scene], situations: Sequence[Situation], targets: Array, number: int
) -> Samples:
    """The samples of one episode, (steps,) each. Symbols change rarely, so they are encoded once for each stretch."""
    encoding = encoding.for_spec(scenes[0].spec) if scenes else encoding
    steps, told = len(scenes), encoding.features
    globals_ = np.zeros((steps, encoding.global_size), np.float32)
    objects = np.zeros((steps, encoding.arity, encoding.object_size), np.float32)
    schemas = np.full(steps, -1)
    values = np.array([scene.values for scene in scenes], np.float32).reshape(steps, len(encoding.spec.agent))
    globals_[:, : told.agent_size] = told.agent(values)
    start = 0
    keys = [(*situation, scene.roster) for situation, scene in zip(situations, scenes, strict=True)]
    for (state, goal, action, _), stretch in groupby(keys):
        end = start + len(list(stretch))
        if action is not None:
            schemas[start:end] = encoding.schema_index(action)
            globals_[start:end, told.agent_size :] = encoding.global_facts(state, goal)
        if action is not None and action.arguments:
            rows, mask = encoding.arguments(scenes[start], action)
            features = np.stack([encoding.seen(scene, rows) for scene in scenes[start:end]])
            objects[start:end, :, : told.object_size] = told.objects(values[start:end], features, mask)
            objects[start:end, :, told.object_size :] = encoding.object_facts(state, goal, action)
        start = end
    return Samples(globals_, schemas, objects, targets, np.full(steps, number)).where(schemas >= 0)

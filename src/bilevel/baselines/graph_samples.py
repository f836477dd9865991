"""What an end-to-end network learns from: the graph of every step, those of all steps with room for the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.baselines.graph_encoding import GraphEncoding, Rows, Structure
from bilevel.lowlevel.encoding import FeatureEncoder
from bilevel.lowlevel.samples import Situation
from bilevel.symbolic.domain import NO_FACTS
from bilevel.tasks.scene import Array, Scene


@dataclass(frozen=True)
class GraphSamples:
    """One row per step, and one per structure, which many steps share. There are zeros where a graph is smaller."""

    agents: Array  # (steps, agent size)
    features: Array  # (steps, most objects, feature size)
    targets: Array  # (steps, outputs): the expert's controls, as the network should put them out
    episodes: Rows  # (steps,): the number of the episode
    structure: Rows  # (steps,): the number of the structure

    globals: Array  # (structures, 2 * nullary)
    objects: Array  # (structures, most objects, about size)
    facts: Array  # (structures, most facts, fact size)
    arguments: Rows  # (structures, most facts, arity)
    counts: Rows  # (structures, 2): how many objects and facts there are

    def __len__(self) -> int:
        return len(self.structure)

    def where(self, chosen: NDArray[np.bool_]) -> GraphSamples:
        return replace(self, **{name: getattr(self, name)[chosen] for name in PER_STEP})

    def followed_by(self, more: Sequence[GraphSamples]) -> GraphSamples:
        first = int(self.episodes.max()) + 1
        return concatenate([self, *(replace(part, episodes=part.episodes + first) for part in more)])

    def arrays(self) -> Iterator[NDArray[Any]]:
        return (getattr(self, field.name) for field in fields(self))

    def with_arrays(self, arrays: Sequence[NDArray[Any]]) -> GraphSamples:
        return GraphSamples(*arrays)


PER_STEP = ("agents", "features", "targets", "episodes", "structure")


def concatenate(parts: Sequence[GraphSamples]) -> GraphSamples:
    """The samples of all parts, one after the other."""
    firsts = np.cumsum([0, *(len(part.counts) for part in parts)]).tolist()
    moved = [replace(part, structure=part.structure + first) for part, first in zip(parts, firsts, strict=False)]
    return GraphSamples(*(_stacked(arrays) for arrays in zip(*(part.arrays() for part in moved), strict=True)))


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

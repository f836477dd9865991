"""What an end-to-end network learns from: the graph of every step, those of one shape, with room for the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.baselines.graph_encoding import NOWHERE, GraphEncoding, Movement, Rows, Scene, look
from bilevel.lowlevel.encoding import agent_state
from bilevel.lowlevel.samples import Situation
from bilevel.tabletop.observation import AGENT_FEATURES, FEATURES, Array, Bools, Observation, Slots


@dataclass(frozen=True)
class Scenes:
    """The scenes of many steps, one after the other."""

    visible: Bools  # (scenes, slots)
    globals: Array  # (scenes, 2 * nullary)
    objects: Array  # (scenes, slots, scene size)
    facts: Array  # (scenes, most facts, fact size); zeros where there are fewer
    arguments: Rows  # (scenes, most facts, arity)
    counts: Rows  # (scenes,): how many facts there are

    def __len__(self) -> int:
        return len(self.counts)

    def arrays(self) -> list[NDArray[Any]]:
        return [getattr(self, field.name) for field in fields(self)]

    def with_room(self, facts: int) -> Scenes:
        """For so many facts, or more."""
        more = ((0, 0), (0, max(0, facts - self.facts.shape[1])), (0, 0))
        return replace(
            self, facts=np.pad(self.facts, more), arguments=np.pad(self.arguments, more, constant_values=NOWHERE)
        )


@dataclass(frozen=True)
class GraphSamples:
    """One row per step, all of them arrays, and the scenes that they are part of."""

    agents: Array  # (steps, 2)
    moving: Array  # (steps, slots, 6)
    scene: Rows  # (steps,): the number of the scene
    controls: Array  # (steps, 4)
    episodes: Rows  # (steps,): the number of the episode
    scenes: Scenes

    def __len__(self) -> int:
        return len(self.scene)

    def where(self, chosen: NDArray[np.bool_]) -> GraphSamples:
        steps: dict[str, Any] = {name: array[chosen] for name, array in self.steps().items()}
        return replace(self, **steps)

    def followed_by(self, more: Sequence[GraphSamples]) -> GraphSamples:
        first = int(self.episodes.max()) + 1
        return together([self, *(replace(part, episodes=part.episodes + first) for part in more)])

    def arrays(self) -> Iterator[NDArray[Any]]:
        yield from self.steps().values()
        yield from self.scenes.arrays()

    def with_arrays(self, arrays: Sequence[NDArray[Any]]) -> GraphSamples:
        names = list(self.steps())
        steps: dict[str, Any] = dict(zip(names, arrays, strict=False))
        return replace(self, scenes=Scenes(*arrays[len(names) :]), **steps)

    def steps(self) -> dict[str, NDArray[Any]]:
        """All arrays with a row per step."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "scenes"}


def together(parts: Sequence[GraphSamples]) -> GraphSamples:
    most = max(part.scenes.facts.shape[1] for part in parts)
    offsets = np.cumsum([0, *(len(part.scenes) for part in parts)])
    moved = [replace(part, scene=part.scene + first) for part, first in zip(parts, offsets[:-1], strict=True)]
    scenes = zip(*(part.scenes.with_room(most).arrays() for part in parts), strict=True)
    steps = {name: np.concatenate([getattr(part, name) for part in moved]) for name in moved[0].steps()}
    return replace(moved[0], scenes=Scenes(*(np.concatenate(arrays) for arrays in scenes)), **steps)


def encode_graphs(
    encoding: GraphEncoding,
    slots: Slots,
    seen: Sequence[Observation],
    situations: Sequence[Situation],
    controls: Array,
    number: int,
) -> GraphSamples:
    """The samples of one episode. Scenes come back, so each is encoded once."""
    known: dict[object, int] = {}
    scenes: list[Scene] = []
    scene = np.zeros(len(controls), np.int64)
    for step, (observation, (state, goal, _)) in enumerate(zip(seen, situations, strict=True)):
        key = state, goal, look(observation)
        if key not in known:
            known[key] = len(scenes)
            scenes.append(encoding.scene(slots, observation, state, goal))
        scene[step] = known[key]
    agents = np.array([observation["agent"] for observation in seen], np.float32).reshape(-1, len(AGENT_FEATURES))
    objects = np.array([observation["objects"] for observation in seen], np.float32)
    moving = Movement(slots)(agents, objects.reshape(-1, len(slots), len(FEATURES)))
    return GraphSamples(
        agents=agent_state(agents),
        moving=moving,
        scene=scene,
        controls=controls,
        episodes=np.full(len(controls), number),
        scenes=_stacked(encoding, len(slots), scenes),
    )


def _stacked(encoding: GraphEncoding, slots: int, scenes: Sequence[Scene]) -> Scenes:
    count, most = len(scenes), max((len(scene.facts) for scene in scenes), default=0)
    stacked = Scenes(
        visible=np.zeros((count, slots), bool),
        globals=np.zeros((count, 2 * len(encoding.nullary)), np.float32),
        objects=np.zeros((count, slots, encoding.scene_size), np.float32),
        facts=np.zeros((count, most, encoding.fact_size), np.float32),
        arguments=np.full((count, most, encoding.arity), NOWHERE),
        counts=np.array([len(scene.facts) for scene in scenes], np.int64),
    )
    for number, scene in enumerate(scenes):
        stacked.visible[number], stacked.globals[number], stacked.objects[number] = (
            scene.visible,
            scene.globals,
            scene.objects,
        )
        stacked.facts[number, : len(scene.facts)] = scene.facts
        stacked.arguments[number, : len(scene.facts)] = scene.arguments
    return stacked

"""Scenes as numbers of a fixed size, for policies that know no objects: places by type and number, each with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Array, Scene
from bilevel.tasks.spec import Spec


@dataclass(frozen=True)
class StateLayout:
    """The agent's features, then those of as many objects of each type as there are places; zeros where none is.

    The numbers are called `agent.x` and `block[0].x`, and the places `block[0]`.
    """

    spec: Spec
    counts: Mapping[str, int]  # of the places for each type; nothing, if the agent alone is told

    @classmethod
    def of_scenes(cls, spec: Spec, scenes: Iterable[Scene]) -> StateLayout:
        """Return the smallest layout that has a place for every object of these scenes."""
        rosters = {scene.roster for scene in scenes}
        return cls(spec, {kind: max((len(each.of_type(kind)) for each in rosters), default=0) for kind in spec.objects})

    @classmethod
    def of_names(cls, spec: Spec, names: Sequence[str]) -> StateLayout:
        """Return the layout whose numbers have these names; `BadInput` where the spec has no such layout."""
        places = {name.rpartition(".")[0] for name in names} - {"agent"}
        counts = {kind: sum(place.startswith(f"{kind}[") for place in places) for kind in spec.objects}
        layout = cls(spec, counts if places else {})
        if layout.names != list(names):
            unknown = next((name for name in names if name not in layout.names), "their order")
            raise BadInput(f"the numbers of the state are not those of the task: {unknown}")
        return layout

    @cached_property
    def places(self) -> list[str]:
        """The names of the places for objects."""
        return [f"{kind}[{number}]" for kind, count in self.counts.items() for number in range(count)]

    @cached_property
    def names(self) -> list[str]:
        """The names of the numbers."""
        features = [f"{place}.{name}" for place in self.places for name in self.spec.objects[place.partition("[")[0]]]
        return [f"agent.{name}" for name in self.spec.agent] + features

    def encode(self, scene: Scene) -> tuple[Array, Array]:
        """Return the numbers, and for each place whether an object is there; `BadInput` for more objects than places.

        Objects of a type take its places in the order in which they are in the scene.
        """
        numbers, taken = [scene.values], list[Array]()
        for kind, count in self.counts.items():
            rows, columns = scene.roster.rows(kind), [scene.spec.column[name] for name in self.spec.objects[kind]]
            seen = scene.features[rows][:, columns]
            if len(seen) > count:
                raise BadInput(f"there are places for {count} objects of the type '{kind}', but {len(seen)} are there")
            numbers.append(np.pad(seen, ((0, count - len(seen)), (0, 0))).reshape(-1))
            taken.append((np.arange(count) < len(seen)).astype(np.float32))
        return np.concatenate(numbers, dtype=np.float32), np.concatenate([*taken, []], dtype=np.float32)

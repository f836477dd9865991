"""What is visible at one timestep: the agent's features, and the names, types and features of all objects.

Users build a scene from plain dictionaries, environments that count microseconds from arrays; the two are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Spec

Array = NDArray[np.float32]


class Roster:
    """Which objects are visible, those of one type side by side. Scenes share it for as long as none comes or goes."""

    def __init__(self, objects: Mapping[str, str]) -> None:
        """`objects` gives their types by their names, in the order of their rows."""
        self.objects = dict(objects)
        self.names = tuple(objects)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Roster) and list(self.objects.items()) == list(other.objects.items())

    def __hash__(self) -> int:
        return hash(self.names)

    @cached_property
    def row(self) -> dict[str, int]:
        """The row of each object, by its name."""
        return {name: row for row, name in enumerate(self.objects)}

    @cached_property
    def _slices(self) -> dict[str, slice]:
        slices: dict[str, slice] = {}
        for row, (name, kind) in enumerate(self.objects.items()):
            known = slices.setdefault(kind, slice(row, row))
            if known.stop != row:
                raise BadInput(f"'{name}' is not beside the other objects of its type '{kind}'")
            slices[kind] = slice(known.start, row + 1)
        return slices

    def rows(self, kind: str) -> slice:
        """The rows of all objects of a type."""
        return self._slices.get(kind, slice(0, 0))

    def of_type(self, kind: str) -> tuple[str, ...]:
        """The names of all objects of a type."""
        return self.names[self.rows(kind)]


class Thing:
    """One thing in a scene: `scene["cube0"].x`, `scene.agent.opening`. Things of one name are equal."""

    __slots__ = ("_columns", "_values", "name", "type")

    def __init__(self, name: str, kind: str, columns: Mapping[str, int], values: Array) -> None:
        self.name, self.type, self._columns, self._values = name, kind, columns, values

    def __getitem__(self, feature: str) -> float:
        return float(self._values[self._columns[feature]])

    def __getattr__(self, feature: str) -> float:
        try:
            return float(self._values[self._columns[feature]])
        except KeyError:
            raise AttributeError(f"'{self.name}' has no feature '{feature}'") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={self[name]:g}' for name in self._columns)})"


class Scene:
    """A value: two scenes are equal if the same objects are visible in them with the same features.

        Scene(SPEC, agent={"x": 0.0, "y": 0.1}, objects={"cube": {"cube0": {"x": 0.3, "y": 0.1}}})

    `values`, (agent features,), and `features`, (objects, columns), hold the numbers in the order of the spec; an
    object has zeros in the columns that are not of its type.
    """

    __slots__ = ("features", "roster", "spec", "values")

    def __init__(
        self, spec: Spec, agent: Mapping[str, float], objects: Mapping[str, Mapping[str, Mapping[str, float]]]
    ) -> None:
        self.spec = spec
        self.values = np.array(_ordered("the agent", spec.agent, agent), np.float32)
        things = [(kind, name, features) for kind, members in objects.items() for name, features in members.items()]
        self.roster = Roster({name: kind for kind, name, _ in things})
        self.features = np.zeros((len(things), len(spec.columns)), np.float32)
        for kind in objects:
            if kind not in spec.objects:
                raise BadInput(f"the spec has no type '{kind}'; its types: {', '.join(spec.objects)}")
        for row, (kind, name, features) in enumerate(things):
            if self.roster.row[name] != row:
                raise BadInput(f"there are two objects called '{name}'")
            columns = [spec.column[feature] for feature in spec.objects[kind]]
            self.features[row, columns] = _ordered(f"'{name}'", spec.objects[kind], features)

    @classmethod
    def from_arrays(cls, spec: Spec, values: Array, features: Array, roster: Roster) -> Scene:
        """The same from arrays in the order of the spec, which are not copied."""
        scene = cls.__new__(cls)
        scene.spec, scene.values, scene.features, scene.roster = spec, values, features, roster
        return scene

    @property
    def agent(self) -> Thing:
        """The agent, whose features are attributes: `scene.agent.x`."""
        return Thing("agent", "agent", self.spec.agent_column, self.values)

    @property
    def objects(self) -> dict[str, str]:
        """The types of all visible objects, by their names."""
        return self.roster.objects

    def __getitem__(self, name: str) -> Thing:
        row = self.roster.row.get(name)
        if row is None:
            raise KeyError(f"'{name}' is not visible")
        kind = self.roster.objects[name]
        columns = {feature: self.spec.column[feature] for feature in self.spec.objects[kind]}
        return Thing(name, kind, columns, self.features[row])

    def __contains__(self, name: object) -> bool:
        return name in self.roster.row

    def of_type(self, kind: str) -> Iterator[Thing]:
        """All visible objects of a type."""
        return (self[name] for name in self.roster.of_type(kind))

    def rows(self, names: Sequence[str]) -> list[int]:
        """The rows of `features` in which these objects stand."""
        row = self.roster.row
        return [row[name] for name in names]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scene)
            and self.roster == other.roster
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.features, other.features)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Scene({', '.join(map(repr, [self.agent, *(self[name] for name in self.roster.names)]))})"


def _ordered(whose: str, wanted: Mapping[str, Any], given: Mapping[str, float]) -> list[float]:
    """The numbers in the order of the spec; `BadInput` where one is missing or there is one too many."""
    if given.keys() != wanted.keys():
        raise BadInput(f"{whose} has the features {', '.join(given)}, but in the spec are {', '.join(wanted)}")
    return [given[name] for name in wanted]

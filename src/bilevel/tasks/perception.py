"""Imperfect perception: what a camera makes of the scenes of an episode before a policy sees them.

    perception = read_perception("noise=0.01,missed=0.05,delay=3")
    sensor = Sensor(perception, task.spec, seed)
    seen = sensor.see(scene)

What is seen of objects is wrong or missing; the agent knows where it is itself. A scene that is late, or seldom seen,
is so as a whole. Random numbers are a sensor's own: the environment's stay the same.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.seeds import PERCEPTION
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Position, Spec, input_role

REMEMBERED = 1000  # rosters of which something is known

Length = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Steps = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class Perception(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is wrong with what is seen; by default nothing. Lengths are in the unit of the task's positions."""

    noise: Length = 0.0  # standard deviation of each coordinate of an object, drawn anew at each step
    bias: Length = 0.0  # how far all objects are off together, in a direction that is drawn once for an episode
    missed: Probability = 0.0  # of an object not to be seen, at each step
    occluded: Length = 0.0  # objects as near to the agent as this are not seen
    delay: Steps = 0  # the scene is that of so many steps ago
    every: Annotated[int, msgspec.Meta(ge=1, le=10**9)] = 1  # a new scene is seen at every n-th step

    def __str__(self) -> str:
        fields = ((field.name, getattr(self, field.name), field.default) for field in msgspec.structs.fields(self))
        return ",".join(f"{name}={value:g}" for name, value, default in fields if value != default)


PERFECT = Perception()


def read_perception(text: str) -> Perception:
    """Return the perception of a text such as `noise=0.01,missed=0.05`; nothing is perfect perception."""
    parts = [part.partition("=") for part in text.replace(" ", "").split(",") if part]
    try:
        return msgspec.convert({name: value for name, _, value in parts}, Perception, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in msgspec.structs.fields(Perception))
        raise BadInput(f"perception '{text}': {error}; it takes NAME=VALUE,… of {names}") from None


class Coordinates:
    """Which features of objects are coordinates, and along which one of the agent's.

    Of features for labels alone, those count that are coordinates to a method without labels.
    """

    def __init__(self, spec: Spec) -> None:
        along: dict[str, str] = {}
        for features in spec.object_roles.values():
            for name, role in features.items():
                told = input_role(role)
                if isinstance(told, Position):
                    along[name] = told.along or name
        self.names = tuple(along)
        self.columns = np.array([spec.column[name] for name in along], np.intp)  # (coordinates,)
        self.agent_names = tuple(name for name in spec.agent if name in along.values())
        self.agent_columns = np.array([spec.agent_column[name] for name in self.agent_names], np.intp)  # (axes,)
        self.axis = np.array([self.agent_names.index(name) for name in along.values()], np.intp)  # (coordinates,)
        # The point at which an object is: the coordinates that are called as the agent's are.
        own = [name for name in self.agent_names if name in along]
        self.points = np.array([spec.column[name] for name in own], np.intp)
        self.point_indices = np.array([self.names.index(name) for name in own], np.intp)  # among all coordinates
        self.agent_points = np.array([spec.agent_column[name] for name in own], np.intp)
        self._types = spec.object_roles
        self.has = lru_cache(REMEMBERED)(self._has)

    def _has(self, roster: Roster) -> NDArray[np.bool_]:
        """(objects, coordinates): which coordinates the objects have."""
        rows = [[name in self._types.get(kind, ()) for name in self.names] for kind in roster.objects.values()]
        return np.array(rows, bool).reshape(len(rows), len(self.names))

    def is_placed(self, roster: Roster) -> NDArray[np.bool_]:
        """(objects,): which objects are somewhere at all."""
        return np.asarray(self.has(roster).any(axis=1))

    def distances(self, scene: Scene) -> Array:
        """(objects,): how far each object is from the agent; infinitely far for those that are nowhere."""
        offsets = scene.features[:, self.points] - scene.values[self.agent_points]
        return np.where(self.is_placed(scene.roster), np.sqrt((offsets * offsets).sum(axis=1)), np.inf)


class Sensor:
    """What is seen in one episode; the same seed sees the same."""

    def __init__(self, perception: Perception, spec: Spec, seed: int) -> None:
        self._perception, self._coordinates = perception, Coordinates(spec)
        self._rng = np.random.default_rng([seed, PERCEPTION])
        direction = self._rng.standard_normal(len(self._coordinates.agent_names))
        length = float(np.linalg.norm(direction)) or 1.0
        self._bias = (direction * (perception.bias / length)).astype(np.float32)
        self._late: deque[Scene] = deque(maxlen=perception.delay + 1)
        self._steps = 0

    def see(self, scene: Scene) -> Scene:
        """Return what is seen of the next scene of the episode."""
        is_new = self._steps % self._perception.every == 0
        self._late.append(self._moved(self._seen(scene)) if is_new else self._late[-1])
        self._steps += 1
        return self._late[0]

    def _seen(self, scene: Scene) -> Scene:
        """Leave out what is not seen."""
        missed, occluded = self._perception.missed, self._perception.occluded
        if not (missed or occluded):
            return scene
        hidden = self._coordinates.distances(scene) <= occluded if occluded else np.zeros(len(scene.features), bool)
        if missed:
            drawn = self._rng.random(len(scene.features)) < missed
            hidden |= drawn & self._coordinates.is_placed(scene.roster)
        if not hidden.any():
            return scene
        pairs = zip(scene.objects.items(), hidden.tolist(), strict=True)
        roster = Roster({name: kind for (name, kind), is_hidden in pairs if not is_hidden})
        return Scene.from_arrays(scene.spec, scene.values, scene.features[~hidden], roster)

    def _moved(self, scene: Scene) -> Scene:
        """Put everything where it seems to be."""
        noise, found = self._perception.noise, self._coordinates
        if not (noise or self._perception.bias):
            return scene
        off = np.broadcast_to(self._bias[found.axis], (len(scene.features), len(found.axis)))
        if noise:
            off = off + noise * self._rng.standard_normal(off.shape).astype(np.float32)
        features = scene.features.copy()
        features[:, found.columns] += off * found.has(scene.roster)
        return Scene.from_arrays(scene.spec, scene.values, features, scene.roster)

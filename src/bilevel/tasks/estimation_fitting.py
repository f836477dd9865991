"""What state estimation has to know of how things move, from demonstrations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Facts
from bilevel.tasks.agent_motion import fit_agent_motion
from bilevel.tasks.estimation import Carrying, Estimation, Motion
from bilevel.tasks.perception import Coordinates
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.sensors import NORMAL
from bilevel.tasks.spec import Scalar, Spec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# As parts of the agent's fastest step:
_MOVING = 0.1  # what moves less is not moved by the agent
_NEGLIGIBLE = 0.01  # what is less does not matter
_JUMP = 1.5  # nothing that the agent moves is faster

_ALONG = 0.2  # what is carried moves as the agent does, but for this part of a step
_LONG = 5  # steps for which an object must move along to be carried
_MARGIN = 0.25  # by which ranges that were seen are widened, as a part of them
_COUPLED = 0.05  # the part of a number's changes that the way of its object may leave unexplained
_LASTING = 0.05  # a change of the facts must last for this part of the time for which they usually stay the same
_MOST_STEPS = 10
_SELDOM = 10  # of things at rest, every so manieth step is enough


@dataclass
class _Samples:
    """What is found of the objects of one type; a row for each object and step."""

    stirred: list[Floats] = field(default_factory=list)  # (steps, axes): how the agent moves what it does not carry
    distance: list[Floats] = field(default_factory=list)  # (steps,): from the agent, of what is stirred
    rest: list[Floats] = field(default_factory=list)  # (steps, coordinates)
    offset: list[Floats] = field(default_factory=list)  # (steps, axes): from the agent, while carried
    agent: list[Floats] = field(default_factory=list)  # (steps, agent features): of the agent that carries
    slip: list[Floats] = field(default_factory=list)  # (steps, axes): how what is carried moves, relative to the agent
    way: list[Floats] = field(default_factory=list)  # (steps, axes): and how the agent moves then
    change: list[Floats] = field(default_factory=list)  # (steps, columns): and all its features
    bounds: list[Floats] = field(default_factory=list)  # (2, columns): lowest and highest
    gone: list[float] = field(default_factory=list)  # distances from the agent of what vanishes


class EstimationFit:
    """Gathers what demonstrations show of how things move, and for how long facts last."""

    def __init__(self, spec: Spec) -> None:
        self._spec, self._coordinates = spec, Coordinates(spec)
        self._samples: dict[str, _Samples] = defaultdict(_Samples)
        self._fastest = self._noise = 0.0
        self._durations: list[int] = []
        self._moves: list[tuple[Array, Array]] = []

    def add(self, scenes: Sequence[Scene], states: Sequence[Facts], controls: Array | None = None) -> None:
        """Look at one demonstration: a scene and a state for each timestep, and what was executed in between.

        Controls are (steps, numbers); there are none where they are no numbers that can be added.
        """
        agent = np.stack([scene.values for scene in scenes])
        where = agent[:, self._coordinates.agent_columns].astype(float)
        fastest = float(np.linalg.norm(np.diff(where, axis=0), axis=1).max(initial=0.0))
        self._fastest = max(self._fastest, fastest)
        self._durations += [len(list(same)) for _, same in groupby(states)]
        if controls is not None:
            self._moves.append((agent, controls))
        for before, scene in pairwise(scenes):
            if before.roster is not scene.roster and before.roster != scene.roster:
                _note_gone(self._coordinates, before, scene, self._samples)
        for roster, values, features in _stretches(scenes):
            self._noise = max(self._noise, _median_step(self._coordinates, roster, features))
            _note_motion(self._coordinates, roster, values, features, fastest, self._samples)

    def result(self) -> Estimation:
        """Return the parameters of an estimator."""
        fastest = self._fastest
        near = np.concatenate([np.zeros(1), *(part for found in self._samples.values() for part in found.distance)])
        lasting = int(_LASTING * np.median(self._durations)) if self._durations else 1
        return Estimation(
            floor=max(2 * self._noise / NORMAL, _NEGLIGIBLE * fastest),
            near=float(np.quantile(near, 0.95)),
            jump=_JUMP * fastest,
            steps=min(max(1, lasting), _MOST_STEPS),
            types={
                kind: _motion(self._spec, self._coordinates, kind, found, fastest)
                for kind, found in self._samples.items()
            },
            agent=fit_agent_motion(self._spec, self._moves),
        )


def _stretches(scenes: Sequence[Scene]) -> Iterator[tuple[Roster, Array, Array]]:
    """Yield agent, (timesteps, features), and objects, (timesteps, objects, columns), while the same are seen."""
    for _, same in groupby(scenes, key=lambda scene: scene.roster):
        part = list(same)
        if len(part) > 1 and part[0].roster.names:
            yield part[0].roster, np.stack([s.values for s in part]), np.stack([s.features for s in part])


def _median_step(coordinates: Coordinates, roster: Roster, features: Array) -> float:
    """Return the most that the median coordinate has moved within a step: what the sensors' noise is at least."""
    steps = np.abs(np.diff(features[:, :, coordinates.columns], axis=0))[:, coordinates.has(roster)]
    if steps.shape[1] == 0:
        return 0.0
    half = (steps.shape[1] - 1) // 2
    return float(np.partition(steps, half, axis=1)[:, half].max())


def _note_gone(coordinates: Coordinates, before: Scene, scene: Scene, samples: Mapping[str, _Samples]) -> None:
    distances = coordinates.distances(before)
    for row, (name, kind) in enumerate(before.objects.items()):
        if name not in scene and np.isfinite(distances[row]):
            samples[kind].gone.append(float(distances[row]))


def _note_motion(
    coordinates: Coordinates,
    roster: Roster,
    values: Array,
    features: Array,
    fastest: float,
    samples: Mapping[str, _Samples],
) -> None:
    """Note how each object moves: not at all, stirred by the agent, or carried by it."""
    points = coordinates.points
    agent = values[:, coordinates.agent_points].astype(float)
    way = np.diff(agent, axis=0)
    speed = np.linalg.norm(way, axis=1)
    for row, (kind, is_placed) in enumerate(zip(roster.objects.values(), coordinates.is_placed(roster), strict=True)):
        found, seen = samples[kind], features[:, row].astype(float)
        found.bounds.append(np.stack([seen.min(axis=0), seen.max(axis=0)]))
        if not is_placed:
            continue
        change = np.diff(seen, axis=0)
        moved = np.linalg.norm(change[:, points], axis=1)
        slip, offset = change[:, points] - way, seen[:-1, points] - agent[:-1]
        along = (speed > _MOVING * fastest) & (np.linalg.norm(slip, axis=1) < _ALONG * speed)
        stirred = (moved > _MOVING * fastest) & (moved < _JUMP * fastest) & ~along
        found.stirred.append(change[stirred][:, points])
        distance = np.linalg.norm(offset, axis=1)
        found.distance.append(distance[stirred])
        resting = (moved < _NEGLIGIBLE * fastest) & (distance > _JUMP * fastest)  # and not held still by the agent
        found.rest.append(seen[:-1][resting][::_SELDOM, coordinates.columns])
        carried = _lasting(along)
        for name, part in (
            ("offset", offset),
            ("agent", values[:-1]),
            ("slip", slip),
            ("way", way),
            ("change", change),
        ):
            getattr(found, name).append(part[carried])


def _lasting(flags: Bools) -> Bools:
    """Return the flags but for those that are raised for a few steps only."""
    result, start = np.zeros_like(flags), 0
    for value, same in groupby(flags.tolist()):
        end = start + len(list(same))
        result[start:end] = value and end - start >= _LONG
        start = end
    return result


def _motion(spec: Spec, coordinates: Coordinates, kind: str, found: _Samples, fastest: float) -> Motion:
    stirred = np.concatenate(found.stirred) if found.stirred else np.zeros((0, 1))
    carrying = _carrying(spec, kind, found)
    bounds = np.array(found.bounds).reshape(-1, 2, len(spec.columns))
    low, high = bounds[:, 0].min(axis=0, initial=np.inf), bounds[:, 1].max(axis=0, initial=-np.inf)
    coupled = {name: spec.column[name] for name in carrying.coupled} if carrying else {}
    return Motion(
        loose=float(np.sqrt((stirred**2).mean())) if stirred.size else 0.0,
        known=_known(spec, coordinates, kind, found, fastest),
        bounds={name: (float(low[column]), float(high[column])) for name, column in coupled.items()},
        carrying=carrying,
        gone=min(found.gone) if found.gone else None,
    )


def _known(spec: Spec, coordinates: Coordinates, kind: str, found: _Samples, fastest: float) -> dict[str, float]:
    """Return the coordinates that are the same wherever an object of the type rests, such as the height of a table."""
    rest = np.concatenate(found.rest) if found.rest else np.zeros((0, 1))
    if not len(rest):
        return {}
    low, middle, high = np.quantile(rest, [0.01, 0.5, 0.99], axis=0)
    own = {name: index for index, name in enumerate(coordinates.names) if name in spec.objects[kind]}
    return {name: float(middle[at]) for name, at in own.items() if high[at] - low[at] < _NEGLIGIBLE * fastest}


def _carrying(spec: Spec, kind: str, found: _Samples) -> Carrying | None:
    """Return how the agent carries objects of the type; `None` if it does not."""
    offsets = np.concatenate(found.offset) if found.offset else np.zeros((0, 1))
    if not len(offsets):
        return None
    agent, slip, middle = np.concatenate(found.agent), np.concatenate(found.slip), offsets.mean(axis=0)
    bounds = {}
    for name, role in spec.agent_roles.items():
        if isinstance(role, Scalar):
            low, high = np.quantile(agent[:, spec.agent_column[name]], [0.01, 0.99]).tolist()
            bounds[name] = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    return Carrying(
        offset=tuple(middle.tolist()),
        spread=tuple(offsets.std(axis=0).tolist()),
        radius=2 * float(np.linalg.norm(offsets - middle, axis=1).max()),
        agent=bounds,
        slip=float(np.sqrt((slip**2).mean())),
        coupled=_coupled(spec, kind, np.concatenate(found.way), np.concatenate(found.change)),
    )


def _coupled(spec: Spec, kind: str, way: Floats, change: Floats) -> dict[str, tuple[float, ...]]:
    """Return the numbers of an object that change with its way, and by how much along each axis."""
    coupled = {}
    for name, role in spec.object_roles[kind].items():
        changes = change[:, spec.column[name]]
        if isinstance(role, Scalar) and changes.any():
            weights = np.linalg.lstsq(way, changes, rcond=0.05)[0]
            if ((changes - way @ weights) ** 2).sum() < _COUPLED * (changes**2).sum():
                coupled[name] = tuple(weights.tolist())
    return coupled

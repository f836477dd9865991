"""What state estimation has to know of how things move, from demonstrations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.tasks.estimation import NORMAL, AgentMotion, Carrying, Estimation, Motion
from bilevel.tasks.perception import Coordinates
from bilevel.tasks.scene import Array, Roster, Scene
from bilevel.tasks.spec import Scalar, Spec

Floats = NDArray[np.float64]

# As parts of the agent's fastest step:
_MOVING = 0.1  # what moves less is not moved by the agent
_NEGLIGIBLE = 0.01  # what is less does not matter
_JUMP = 1.5  # nothing that the agent moves is faster

_ALONG = 0.2  # what is carried moves as the agent does, but for this part of a step
_LONG = 5  # steps for which an object must move along to be carried
_MARGIN = 0.25  # by which ranges that were seen are widened, as a part of them
_COUPLED = 0.05  # the part of a number's changes that the way of its object may leave unexplained
_SELDOM = 10  # of things at rest, every n-th step is enough
_AHEAD = 6  # steps over which a prediction of the agent is tried

# What is found of the objects of one type, by names; each part has a row for each object and step.
_Samples = Mapping[str, list[NDArray[Any]]]


def fit_estimation(spec: Spec, demonstrations: Iterable[tuple[Sequence[Scene], Array | None]]) -> Estimation:
    """Return what demonstrations show of how things move, for an `Estimator`.

    Each has a scene for each timestep, and what was executed in between, (steps, numbers), or `None` where controls
    are no numbers that can be added.
    """
    coordinates, samples = Coordinates(spec), defaultdict[str, _Samples](lambda: defaultdict(list))
    fastest = noise = 0.0
    moves: list[tuple[Floats, Floats]] = []
    for scenes, controls in demonstrations:
        agent = np.stack([scene.values for scene in scenes])[:, coordinates.agent_columns].astype(float)
        step = float(np.linalg.norm(np.diff(agent, axis=0), axis=1).max(initial=0.0))
        fastest = max(fastest, step)
        if controls is not None and len(controls) > _AHEAD + 1:
            moves.append((agent, controls.astype(float)))
        for before, scene in pairwise(scenes):
            distances = coordinates.distances(before)
            for row, (name, kind) in enumerate(before.objects.items()):
                if name not in scene and np.isfinite(distances[row]):
                    samples[kind]["gone"].append(distances[[row]])
        for roster, values, features in _stretches(scenes):
            noise = max(noise, _median_step(coordinates, roster, features))
            _note_motion(coordinates, roster, values, features, step, samples)
    return Estimation(
        floor=max(2 * noise / NORMAL, _NEGLIGIBLE * fastest),
        jump=_JUMP * fastest,
        types={kind: _motion(spec, coordinates, kind, found, _NEGLIGIBLE * fastest) for kind, found in samples.items()},
        agent=_agent_motion(coordinates.agent_names, moves) if moves else None,
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
    half = (steps.shape[1] - 1) // 2
    return float(np.partition(steps, half, axis=1)[:, half].max()) if steps.shape[1] else 0.0


def _note_motion(
    coordinates: Coordinates,
    roster: Roster,
    values: Array,
    features: Array,
    fastest: float,
    samples: Mapping[str, _Samples],
) -> None:
    """Note where each object rests, and how it moves while the agent carries it."""
    points = coordinates.points
    agent = values[:, coordinates.agent_points].astype(float)
    way = np.diff(agent, axis=0)
    speed = np.linalg.norm(way, axis=1)
    for row, (kind, is_placed) in enumerate(zip(roster.objects.values(), coordinates.is_placed(roster), strict=True)):
        found, seen = samples[kind], features[:, row].astype(float)
        found["bounds"].append(np.stack([seen.min(axis=0), seen.max(axis=0)])[None])
        if is_placed:
            change, offset = np.diff(seen, axis=0), seen[:-1, points] - agent[:-1]
            moved = np.linalg.norm(change[:, points], axis=1)
            is_far = np.linalg.norm(offset, axis=1) > _JUMP * fastest  # so that the agent does not hold it still
            found["rest"].append(seen[:-1][(moved < _NEGLIGIBLE * fastest) & is_far][::_SELDOM])
            slip = np.linalg.norm(change[:, points] - way, axis=1)
            start = 0
            for is_along, same in groupby((speed > _MOVING * fastest) & (slip < _ALONG * speed)):
                end = start + len(list(same))
                if is_along and end - start >= _LONG:
                    for name, part in (("offset", offset), ("agent", values), ("way", way), ("change", change)):
                        found[name].append(part[start:end])
                start = end


def _motion(spec: Spec, coordinates: Coordinates, kind: str, samples: _Samples, negligible: float) -> Motion:
    found = {name: np.concatenate(parts) for name, parts in samples.items() if parts}
    known, rest = {}, found.get("rest", np.zeros((0, 0)))
    for name in coordinates.names if len(rest) else ():
        if name in spec.objects[kind]:
            lowest, middle, highest = np.quantile(rest[:, spec.column[name]], [0.01, 0.5, 0.99]).tolist()
            if highest - lowest < negligible:  # such as the height of a table
                known[name] = middle
    carrying = _carrying(spec, kind, found) if "offset" in found else None
    low, high = found["bounds"][:, 0].min(axis=0).tolist(), found["bounds"][:, 1].max(axis=0).tolist()
    columns = {name: spec.column[name] for name in carrying.coupled} if carrying else {}
    bounds = {name: (low[column], high[column]) for name, column in columns.items()}
    return Motion(known, bounds, carrying, gone=float(found["gone"].min()) if "gone" in found else None)


def _carrying(spec: Spec, kind: str, found: Mapping[str, Floats]) -> Carrying:
    """Return how the agent carries objects of the type."""
    offsets, agent, way, change = (found[name] for name in ("offset", "agent", "way", "change"))
    middle, bounds, coupled = offsets.mean(axis=0), {}, {}
    for name, role in spec.agent_roles.items():
        if isinstance(role, Scalar):
            low, high = np.quantile(agent[:, spec.agent_column[name]], [0.01, 0.99]).tolist()
            bounds[name] = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    for name, role in spec.object_roles[kind].items():  # numbers that change with its way, and by how much
        changes = change[:, spec.column[name]]
        if isinstance(role, Scalar) and changes.any():
            weights = np.linalg.lstsq(way, changes, rcond=0.05)[0]
            if ((changes - way @ weights) ** 2).sum() < _COUPLED * (changes**2).sum():
                coupled[name] = tuple(weights.tolist())
    radius = 2 * float(np.linalg.norm(offsets - middle, axis=1).max())
    return Carrying(tuple(middle.tolist()), radius, bounds, coupled)


def _agent_motion(names: Sequence[str], episodes: Sequence[tuple[Floats, Floats]]) -> AgentMotion | None:
    """Return the motion that explains the agent's way, (timesteps, axes), by its controls; `None` if none does.

    One that does leaves less than half of the way over some steps.
    """
    steps = [np.diff(agent, axis=0) for agent, _ in episodes]
    causes = [np.hstack([step[:-1], controls[1:]]) for step, (_, controls) in zip(steps, episodes, strict=True)]
    weights = np.linalg.lstsq(np.concatenate(causes), np.concatenate([step[1:] for step in steps]), rcond=None)[0]
    momentum, response = weights[: len(names)], weights[len(names) :]
    error = change = 1e-12
    for agent, controls in episodes:
        start, end = np.arange(1, len(controls) - _AHEAD), np.arange(1 + _AHEAD, len(controls))
        step, where = agent[start] - agent[start - 1], agent[start]
        for ahead in range(_AHEAD):
            step = step @ momentum + controls[start + ahead] @ response
            where = where + step
        error, change = error + ((where - agent[end]) ** 2).sum(), change + ((agent[start] - agent[end]) ** 2).sum()
    if error > 0.25 * change:
        return None
    still = 0.01 * max(float(np.abs(step).max()) for step in steps)
    return AgentMotion(tuple(names), tuple(map(tuple, momentum.tolist())), tuple(map(tuple, response.tolist())), still)

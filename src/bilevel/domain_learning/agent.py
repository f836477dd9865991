"""Who did it, and with what: read off where the agent was, seen from the objects, whenever the same thing happened.

Whoever presses a button is at the button each time, wherever it stands; when nature moves a block, the agent may
be anywhere. So the offset from the agent to an object that it acts on varies little from one occurrence to the next,
compared with how much it varies in the course of an episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.changes import ShownEpisode
from bilevel.domain_learning.groups import Occurrence
from bilevel.tasks.scene import Array

CONSISTENT = 0.25  # of how much the offset varies otherwise
ROUGHLY, CLOSE = 0.6, 0.5  # of how much it varies otherwise, and of the agent's usual way: where it is in a place
COMPARABLE = 4.0  # times the least spread of an offset
NEARER = 0.5  # times as far from the agent as any object of the change: then it acts on what is beside it
CARRIED = 0.3  # of the agent's way since it began: an object whose offset changed less was in its hand all the time
LAST_STEPS = 5  # before a change, that tell the controls
MOMENTS = 8  # of each episode, to see how an offset varies otherwise
MOSTLY = 0.8  # of the occurrences
MOST_MEASURED = 100  # occurrences of one change
OTHER_CONTROLS = 2.0  # standard deviations


@dataclass(frozen=True)
class Approach:
    """What the agent did when a change came, as far as it can be seen.

    `touched` are the variables to whose objects the agent came, or which it carried. Where it came to an object that
    the change does not mention, as a button, `beside` is its type and the object of each occurrence. `controls` are the
    means of the last few before it.
    """

    is_agents: bool
    touched: frozenset[str] = frozenset()
    carried: frozenset[str] = frozenset()
    beside: tuple[str, tuple[str, ...]] | None = None
    controls: Array | None = None  # (occurrences, size)
    is_astray: bool = False  # it came to nothing, but carried something


@dataclass(frozen=True)
class _Offsets:
    """From the agent to one object in each occurrence: how far, and how they spread, here and otherwise."""

    distance: float
    spread: float
    usual: float
    carried: bool

    @property
    def is_consistent(self) -> bool:
        return self.spread < CONSISTENT * self.usual

    @property
    def is_close(self) -> bool:
        """Whether the agent is at it, or somewhere in it, as far as that can be told."""
        return self.spread < ROUGHLY * self.usual and self.distance < CLOSE


def approach_of(occurrences: Sequence[Occurrence], episodes: Sequence[ShownEpisode]) -> Approach:
    """Find out whether the agent brought a change about, and to which objects it came for that."""
    some = occurrences[:: 1 + len(occurrences) // MOST_MEASURED]
    scale = _scale(some, episodes)
    offsets = {
        variable: _offsets([occurrence.binding[variable] for occurrence in some], some, episodes, scale)
        for variable in some[0].binding
    }
    found = {variable: each for variable, each in offsets.items() if each is not None and each.is_consistent}
    offsets = {
        kind: _offsets(names, some, episodes, scale, of_nearest=True)
        for kind, names in _nearest_of_types(some, episodes, scale).items()
    }
    nearest = {kind: each for kind, each in offsets.items() if each is not None and not each.carried}
    beside = {kind: each for kind, each in nearest.items() if each.is_consistent}
    controls = _controls(some, episodes)
    if not (found or beside):
        return Approach(False, controls=controls)
    carried = frozenset(variable for variable, each in found.items() if each.carried)
    came_to = {variable: each for variable, each in found.items() if variable not in carried}
    reached = _comparable(came_to, [*came_to.values(), *beside.values()])
    near = _comparable(beside, [*found.values(), *beside.values()])
    if not (reached or near):
        near = {kind: each.distance for kind, each in nearest.items() if each.is_close}
    at, by = min(reached, key=reached.__getitem__, default=None), min(near, key=near.__getitem__, default=None)
    if by is not None and (at is None or near[by] < NEARER * reached[at]):
        every = _nearest_of_types(occurrences, episodes, scale).get(by)
        if every is not None:
            return Approach(True, carried, carried, (by, tuple(every)), controls)
    touched = carried | ({at} if at else set())
    return Approach(True, touched, carried, None, controls, is_astray=at is None)


def _comparable(offsets: Mapping[str, _Offsets], others: Sequence[_Offsets]) -> dict[str, float]:
    """Return how far those are away whose offsets spread little, compared with all of the others."""
    limit = COMPARABLE * min((each.spread for each in others), default=0.0)
    return {name: each.distance for name, each in offsets.items() if each.spread <= limit}


def _offsets(
    names: Sequence[str],
    occurrences: Sequence[Occurrence],
    episodes: Sequence[ShownEpisode],
    scale: Array,
    of_nearest: bool = False,
) -> _Offsets | None:
    """Measure the offsets to an object in each occurrence; `None` where most have no place.

    Otherwise, they are those to its place in the course of the episode, or those to the nearest object of its type.
    """
    here: list[Array] = []
    otherwise: list[Array] = []
    carried = 0
    for name, occurrence in zip(names, occurrences, strict=True):
        episode, step = episodes[occurrence.change.episode], occurrence.change.step - 1
        agent, places = episode.agent, episode.places[:, list(episode.objects).index(name)]
        if np.isnan(places[step]).all():
            continue
        here.append(places[step] - agent[step])
        moments = np.linspace(0, len(agent) - 1, MOMENTS).astype(np.int64)
        usual = _to_nearest(episode, episode.objects[name], moments, scale) if of_nearest else None
        otherwise.append(places[step] - agent[moments] if usual is None else usual)
        begin = min(occurrence.change.begin, step)
        way = agent[step] - agent[begin]
        lag = places[step] - places[begin] - way
        is_there = not np.isnan(lag).all()
        carried += is_there and bool(_length(lag / scale) < CARRIED * _length(way / scale))
    if not here or len(here) < MOSTLY * len(names):
        return None
    middle = float(_length(np.nanmedian(np.stack(here) / scale, axis=0)))
    spreads = _spread(np.stack(here) / scale, 75), _spread(np.concatenate(otherwise) / scale, 50)
    return _Offsets(middle, *spreads, carried >= MOSTLY * len(here))


def _to_nearest(episode: ShownEpisode, kind: str, moments: NDArray[np.int64], scale: Array) -> Array:
    """(moments, coordinates): the offsets to the nearest object of a type, where there is one."""
    rows = [row for row, its in enumerate(episode.objects.values()) if its == kind]
    away = episode.places[moments][:, rows] - episode.agent[moments][:, None]
    lengths = np.where(np.isnan(away).all(axis=2), np.inf, _length(away / scale))
    nearest: Array = away[np.arange(len(moments)), lengths.argmin(axis=1)]
    return nearest[~np.isnan(nearest).all(axis=1)]


def _length(offsets: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """(...): how long offsets are; of many coordinates the largest is left out, as a wrist may turn as it likes."""
    parts = np.sort(np.abs(np.nan_to_num(offsets)), axis=-1)
    return np.asarray(np.linalg.norm(parts[..., : parts.shape[-1] - (parts.shape[-1] > 3)], axis=-1))


def _spread(offsets: Array, percentile: float) -> float:
    """How far offsets are from their median."""
    return float(np.percentile(_length(offsets - np.nanmedian(offsets, axis=0)), percentile))


def _scale(occurrences: Sequence[Occurrence], episodes: Sequence[ShownEpisode]) -> Array:
    """(coordinates,): how far the agent moves about in each, so that metres and radians can be compared."""
    ways = np.concatenate([episodes[number].agent for number in sorted({o.change.episode for o in occurrences})])
    scale: Array = np.abs(ways - np.median(ways, axis=0)).mean(axis=0) + 1e-6
    return scale


def _nearest_of_types(
    occurrences: Sequence[Occurrence], episodes: Sequence[ShownEpisode], scale: Array
) -> dict[str, list[str]]:
    """Return for each type the object nearest to the agent in each occurrence, but for those in the change.

    Types of which there is not always one are left out.
    """
    found: dict[str, list[str]] = {}
    for occurrence in occurrences:
        episode, step = episodes[occurrence.change.episode], occurrence.change.step - 1
        offsets = (episode.places[step] - episode.agent[step]) / scale
        away = np.where(np.isnan(offsets).all(axis=1), np.inf, _length(offsets))
        taken = set(occurrence.binding.values())
        best: dict[str, tuple[float, str]] = {}
        for (name, kind), distance in zip(episode.objects.items(), away.tolist(), strict=True):
            if name not in taken and distance < best.get(kind, (np.inf, ""))[0]:
                best[kind] = distance, name
        for kind, (_, name) in best.items():
            found.setdefault(kind, []).append(name)
    return {kind: names for kind, names in sorted(found.items()) if len(names) == len(occurrences)}


def _controls(occurrences: Sequence[Occurrence], episodes: Sequence[ShownEpisode]) -> Array | None:
    """(occurrences, size): the mean of the last controls before each change; `None` where none are on record."""
    given = [(episodes[each.change.episode].controls, each.change.step) for each in occurrences]
    if not all(controls.size for controls, _ in given):
        return None
    return np.stack([controls[max(0, step - LAST_STEPS) : step].mean(axis=0) for controls, step in given])


def same_controls(one: Approach, other: Approach) -> bool:
    """Whether two changes came of the same controls, as far as that can be seen."""
    if one.controls is None or other.controls is None:
        return True
    apart = np.abs(one.controls.mean(axis=0) - other.controls.mean(axis=0))
    usual = np.sqrt((one.controls.var(axis=0) + other.controls.var(axis=0)) / 2) + 0.1
    return bool((apart < OTHER_CONTROLS * usual).all())

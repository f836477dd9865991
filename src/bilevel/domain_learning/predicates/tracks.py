"""How everything moved in a demonstration: what was at rest, what moved with the agent, what leapt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.domain_learning.predicates.thresholds import Floats
from bilevel.tasks.scene import Roster
from bilevel.tasks.spec import Position, Spec

Bools = NDArray[np.bool_]

STILL = 0.02  # of the agent's usual step: who moves less is at rest
TOGETHER = 0.3  # of the agent's step: who differs less from it moves with the agent
SMOOTHED = 5  # timesteps whose mean is taken where things at rest seem to move
NOISES = 4.0  # times the noise: less is none
RESOLUTION = 0.2  # of the agent's usual step: distances that are less are none
MOST_AXES = 3  # what an agent has besides is no place, such as a turn that is declared as a position
LEAP = 4.0  # times the agent's fastest step: nobody carries an object so far at once
SHORTEST = 5  # steps of a rest, and of moving together


@dataclass(frozen=True)
class Track:
    """The arrays of a demonstration, and the coordinates that agent and objects have in common."""

    demonstration: Demonstration
    spec: Spec
    axes: tuple[str, ...]

    @cached_property
    def roster(self) -> Roster:
        """The objects of the demonstration."""
        return Roster(self.demonstration.objects)

    @cached_property
    def agent(self) -> Floats:
        """(timesteps, agent features)"""
        return self.demonstration.agent.astype(float)

    @cached_property
    def features(self) -> Floats:
        """(timesteps, objects, columns)"""
        return self.demonstration.features.astype(float)

    @property
    def visible(self) -> Bools:
        """(timesteps, objects): which are seen when."""
        return self.demonstration.visible

    @property
    def length(self) -> int:
        """How many timesteps there are."""
        return len(self.visible)

    @cached_property
    def _first_seen(self) -> dict[str, int]:
        """The timestep at which each object is seen for the first time."""
        return dict(zip(self.roster.names, self.visible.argmax(axis=0).tolist(), strict=True))

    def seen_before(self, timestep: int) -> frozenset[str]:
        """Return the objects that were seen before a timestep."""
        return frozenset(name for name, first in self._first_seen.items() if first < timestep)

    @cached_property
    def hand(self) -> Floats:
        """(timesteps, axes): where the agent is."""
        return self.agent[:, [self.spec.agent_column[axis] for axis in self.axes]]

    @cached_property
    def places(self) -> Floats:
        """(timesteps, objects, axes): where the objects are; not a number where they are not seen, or nowhere."""
        places = self.features[:, :, [self.spec.column[axis] for axis in self.axes]]
        for row, kind in enumerate(self.roster.objects.values()):
            if not has_place(self.spec, kind, self.axes):
                places[:, row] = np.nan
        places[~self.visible] = np.nan
        return places


def has_place(spec: Spec, kind: str, axes: Sequence[str]) -> bool:
    """Return whether objects of a type have all these coordinates."""
    return bool(axes) and all(isinstance(spec.object_roles[kind].get(axis), Position) for axis in axes)


def common_axes(spec: Spec) -> tuple[str, ...]:
    """Return the agent's coordinates that some type of objects has, too: the first three, if there are more."""
    wanted = {
        name for roles in spec.object_roles.values() for name, role in roles.items() if isinstance(role, Position)
    }
    names = [name for name, role in spec.agent_roles.items() if isinstance(role, Position) and name in wanted]
    return tuple(names[:MOST_AXES])


@dataclass(frozen=True)
class Motion:
    """Who was at rest and who was carried, (timesteps, objects) each."""

    at_rest: Bools
    carried: Bools
    moved: Bools  # since the timestep before
    leapt: Bools  # so far since the timestep before that nobody can have carried it

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """(rests, 2): the last timestep of each rest, and whose; at the end of the episode, of all not carried."""
        ends = self.at_rest & ~np.append(self.at_rest[1:], np.zeros_like(self.at_rest[:1]), axis=0)
        ends[-1] = ~self.carried[-1]
        return np.argwhere(ends)


@dataclass(frozen=True)
class Pace:
    """How far the agent moves in a step, usually and at most, and how far things at rest seem to move."""

    usual: float
    fastest: float
    noise: float

    @classmethod
    def of(cls, tracks: Sequence[Track]) -> Pace:
        """Measure it. At most timesteps most things are at rest, so what they usually seem to move is noise."""
        steps = np.concatenate([np.linalg.norm(np.diff(track.hand, axis=0), axis=1) for track in tracks])
        seeming = np.concatenate([np.linalg.norm(np.diff(track.places, axis=0), axis=2).ravel() for track in tracks])
        seeming = seeming[np.isfinite(seeming)]
        noise = float(np.median(seeming)) if len(seeming) else 0.0
        moving = steps[steps > 0.01 * steps.max(initial=0.0)]
        return cls(float(np.median(moving)), float(moving.max()), noise) if len(moving) else cls(1.0, 1.0, noise)

    @property
    def window(self) -> int:
        """Over how many timesteps places are averaged before it is asked who moves."""
        return SMOOTHED if self.noise > STILL * self.usual else 1

    @property
    def still(self) -> float:
        """Who moves less in a step is at rest."""
        return max(STILL * self.usual, NOISES * self.noise / self.window)

    @property
    def resolution(self) -> float:
        """The least distance that counts."""
        return max(RESOLUTION * self.usual, NOISES * self.noise)


def _smoothed(places: Floats, window: int) -> Floats:
    """(timesteps, …): the means of so many timesteps around each; the first and the last go on for ever."""
    half = window // 2
    padded = np.concatenate([np.repeat(places[:1], half, axis=0), places, np.repeat(places[-1:], half, axis=0)])
    return np.asarray(np.mean([padded[late : late + len(places)] for late in range(window)], axis=0))


def motion_of(track: Track, pace: Pace) -> Motion:
    """Return who rests and who is carried when."""
    still, places, where = pace.still, _smoothed(track.places, pace.window), _smoothed(track.hand, pace.window)
    own, hand = np.diff(places, axis=0), np.diff(where, axis=0)[:, None]
    distance = np.nan_to_num(np.linalg.norm(own, axis=2))
    apart, speed = np.linalg.norm(own - hand, axis=2), np.linalg.norm(hand, axis=2)
    together = (distance > still) & (speed > still) & (np.nan_to_num(apart, nan=np.inf) < TOGETHER * speed)
    offsets = places - where[:, None]
    carried = np.zeros(track.visible.shape, bool)
    for row in range(len(track.roster.names)):
        carried[:, row] = _carried(together[:, row], offsets[:, row])
    rests = np.zeros(track.visible.shape, bool)
    for row in range(len(track.roster.names)):
        for start, end in runs(distance[:, row] <= still):
            rests[start : end + 1, row] |= end - start >= SHORTEST
    distance = np.append(np.zeros_like(distance[:1]), distance, axis=0)
    return Motion(rests & ~carried & track.visible, carried, distance > still, distance > LEAP * pace.fastest)


def runs(flags: Bools) -> list[tuple[int, int]]:
    """Return where each run of true ones begins, and where it has ended."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _carried(together: Bools, offsets: Floats) -> Bools:
    """(timesteps,): when an object was carried: while it moved with the agent, and while it rested at the same offset.

    Both arguments are of one object: whether it moved with the agent, for each step, and where it was from it.
    """
    carried = np.zeros(len(offsets), bool)
    last: tuple[int, int] | None = None
    for start, end in runs(together):
        if last is not None:
            known = offsets[last[0] : last[1] + 1]
            spread = np.ptp(known, axis=0) + 1e-3 * np.ptp(offsets, axis=0)
            between = offsets[last[1] : start + 1]
            if ((between >= known.min(0) - spread) & (between <= known.max(0) + spread)).all():
                start = last[0]
        if end - start >= SHORTEST:
            carried[start : end + 1] = True
        last = start, end
    return carried

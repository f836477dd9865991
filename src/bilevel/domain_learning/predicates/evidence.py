"""What demonstrations have to say about predicates: the tracks of all of them, and how everything moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.domain_learning.predicates.tracks import SHORTEST, Bools, Motion, Pace, Track, common_axes, motion_of
from bilevel.tasks.spec import Spec


@dataclass(frozen=True)
class Evidence:
    """The tracks of all demonstrations, and how everything moved in each."""

    spec: Spec
    axes: tuple[str, ...]
    tracks: Sequence[Track]
    motions: Sequence[Motion]
    resolution: float  # the least distance that counts

    @classmethod
    def of(cls, demonstrations: Iterable[Demonstration], spec: Spec) -> Evidence:
        """Look at all demonstrations."""
        axes = common_axes(spec)
        tracks = [Track(replace(demonstration, snapshots={}), spec, axes) for demonstration in demonstrations]
        pace = Pace.of(tracks)
        return cls(spec, axes, tracks, [motion_of(track, pace) for track in tracks], pace.resolution)

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """The types of objects that were ever carried."""
        return tuple(kind for kind in self.spec.objects if any(self._has(m.carried, t, kind) for t, m in self.both))

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The types of objects that move from place to place, and do not only leap."""
        return tuple(kind for kind in self.spec.objects if any(self._has(_moves_on(m), t, kind) for t, m in self.both))

    @property
    def both(self) -> list[tuple[Track, Motion]]:
        """Each track with its motion."""
        return list(zip(self.tracks, self.motions, strict=True))

    @staticmethod
    def _has(flags: Bools, track: Track, kind: str) -> bool:
        return bool(flags[:, track.roster.rows(kind)].any())


def _moves_on(motion: Motion) -> Bools:
    """(timesteps, objects): who has moved for a few timesteps without a leap."""
    moving = motion.moved & ~motion.leapt
    later = [moving[late : len(moving) - SHORTEST + late] for late in range(SHORTEST)]
    return np.asarray(np.all(later, axis=0), bool)

"""Surprises: objects that teleport away from their goals, and a hand that is jostled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilevel.tabletop.observation import Bools

_NONE = np.empty(0, np.intp)


def teleporting(rng: np.random.Generator, at_goal: Bools, rate: float) -> NDArray[np.intp]:
    """Which of the objects at their goals teleport at this step; each of them with the same small probability."""
    count = int(np.count_nonzero(at_goal))
    if count == 0 or rate == 0 or rng.random() < (1 - rate) ** count:  # none of them, as nearly always
        return _NONE
    while True:
        struck = rng.random(count) < rate
        if struck.any():
            return np.flatnonzero(at_goal)[struck]


@dataclass(frozen=True)
class Bursts:
    """How a hand is jostled: now and then, for a few steps, a constant push; sometimes the fingers do the opposite."""

    amplitude: float = 0.7  # of the push, as a control
    rate: float = 0.02  # bursts that begin, per step
    shortest: int = 5  # steps
    longest: int = 20
    flips: float = 0.15  # the part of bursts in which the fingers do the opposite


_APART = 1  # keeps a disturbance's random numbers apart from those of the world with the same seed


class Jostle:
    """Disturbs the controls of one episode in bursts, with random numbers of its own."""

    def __init__(self, bursts: Bursts, seed: int) -> None:
        self._bursts = bursts
        self._rng = np.random.default_rng([seed, _APART])
        self._left = 0
        self._push = np.zeros(3, np.float32)
        self._flip = False

    def __call__(self, control: NDArray[np.float32]) -> NDArray[np.float32]:
        bursts, rng = self._bursts, self._rng
        if self._left == 0 and rng.random() < bursts.rate:
            self._left = int(rng.integers(bursts.shortest, bursts.longest))
            self._push = (rng.uniform(-1, 1, 3) * bursts.amplitude).astype(np.float32)
            self._flip = bool(rng.random() < bursts.flips)
        if self._left == 0:
            return control
        self._left -= 1
        disturbed = np.array(control, np.float32)
        disturbed[:3] += self._push
        if self._flip:
            disturbed[3] *= -1
        return np.clip(disturbed, -1, 1, out=disturbed)

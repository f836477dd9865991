"""Telling an episode in which nothing will happen any more.

A network that has no memory and gets stuck comes to rest: the hand pushes to where it already is, at every step until
the time is up. If nothing that is seen has moved for a thousand steps, in a world that does nothing by itself either,
then the same is seen, the same is done, and the same comes of it, for ever.
"""

from __future__ import annotations

import numpy as np

from bilevel.policies.policies import WatchedPolicy
from bilevel.policies.rollout import Moment
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop

STILL = 1e-6  # metres, and whatever else is seen is measured in: about what rounding does to a number of 32 bits
LONG = 1000  # steps


class Settling:
    """Watches whether everything has come to rest."""

    def __init__(self, environment: Tabletop) -> None:
        self._environment = environment
        self._seen: Observation | None = None  # since when
        self._steps = 0

    def __call__(self, moment: Moment) -> None:
        if self._seen is not None and _close(moment.observation, self._seen):
            self._steps += 1
        else:
            self._seen, self._steps = moment.observation, 0

    @property
    def is_over(self) -> bool:
        return self._steps >= LONG and not self._environment.is_restless


def may_settle(policy: WatchedPolicy, noise: float) -> bool:
    """Whether rest means that nothing will happen: for a policy without memory whose hand nobody jostles."""
    return not noise and getattr(policy, "is_memoryless", False)


def _close(one: Observation, other: Observation) -> bool:
    return all(np.abs(one[part] - other[part]).max(initial=0.0) <= STILL for part in ("agent", "objects")) and bool(
        (one["visible"] == other["visible"]).all()
    )

"""Living through a demonstration again, from its seed, and seeing whether it is the same bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import Tabletop
from bilevel.tabletop.tasks import find_task


@dataclass(frozen=True)
class Difference:
    """Where a replay first differs: the moment, what it is that differs, and by how much if it is numbers."""

    moment: int
    what: str
    amount: float | None = None

    def __str__(self) -> str:
        amount = f" by {self.amount:.3g}" if self.amount is not None else ""
        return f"first differs at step {self.moment}: {self.what}{amount}"


def replay(demonstration: Demonstration, environment: Tabletop | None = None) -> Difference | None:
    """Execute the controls again in a fresh environment; `None` if all that is seen and saved is the same."""
    recipe = demonstration.recipe
    environment = environment or find_task(recipe.task).make(**recipe.arguments)
    observation, info = environment.reset(seed=demonstration.seed)
    for moment in range(demonstration.steps + 1):
        found = _difference(demonstration, moment, observation, info) or _unlike(demonstration, moment, environment)
        if found:
            return found
        if moment < demonstration.steps:
            observation, _, _, _, info = environment.step(demonstration.executed[moment])
    return None


def _difference(
    demonstration: Demonstration, moment: int, observation: Observation, info: dict[str, Any]
) -> Difference | None:
    """How what is seen and told at a moment differs from the record."""
    found = _arrays_differ(moment, {**demonstration.observation(moment)}, {**observation})
    goal = next(goal for since, goal in reversed(demonstration.goals) if since <= moment)
    events = tuple(event for when, event in demonstration.events if when == moment)
    outcome = demonstration.outcome if moment == demonstration.steps else None
    told = {"goal": goal, "events": events, "outcome": outcome}
    others = [name for name, value in told.items() if info[name] != value]
    return found or (Difference(moment, f"the {others[0]}") if others else None)


def _unlike(demonstration: Demonstration, moment: int, environment: Tabletop) -> Difference | None:
    """How the whole state differs, where there is a snapshot of it."""
    when, snapshot = demonstration.snapshot_before(moment)
    return _arrays_differ(moment, snapshot, environment.save()) if when == moment else None


def _arrays_differ(moment: int, one: Mapping[str, Any], other: Mapping[str, Any]) -> Difference | None:
    for name, array in one.items():
        if name not in other or not _same(array, other[name]):
            return Difference(moment, f"'{name}'", _amount(array, other.get(name, array)))
    return None


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _amount(one: NDArray[Any], other: NDArray[Any]) -> float | None:
    """The largest difference of two arrays of numbers."""
    if one.shape != other.shape:
        return None
    return float(np.max(np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)), initial=0.0))

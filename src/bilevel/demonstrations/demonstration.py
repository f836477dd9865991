"""A demonstration: one episode of an expert, with all that it takes to learn from it and to live through it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.observation import Array, Observation
from bilevel.tabletop.tabletop import Snapshot

KEYFRAME = 64  # steps from one snapshot of the simulator to the next


def keyframes(steps: int) -> NDArray[np.int64]:
    """(keyframes,): the moments at which an episode of so many steps is saved, its end among them."""
    return np.array([*range(0, steps, KEYFRAME), steps], np.int64)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that an episode depends on besides its number."""

    task: str
    arguments: Mapping[str, Any]  # of the environment, those left out too
    noise: Mapping[str, Any] | None  # as in `Bursts`
    seed: int

    def differences(self, other: Recipe) -> str:
        """Where this recipe differs from another, in words."""
        ours, theirs = ({"task": r.task, **r.arguments, "noise": r.noise, "seed": r.seed} for r in (self, other))
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        return ", ".join(f"{name.replace('_', ' ')} {ours.get(name)} instead of {theirs.get(name)}" for name in names)


@dataclass(frozen=True)
class Demonstration:
    """A moment is what is seen before a step, and at the end: there is one more than there are steps.

    `controls` are what the expert wanted, to be imitated; `executed` is what was done, which differs where it was
    disturbed, to be replayed. `goals` and `events` come with the moment at which they were first seen.
    """

    recipe: Recipe
    seed: int
    attempt: int  # how many episodes with other seeds had failed before
    outcome: str
    types: Mapping[str, str]  # of all objects that were ever visible, by their names
    agent: Array  # (moments, 4)
    objects: Array  # (moments, slots, features)
    visible: NDArray[np.int8]  # (moments, slots)
    controls: Array  # (steps, 4)
    executed: Array  # (steps, 4)
    actions: tuple[Action, ...]  # (steps,): what the expert was doing
    goals: tuple[tuple[int, Facts], ...]
    events: tuple[tuple[int, str], ...]
    snapshots: Mapping[str, NDArray[Any]]  # (keyframes, ...) each: the parts of the environment's snapshots

    @property
    def steps(self) -> int:
        return len(self.controls)

    def observation(self, moment: int) -> Observation:
        return {"agent": self.agent[moment], "objects": self.objects[moment], "visible": self.visible[moment]}

    def observations(self) -> list[Observation]:
        return [self.observation(moment) for moment in range(self.steps + 1)]

    @property
    def keyframes(self) -> NDArray[np.int64]:
        """(keyframes,): the moments of the snapshots."""
        return keyframes(self.steps)

    def snapshot_before(self, moment: int) -> tuple[int, Snapshot]:
        """The last snapshot that is not after a moment, and when it was taken.

        Restore it and execute the controls from there on to be at that moment again.
        """
        if not 0 <= moment <= self.steps:
            raise ValueError(f"the episode has moments 0 to {self.steps}, not {moment}")
        index = int(np.searchsorted(self.keyframes, moment, side="right")) - 1
        return int(self.keyframes[index]), {name: part[index] for name, part in self.snapshots.items()}

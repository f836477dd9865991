"""Parts of an import: fewer timesteps, controls as the task has them, and goals in hindsight.

Play has no goals: there, what a demonstrator brought about is what it wanted. A user's function of an episode's scenes
says which stretches of it are demonstrations, and of what:

    def hindsight(scenes):
        for start, end, cube in releases(scenes):
            yield start, end, [Atom("on", (cube, "table"))]  # facts that were wanted
            yield start, end, [with_target(scene, cube) for scene in scenes[start : end + 1]]  # or goal(scene) sees it

Where goals are facts about objects that are there anyway, `final_facts` or `each_fact` will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.importing.recorded import RecordedEpisode
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tasks.checking import SETTLING
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels, call

ROUNDING = 1e-5  # of the range of a control: so far out of bounds is not out of bounds

Hindsight = Callable[[Sequence[Scene]], Iterable[Any]]
Combine = Literal["mean", "sum", "last"]
COMBINED: dict[Combine, Callable[[NDArray[Any]], Any]] = {
    "mean": lambda controls: controls.mean(axis=0),
    "sum": lambda controls: controls.sum(axis=0),
    "last": lambda controls: controls[-1],
}

# Fewer timesteps


def every(recorded: float | None, wanted: float | None) -> int:
    """Return k where every k-th timestep is to be kept, so that there are `wanted` ones per second."""
    if wanted is None:
        return 1
    if not wanted > 0:
        raise BadInput(f"--rate is in Hz, and more than 0, not {wanted:g}")
    if recorded is None:
        raise BadInput("the recordings do not say how many timesteps there are per second: give --recorded-rate HZ")
    k = round(recorded / wanted)
    if k < 1 or abs(recorded / wanted - k) > 1e-6 * k:
        fitting = ", ".join(f"{recorded / divisor:g}" for divisor in range(1, 6))
        raise BadInput(f"{wanted:g} Hz is no whole part of the recorded {recorded:g} Hz; that would be: {fitting}, ...")
    return k


def thin(episode: RecordedEpisode, k: int, combine: Combine, switches: Sequence[int] = ()) -> RecordedEpisode:
    """Return an episode with every k-th timestep, and the last one, wherever that is; controls are combined.

    The numbers of a control that are `switches` are the last ones of each stretch, as nothing lies between open and
    closed; so are controls that are whole numbers.
    """
    last, controls = len(episode.observations) - 1, episode.controls
    if k == 1 or last < 1:
        return episode
    kept = [*range(0, last, k), last]
    if controls is not None:
        latest = controls[np.array(kept[1:]) - 1]
        if controls.dtype.kind == "f" or controls.ndim > 1:
            combined = np.array([COMBINED[combine](controls[start:end]) for start, end in pairwise(kept)])
            if controls.ndim == 2 and switches:
                combined[:, list(switches)] = latest[:, list(switches)]
            latest = combined
        controls = latest
    infos = None if episode.infos is None else [episode.infos[now] for now in kept]
    return replace(episode, observations=[episode.observations[now] for now in kept], controls=controls, infos=infos)


# Controls


def as_controls(recorded: NDArray[Any], controls: Controls, where: str) -> tuple[NDArray[Any], int]:
    """Return controls, (steps, ...), as the task has them, within bounds, and how many numbers were out of bounds."""
    size = controls.size if isinstance(controls, BoxControls) else 1
    given = math.prod(recorded.shape[1:])
    if given != size:
        remedy = "give --controls-from file.py:function, which makes those of the task"
        raise BadInput(f"{where}: a control has {given} numbers, but the task takes {size}; {remedy}")
    flat = recorded.reshape(len(recorded), size).astype(np.float64)
    for step in np.flatnonzero(~np.isfinite(flat).all(axis=1)):
        raise BadInput(f"{where}, step {step}: the control is {flat[step].tolist()}, which is not finite")
    if isinstance(controls, BoxControls):
        low, high = np.array(controls.low), np.array(controls.high)
        outside = np.maximum(low - flat, flat - high) > ROUNDING * (high - low)
        return np.clip(flat, low, high).astype(controls.dtype).reshape(-1, *controls.shape), int(outside.sum())
    last = controls.start + controls.n - 1
    for step in np.flatnonzero((flat != np.floor(flat)) | (flat < controls.start) | (flat > last)):
        what = f"the control is {flat[step, 0]:g}, but the task takes whole numbers, {controls.start} to {last}"
        raise BadInput(f"{where}, step {step}: {what}")
    return flat[:, 0].astype(controls.dtype), 0


# Goals in hindsight


@dataclass(frozen=True)
class Stretch:
    """Timesteps `start` to `end` of an episode, both included, and what was wanted, where the scenes do not say so."""

    start: int
    end: int
    scenes: Sequence[Scene]
    goal: Facts | None = None


def stretches(hindsight: Hindsight, scenes: Sequence[Scene], where: str) -> list[Stretch]:
    """Return what a user's function makes of an episode; `BadInput` where that makes no sense."""
    what = f"{where}: hindsight(scenes)"
    return [_stretch(each, scenes, what) for each in call(what, lambda: list(hindsight(scenes)))]


def _stretch(given: Any, scenes: Sequence[Scene], what: str) -> Stretch:
    try:
        start, end, wanted = given
        start, end, parts = int(start), int(end), list(wanted)
    except (TypeError, ValueError):
        form = "start, end, and scenes or facts"
        raise BadInput(f"{what} must give {form}, but gave {type(given).__name__} {given!r:.60}") from None
    if not 0 <= start < end < len(scenes):
        raise BadInput(f"{what} gave timesteps {start} to {end}, but the episode has 0 to {len(scenes) - 1}")
    if parts and all(isinstance(part, Scene) for part in parts):
        if len(parts) != end - start + 1:
            raise BadInput(f"{what} gave {len(parts)} scenes for timesteps {start} to {end}, both included")
        return Stretch(start, end, parts)
    if not all(isinstance(part, Atom) for part in parts):
        raise BadInput(f"{what} gave neither scenes nor facts, but {parts[0]!r:.60}")
    return Stretch(start, end, scenes[start : end + 1], frozenset(parts))


def final_facts(labels: Labels, predicates: frozenset[str]) -> Hindsight:
    """Return the hindsight that wanted the facts of these predicates that hold at the end of the episode."""
    return lambda scenes: [(0, len(scenes) - 1, _facts(labels, scenes[-1], predicates))]


def each_fact(labels: Labels, predicates: frozenset[str]) -> Hindsight:
    """Return the hindsight that cuts an episode wherever facts of these predicates come true, and wanted just these.

    They must stay true for some steps; what comes after the last of them is left out.
    """

    def hindsight(scenes: Sequence[Scene]) -> Iterable[Any]:
        facts = [_facts(labels, scene, predicates) for scene in scenes]
        start = 0
        for now in range(1, len(scenes)):
            lasting = frozenset.intersection(*facts[now : now + SETTLING + 1])
            achieved = lasting - facts[now - 1]
            if achieved:
                yield start, now, achieved
                start = now

    return hindsight


def _facts(labels: Labels, scene: Scene, predicates: frozenset[str]) -> Facts:
    return frozenset(fact for fact in labels.state(scene) if fact.predicate in predicates)


BY_FACTS = {"final": final_facts, "each": each_fact}  # as the command line names them

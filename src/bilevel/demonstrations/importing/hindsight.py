"""Goals in hindsight: what a demonstrator brought about is what it wanted.

Play has no goals. A user's function of an episode's scenes says which stretches of it are demonstrations, and of what:

    def hindsight(scenes):
        for start, end, cube in releases(scenes):
            yield start, end, [Atom("on", (cube, "table"))]  # facts that were wanted
            yield start, end, [with_target(scene, cube) for scene in scenes[start : end + 1]]  # or goal(scene) sees it

Where goals are facts about objects that are there anyway, `final_facts` or `each_fact` will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tasks.checking import SETTLING
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels, call

Hindsight = Callable[[Sequence[Scene]], Iterable[Any]]


@dataclass(frozen=True)
class Stretch:
    """Timesteps `start` to `end` of an episode, both included, and what was wanted, where the scenes do not say so."""

    start: int
    end: int
    scenes: Sequence[Scene]
    goal: Facts | None = None


def stretches(hindsight: Hindsight, scenes: Sequence[Scene], where: str) -> list[Stretch]:
    """Return what a user's function makes of an episode; `BadInput` where that makes no sense."""
    found = call(f"{where}: hindsight(scenes)", lambda: list(hindsight(scenes)))
    return [_stretch(each, scenes, f"{where}: hindsight(scenes)") for each in found]


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

    def hindsight(scenes: Sequence[Scene]) -> Iterable[Any]:
        return [(0, len(scenes) - 1, _facts(labels, scenes[-1], predicates))]

    return hindsight


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

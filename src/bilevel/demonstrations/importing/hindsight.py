"""Goals in hindsight: what a demonstrator brought about is what it wanted.

Play has no goals. A user's function of an episode's scenes says which stretches of it are demonstrations, and of what:

    def hindsight(scenes):
        for start, end, cube in releases(scenes):
            yield start, end, [Atom("on", (cube, "table"))]  # facts that were wanted
            yield start, end, [with_target(scene, cube) for scene in scenes[start : end + 1]]  # or goal(scene) sees it

Where goals are facts about objects that are there anyway, `final_facts` will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels, call

FINAL = "final"  # the name of `final_facts` on the command line
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
    """Return the hindsight for which the facts of these predicates that hold at the end were the goal."""

    def hindsight(scenes: Sequence[Scene]) -> Iterable[Any]:
        wanted = {fact for fact in labels.state(scenes[-1]) if fact.predicate in predicates}
        return [(0, len(scenes) - 1, wanted)]

    return hindsight

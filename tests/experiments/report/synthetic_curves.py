"""Curves made up for tests: of all axes that a test needs, falling as those of a real run do."""

from __future__ import annotations

from collections.abc import Sequence

from synthetic import about

from bilevel.experiments.hard.axes import AXES, METHODS, TASKS
from bilevel.experiments.hard.curves import Curves, FoundCurve, FoundPoint
from bilevel.experiments.hard.selection import Curve, HardSelection, Point, points
from bilevel.experiments.reproduction.folder import Experiment

RANKS = {"expert": 0, "expert-estimating": 0, "bison": 1, "pddl-nn": 4}
SLOW = {"det-replan": 0.2, "det-replan-search": 0.05, "ndt-replan": 0.03}  # seconds for a plan with one object


def found_point(point: Point, episodes: int) -> FoundPoint:
    """Return about what a point comes to: better methods fall later."""
    values = list(AXES[point.curve.axis].values)
    rank = RANKS.get(point.curve.variant, 2)
    step = values.index(point.value) + point.seed % 2
    successes = max(0, episodes - max(0, step + rank - 4) * episodes // 4)
    pause = SLOW.get(point.curve.variant, 0.001) * point.unit.objects
    return FoundPoint(
        value=float(point.value),
        seed=point.seed,
        objects=point.unit.objects,
        episodes=episodes,
        successes=successes,
        reasons={"time": episodes - successes} if successes < episodes else {},
        mean_steps=900.0 if successes else None,
        decision_microseconds=100.0 + 1000 * pause,
        pause_seconds=pause,
        seconds=2 * pause,
    )


def curves_like(
    axes: Sequence[str] = tuple(AXES), tasks: Sequence[str] = TASKS, methods: Sequence[str] = METHODS, seeds: int = 3
) -> Curves:
    """Return curves as a run with this selection finds them."""
    found: dict[Curve, list[FoundPoint]] = {}
    for point in points(HardSelection(axes, tasks, methods, seeds=seeds), Experiment()):
        found.setdefault(point.curve, []).append(found_point(point, 10))
    return Curves(about(), [FoundCurve(**curve._asdict(), points=read) for curve, read in found.items()])

"""What was found in the hard suite, in lines of JSON: one for each curve, with a point for each value and seed."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Annotated, Any, NamedTuple

import msgspec

from bilevel.experiments.hard.axes import AXES, Axis
from bilevel.experiments.hard.selection import Curve, Point, points, read_asked
from bilevel.experiments.hard.symbols import SolveSymbols, SymbolicResults
from bilevel.experiments.reproduction.findings import About
from bilevel.experiments.reproduction.folder import ExperimentFolder
from bilevel.experiments.reproduction.measurements import Evaluate
from bilevel.experiments.reproduction.summary import FolderFiles, say_how
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.files import write_atomically
from bilevel.json_files import Amount, Count, decode
from bilevel.methods.methods import EXPERT
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.expressions import read_text

CURVES = "curves.jsonl"
CURVE_BEGINNING = b'{"kind": "curve"'  # of the line of a curve


class FoundPoint(msgspec.Struct, frozen=True):
    """All episodes of one value with one seed."""

    value: float
    seed: Count
    objects: Count
    episodes: Count
    successes: Count
    reasons: Mapping[str, Count]  # of the failures, the commonest first
    mean_steps: Amount | None  # of the successes; of symbols, actions
    decision_microseconds: Amount | None  # of the policy, for each step
    pause_seconds: Amount | None  # the longest that it took for one step, the mean over episodes
    seconds: Amount | None  # that it took for an episode, on average


class FoundCurve(msgspec.Struct, frozen=True, tag_field="kind", tag="curve", rename={"variant": "method"}):
    """A curve: one method on one task, along one axis."""

    axis: str
    task: str
    variant: str  # in `VARIANTS`
    objects: Count | None  # where the axis is not about their number
    points: Annotated[Sequence[FoundPoint], msgspec.Meta(min_length=1)]


class Curves(msgspec.Struct, frozen=True):
    """All that was found."""

    about: About
    curves: Sequence[FoundCurve]

    def lines(self) -> str:
        """Return one line of JSON for each curve, after one that says how they were made."""
        found: Iterable[About | FoundCurve] = (self.about, *self.curves)
        return "".join(f"{json.dumps(msgspec.to_builtins(line))}\n" for line in found)


def write_curves(folder: ExperimentFolder) -> None:
    """Write what was found, and which command made it."""
    command = shlex.join(["bilevel", *sys.argv[1:]])
    write_atomically(folder.path / CURVES, summarise_curves(folder, command).lines())


def read_curves(path: Path) -> Curves:
    """Read what `Curves.lines` wrote; `BadInput` for anything else."""
    return parse_curves(read_text(path).splitlines(), str(path))


def parse_curves(lines: Iterable[str], where: str) -> Curves:
    """Read lines; `BadInput`, which says where they come from, for any that is none of the hard suite's."""
    kind: Any = About | FoundCurve
    found: list[About | FoundCurve] = [
        decode(line, kind, f"{where}, line {number}: not a line that `bilevel benchmark hard` wrote")
        for number, line in enumerate(lines, 1)
    ]
    abouts = [line for line in found if isinstance(line, About)]
    if len(abouts) != 1:
        raise BadInput(f"{where}: a line that says how it was made is missing")
    return Curves(abouts[0], [line for line in found if isinstance(line, FoundCurve)])


def curve_problems(curves: Curves) -> Iterator[str]:
    """Yield what is wrong with curves, beside lines of the wrong form; the first is enough."""
    seen: set[Curve] = set()
    for found in curves.curves:
        curve, where = _curve(found), f"{found.variant} on {found.task} along {found.axis}"
        if found.axis not in AXES:
            yield f"unknown axis '{found.axis}'"
        elif found.variant not in VARIANTS:
            yield f"unknown method '{found.variant}'"
        elif curve in seen:
            yield f"two lines for {where}"
        elif not all(_adds_up(AXES[found.axis], point) for point in found.points):
            yield f"odd numbers in the line for {where}"
        elif len({(point.value, point.seed) for point in found.points}) < len(found.points):
            yield f"two points for one value and seed in the line for {where}"
        seen.add(curve)


def _curve(found: FoundCurve) -> Curve:
    return Curve(found.axis, found.task, found.variant, found.objects)


def _adds_up(axis: Axis, point: FoundPoint) -> bool:
    """Whether each episode was a success or failed for a reason, at a value that can be along the axis."""
    counts = (point.successes, *point.reasons.values())
    can_be = math.isfinite(point.value) and (point.value > 0 or not axis.is_log)
    return can_be and sum(counts) == point.episodes > 0


# From a folder

Place = tuple[Curve, float, int]  # a curve, a value, a seed


def summarise_curves(folder: ExperimentFolder, command: str) -> Curves:
    """Return the curves of all that was asked for in a folder, as far as it is there."""
    wanted: dict[Place, Point] = {}
    for selection in read_asked(folder):
        for point in points(selection, folder.experiment):
            wanted[point.curve, point.value, point.seed] = point
    files = FolderFiles(folder)
    episodes = {unit: _episodes(unit, files) for unit in dict.fromkeys(point.unit for point in wanted.values())}
    found: dict[Curve, list[FoundPoint]] = {}
    for place, point in sorted(wanted.items(), key=lambda item: _order(item[0])):
        if episodes[point.unit]:
            allowed = _steps_allowed(point, wanted, episodes)
            found.setdefault(place[0], []).append(_found_point(point, episodes[point.unit], allowed))
    machines = [one.machine for one in files.read_all("symbols/*/*/*.json", SymbolicResults)]
    curves = [FoundCurve(**curve._asdict(), points=read) for curve, read in found.items()]
    return Curves(say_how(files, command, machines), curves)


def _order(place: Place) -> tuple[int, int, int, int, float, int]:
    """Sort by axis, task and method as they are listed, then by numbers."""
    (axis, task, variant, objects), value, seed = place
    tasks = [*AXES[axis].tasks.values()]
    return [*AXES].index(axis), tasks.index(task), [*VARIANTS].index(variant), objects or 0, value, seed


class _Episode(NamedTuple):
    """What is kept of an episode, in a world or of symbols alone."""

    success: bool
    reason: str | None
    steps: int
    seconds: Mapping[str, float]


def _episodes(unit: Evaluate | SolveSymbols, files: FolderFiles) -> list[_Episode]:
    """Return the episodes that are there and of the policy that is there now; what is of no use is noted."""
    if isinstance(unit, SolveSymbols):
        results = unit.results(files.folder)
        found = [
            _Episode(one.solved, one.reason, one.actions, {"policy": one.seconds, "longest": one.longest})
            for one in (results.episodes if results else ())
        ]
    else:
        records = unit.records(files.folder)
        found = [_Episode(record.success, record.reason, record.steps, record.seconds) for record in records]
    path = files.folder.path / unit.outputs[-1]
    if not found and path.exists():
        files.leave_out(path)
    return found


def _steps_allowed(point: Point, wanted: Mapping[Place, Point], episodes: Mapping[Any, list[_Episode]]) -> float:
    """Return the budget of an episode in steps, which depends on what the expert takes on the same task."""
    if point.setting.budget is None:
        return math.inf
    expert = point.curve._replace(variant=EXPERT)
    same = (
        episodes[other.unit] for (curve, value, _), other in wanted.items() if curve == expert and value == point.value
    )
    steps = [episode.steps for part in same for episode in part if episode.success]
    return point.setting.budget * mean(steps) if steps else 0.0


def _found_point(point: Point, episodes: Sequence[_Episode], allowed: float) -> FoundPoint:
    solved = [episode.success and episode.steps <= allowed for episode in episodes]
    steps = [episode.steps for episode, success in zip(episodes, solved, strict=True) if success]
    late = sum(episode.success for episode in episodes) - len(steps)
    reasons = Counter(episode.reason or "unknown" for episode in episodes if not episode.success)
    reasons.update({"time": late} if late else {})
    timed = [episode for episode in episodes if "policy" in episode.seconds]
    seconds, made = sum(episode.seconds["policy"] for episode in timed), sum(episode.steps for episode in timed)
    pauses = [episode.seconds["longest"] for episode in timed if "longest" in episode.seconds]
    return FoundPoint(
        value=float(point.value),
        seed=point.seed,
        objects=point.unit.objects,
        episodes=len(episodes),
        successes=len(steps),
        reasons=dict(reasons.most_common()),
        mean_steps=round(mean(steps), 1) if steps else None,
        decision_microseconds=round(1e6 * seconds / made, 1) if made else None,
        pause_seconds=round(mean(pauses), 4) if pauses else None,
        seconds=round(seconds / len(timed), 4) if timed else None,
    )

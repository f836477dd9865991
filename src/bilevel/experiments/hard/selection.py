"""What is asked for of the hard suite: points of curves, and the units of work that measure them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import msgspec

from bilevel.experiments.hard.axes import AXES, METHODS, TASKS, Axis, Setting
from bilevel.experiments.hard.symbols import SolveSymbols
from bilevel.experiments.methods import METHODS as ALL_METHODS
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, read_intact
from bilevel.experiments.reproduction.measurements import Evaluate
from bilevel.experiments.reproduction.recipes import Recipe
from bilevel.experiments.reproduction.selection import room
from bilevel.experiments.reproduction.units import Train
from bilevel.experiments.reproduction.variants import VARIANTS, Variant
from bilevel.files import write_atomically
from bilevel.json_files import Count, encode
from bilevel.methods.methods import EXPERT
from bilevel.tabletop import TASKS as TABLETOP

HARD = Experiment()  # unless the folder has another
ASKED = "asked"  # the part of a folder that says what was asked for
MOST_PROBLEMS = 1  # of symbols alone, with each seed: where planners fail, each takes all the time there is


class HardSelection(msgspec.Struct, frozen=True):
    """What is asked for, by name; all of it must fit the experiment of the folder that it goes into."""

    axes: Sequence[str] = tuple(AXES)
    tasks: Sequence[str] = TASKS
    methods: Sequence[str] = METHODS
    objects: Sequence[Count] = ()  # on axes that are not about their number; for none, as many as is usual there
    episodes: Count = 4  # of each point, with each seed
    seeds: Count = 3  # networks of each kind, each in worlds of its own

    def note(self, folder: ExperimentFolder) -> None:
        """Keep in a folder what was asked for, so that a report knows which of its episodes are of which curve."""
        content = encode(self, indent=0)
        write_atomically(folder.path / ASKED / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.json", content)


def read_asked(folder: ExperimentFolder) -> list[HardSelection]:
    """Return all that was ever asked for in a folder."""
    found = (read_intact(path, HardSelection) for path in sorted((folder.path / ASKED).glob("*.json")))
    return [selection for selection in found if selection is not None]


class Curve(NamedTuple):
    """What the points of a curve have in common."""

    axis: str
    task: str  # that is measured
    variant: str
    objects: int | None  # where the axis is not about their number


@dataclass(frozen=True)
class Point:
    """A point of a curve, with one seed: what measures it, and what trains what that needs."""

    curve: Curve
    value: float
    seed: int
    setting: Setting
    unit: Evaluate | SolveSymbols
    training: Train | None


class _Place(NamedTuple):
    """A value of an axis on a task, for a number of objects: where each method has a point."""

    axis: Axis
    task: str
    value: float
    objects: int


def points(selection: HardSelection, experiment: Experiment) -> Iterator[Point]:
    """Yield all points that can be measured."""
    for place in _places(selection):
        if not _reason_to_leave_out(place, selection, experiment):
            variants = [variant for variant in _variants(place.axis, selection) if not _is_double(variant, place.task)]
            for variant, seed in product(variants, range(selection.seeds)):
                yield _point(place, variant, seed, selection.episodes, experiment)


def _places(selection: HardSelection) -> Iterator[_Place]:
    for axis in (AXES[name] for name in selection.axes):
        for asked, task in axis.tasks.items():
            for value in axis.values if asked in selection.tasks else ():
                objects = axis.setting(value).objects
                for number in (selection.objects or [axis.objects]) if objects is None else [objects]:
                    yield _Place(axis, task, value, number)


def _variants(axis: Axis, selection: HardSelection) -> list[Variant]:
    return [VARIANTS[name] for method in selection.methods for name in axis.variants(method)]


def _is_double(variant: Variant, task: str) -> bool:
    """Whether its planner is the one that its method takes for this task anyway."""
    planners = ALL_METHODS[variant.method].planners
    return bool(planners) and variant.planner == planners[-1 if TABLETOP[task].domain.makes_objects else 0]


def _point(place: _Place, variant: Variant, seed: int, episodes: int, experiment: Experiment) -> Point:
    axis, task, value, objects = place
    setting = axis.setting(value)
    learned = _learned(variant, setting, experiment)
    unit: Evaluate | SolveSymbols
    if axis.in_symbols:
        unit = SolveSymbols(task, learned, seed, objects, min(episodes, MOST_PROBLEMS))
    else:
        unit = Evaluate(task, learned, seed, objects, episodes, setting.condition)
    training = learned.training(task, seed) if unit.inputs else None
    curve = Curve(axis.name, task, variant.name, objects if setting.objects is None else None)
    return Point(curve, value, seed, setting, unit, training)


def _learned(variant: Variant, setting: Setting, experiment: Experiment) -> Variant:
    """Return the row of the table as it is learned with this setting; what is as usual is shared with all others."""
    recipe = variant.recipe
    if recipe is None:
        return variant
    changes = (
        (setting.demonstrations, experiment.demonstrations, "demonstrations", Recipe.with_demonstrations),
        (setting.shown, experiment.shown, "shown", Recipe.with_shown),
    )
    for number, usual, ending, change in changes:
        if number is not None and number != usual:
            recipe = change(recipe, number)
            variant = variant.learned_by(f"{ending}{number}", recipe)
    return variant


# What cannot be measured


def left_out(selection: HardSelection, experiment: Experiment) -> list[str]:
    """Return what is asked for and not measured, with the reason, a line each."""
    values: dict[tuple[str, str], dict[str, None]] = {}  # by axis and reason
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    for place in _places(selection):
        if reason := _reason_to_leave_out(place, selection, experiment):
            values.setdefault((place.axis.name, reason), {})[place.axis.show(place.value)] = None
            tasks.setdefault((place.axis.name, reason), {})[place.task] = None
    lines = [
        f"{axis} {', '.join(found)} in {', '.join(tasks[axis, reason])}: {reason}"
        for (axis, reason), found in values.items()
    ]
    for axis in (AXES[name] for name in selection.axes):
        if not set(axis.tasks).intersection(selection.tasks):
            lines.append(f"{axis.name}: its tasks are {', '.join(axis.tasks)}, none of which is among --tasks")
        elif not _variants(axis, selection):
            lines.append(f"{axis.name}: none of --methods can be measured on it")
    return lines


def _reason_to_leave_out(place: _Place, selection: HardSelection, experiment: Experiment) -> str | None:
    axis, task, value, objects = place
    setting = axis.setting(value)
    if not axis.in_symbols and objects > room(task):
        return f"there is room for {room(task)} objects" + ("" if setting.objects else f", not for {objects}")
    if (setting.demonstrations or 0) > experiment.demonstrations:
        return f"the experiment has {experiment.demonstrations} demonstrations"
    if setting.budget is not None and EXPERT not in selection.methods:
        return f"the number of steps is that of the expert: add {EXPERT} to --methods"
    return None

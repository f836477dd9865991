"""The paper's experiment, and the hard suite, which makes one thing after the other harder.

Both are a list of cells to measure. What they need is made first: data sets, then networks, then rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from bilevel.experiments.axes import AXES, HARD_METHODS, HARD_TASKS, Axis, find_axes
from bilevel.experiments.experiment import (
    EXPERIMENT,
    QUICK,
    REPORT,
    Cell,
    Experiment,
    Make,
    Settings,
    choose_settings,
    is_made,
    open_folder,
    read_settings,
    run_episodes,
)
from bilevel.experiments.films import FILMED, make_film
from bilevel.experiments.problems import solve_with_nature
from bilevel.experiments.report import write_pages
from bilevel.experiments.rows import PAPER_ROWS, PAPER_TASKS, USUAL_ROWS, Row, find_rows, find_tasks, room
from bilevel.methods.methods import METHODS
from bilevel.policies.folder import BISON
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import TASKS

PARTS = ("table", "scaling", "films", "report")
PURPOSES: Mapping[str, Make] = {  # of cells, in the order in which they are measured
    "episodes": run_episodes,
    "symbols": solve_with_nature,
    "films": make_film,
}


@dataclass(frozen=True)
class ExperimentSummary:
    """How a run of an experiment went."""

    done: int  # files that it has made
    there: int  # files that were there, or that others have made
    failed: Mapping[str, str]  # files that could not be made, with the reasons
    left_out: Sequence[str] = field(default_factory=list)  # what was asked for and cannot be measured, a line each
    report: Path | None = None


def reproduce(
    output: Path | str,
    *,
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    objects: Iterable[int] | None = None,
    episodes: int | None = None,
    seeds: int | None = None,
    quick: bool = False,
    parts: Sequence[str] = PARTS,
    workers: int | None = None,
    cluster: str | None = None,
    callback: Callback = silent,
    **settings: float | None,
) -> ExperimentSummary:
    """Run the paper's experiment in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every usual row of the table on the paper's tasks, with 1 to 10 objects, 10 episodes of each
    size, and 3 seeds; a `quick` one is smaller. Among `settings` are `epochs`, `updates`, `learning_rate`,
    `dagger_episodes` and `demonstrations`. A `cluster` is the address of a Ray cluster that sees the folder.
    """
    for part in parts:
        if part not in PARTS:
            raise BadInput(f"unknown part '{part}'; there are: {', '.join(PARTS)}")
    names, rows = find_tasks(tasks, TASKS, PAPER_TASKS), find_rows(methods, PAPER_ROWS if quick else USUAL_ROWS)
    sizes, left_out = list(objects or ((1, 3, 6) if quick else range(1, 11))), []
    table = [
        Cell("episodes", task, row.name, seed, number, episodes or (3 if quick else 10))
        for task, row, seed, number in product(names, rows, range(seeds or (1 if quick else 3)), sizes)
        if row.is_for(task) and number <= room(task)
    ]
    if too_many := sorted({number for number in sizes for task in names if number > room(task)}):
        left_out.append(f"{', '.join(map(str, too_many))} objects, where a task has no room for them")
    chosen = choose_settings(QUICK if quick else Settings(), settings)
    large = points(AXES["symbols"], names, [row.name for row in rows], [], 1, chosen)
    wanted = {"table": table, "scaling": list(large)}
    shown = [row.name for row in rows if row.method == BISON]
    if shown:
        best = BISON if BISON in shown else shown[-1]
        wanted["films"] = [Cell("films", task, best, 0, FILMED) for task in names]
    elif "films" in parts:
        left_out.append("films: they are made with policies of BISON, which is not among --methods")
    cells = [cell for part, of_part in wanted.items() if part in parts for cell in of_part]
    return _run(Path(output), chosen, cells, left_out, "report" in parts, workers, cluster, callback)


def _run(
    folder: Path,
    settings: Settings,
    cells: Sequence[Cell],
    left_out: Sequence[str],
    report: bool,
    workers: int | None,
    cluster: str | None,
    callback: Callback,
) -> ExperimentSummary:
    """Measure these cells in a folder, as far as that was not done before, and write the report."""
    open_folder(folder, settings, cells)
    run = Experiment(folder, settings, workers, cluster, callback)
    run.learn(cell for cell in cells if not is_made(folder / cell.file, cell))
    for kind, make in PURPOSES.items():
        run.make(kind, make, {cell.file: cell for cell in cells if cell.kind == kind})
    page = None
    if report:
        callback(Progress("writing the report", 0, 1))
        page = write_pages(folder, folder / REPORT)
        callback(Progress("writing the report", 1, 1))
    return ExperimentSummary(run.done, run.there, run.failed, left_out, page)


# The hard suite


def benchmark_hard(
    output: Path | str,
    *,
    axes: Sequence[str] = (),
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
    objects: Iterable[int] | None = None,
    episodes: int | None = None,
    seeds: int | None = None,
    quick: bool = False,
    report: bool = True,
    workers: int | None = None,
    cluster: str | None = None,
    callback: Callback = silent,
    **settings: float | None,
) -> ExperimentSummary:
    """Run the hard suite in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every axis on each of its tasks, with 4 episodes for each point and each of 3 seeds. All else is
    as in `reproduce`, whose policies it uses in the same folder; the settings are those that the folder has.
    """
    folder, found = Path(output), find_axes(axes)
    usual = QUICK if quick else read_settings(folder) if (folder / EXPERIMENT).is_file() else Settings()
    chosen = choose_settings(usual, settings)
    names = [row.name for row in find_rows(methods, HARD_METHODS)]
    sizes, wanted = list(objects or ([3] if quick else [])), find_tasks(tasks, HARD_TASKS, HARD_TASKS)
    cells = [
        msgspec.structs.replace(cell, episodes=1 if axis.kind == "symbols" else episodes or (3 if quick else 4))
        for axis in found
        for cell in points(axis, wanted, names, sizes, seeds or (1 if quick else 3), chosen)
    ]
    return _run(folder, chosen, cells, _left_out(found, cells), report, workers, cluster, callback)


def points(
    axis: Axis, tasks: Sequence[str], methods: Sequence[str], sizes: Sequence[int], seeds: int, settings: Settings
) -> Iterator[Cell]:
    """Yield the cells along an axis that can be measured: where there is room, and all that the value needs."""
    rows = axis.rows_for(methods)
    for task, value in product((task for asked, task in axis.tasks.items() if asked in tasks), axis.values):
        changes = dict(axis.change(value))
        if changes.get("demonstrations", 0) > settings.demonstrations:
            continue
        number = changes.pop("objects", None)
        for objects, row, seed in product([number] if number else sizes or [axis.objects], rows, range(seeds)):
            if _is_double(row, task) or (axis.kind == "episodes" and objects > room(task)):
                continue
            place, which = None if number else objects, _unusual(row, changes, settings)
            yield Cell(
                axis.kind, task, row.name, seed, objects, axis=axis.name, value=float(value), place=place, **which
            )


def _is_double(row: Row, task: str) -> bool:
    """Return whether a row, among others of its method, has the planner that the method takes for the task anyway."""
    planners = METHODS[row.method].planners
    return bool(planners) and row.planner == planners[-1 if TASKS[task].domain.makes_objects else 0]


def _unusual(row: Row, changes: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the changes but for what is as usual, and for what is about learning where nothing is learned."""
    usual = {"demonstrations": settings.demonstrations, "shown": settings.shown}
    return {
        name: value for name, value in changes.items() if name not in usual or (row.learned and value != usual[name])
    }


def _left_out(axes: Sequence[Axis], cells: Sequence[Cell]) -> list[str]:
    """Return which axes and values are asked for and cannot be measured, a line each."""
    measured, lines = {(cell.axis, cell.value) for cell in cells}, []
    for axis in axes:
        absent = [axis.show(value) for value in axis.values if (axis.name, value) not in measured]
        if absent:
            lines.append(f"{axis.name} {', '.join(absent)}: no room, no such demonstrations, or none of its methods")
    return lines

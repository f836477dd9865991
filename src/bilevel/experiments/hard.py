"""The hard suite: how far each method gets as one thing after the other is made harder, a curve for each.

It works as `reproduce` does, and in its folder uses its policies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bilevel.experiments.axes import AXES, HARD_METHODS, TASKS, Point, Request, find_axes, points
from bilevel.experiments.jobs import (
    EXPERIMENT,
    QUICK,
    REPORT,
    Job,
    Outcome,
    Phase,
    Settings,
    choose_settings,
    episode_phases,
    learning_phases,
    open_folder,
    read_settings,
    run_phases,
)
from bilevel.experiments.problems import solve_symbols
from bilevel.experiments.report import write_pages
from bilevel.experiments.rows import ROWS, find_rows, find_tasks
from bilevel.files import write_atomically
from bilevel.json_files import encode
from bilevel.methods.methods import METHODS
from bilevel.progress import Callback, Progress, silent


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
) -> Outcome:
    """Run the hard suite in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every axis on each of its tasks, with 4 episodes for each point and each of 3 seeds. All else is
    as in `reproduce`; in a folder that has settings already, these are the usual ones.
    """
    folder = Path(output)
    usual = QUICK if quick else read_settings(folder) if (folder / EXPERIMENT).is_file() else Settings()
    chosen = choose_settings(usual, settings)
    request = Request(
        axes=[axis.name for axis in find_axes(axes)],
        tasks=find_tasks(tasks, TASKS, TASKS),
        methods=[row.name for row in find_rows(methods, HARD_METHODS)],
        objects=list(objects or ([3] if quick else [])),
        episodes=episodes or (3 if quick else 4),
        seeds=seeds or (1 if quick else 3),
    )
    open_folder(folder, chosen)
    content = encode(request, indent=0)
    write_atomically(folder / "asked" / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.json", content)
    found = list(points(request, chosen))
    in_worlds = {point.file: point.cell for point in found if not point.axis.in_symbols}
    in_symbols = {point.file: point.cell for point in found if point.axis.in_symbols}
    phases = episode_phases(folder, list(in_worlds.values()))
    deciding = [cell.network for cell in in_symbols.values() if not METHODS[ROWS[cell.row].method].planners]
    phases += learning_phases(folder, deciding)
    phases.append(Phase("symbols", [Job(file, solve_symbols, cell) for file, cell in in_symbols.items()]))
    outcome = run_phases(folder, chosen, phases, workers, cluster, callback)
    if report:
        callback(Progress("writing the report", 0, 1))
        outcome = replace(outcome, report=write_pages(folder, folder / REPORT))
        callback(Progress("writing the report", 1, 1))
    return replace(outcome, left_out=_left_out(request, found))


def _left_out(request: Request, found: Sequence[Point]) -> list[str]:
    """Return which axes and values are asked for and cannot be measured, a line each."""
    measured = {(point.axis.name, point.value) for point in found}
    lines = []
    for axis in (AXES[name] for name in request.axes):
        absent = [axis.show(value) for value in axis.values if (axis.name, value) not in measured]
        if absent:
            lines.append(f"{axis.name} {', '.join(absent)}: no room, no such demonstrations, or none of its methods")
    return lines

"""The paper's experiment, and the hard suite, which makes one thing after the other harder.

Both are a list of cells to measure. What they need is made first: data sets, then networks, then rules.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from bilevel.experiments import making, rows
from bilevel.experiments.experiment import REPORT, Cell, ExperimentSummary, Settings, choose_settings, open_folder
from bilevel.experiments.report import write_report
from bilevel.experiments.results import write_findings
from bilevel.files import write_atomically
from bilevel.parallel import WorkerDied, parallel
from bilevel.policies.folder import BISON
from bilevel.progress import Callback, Progress, silent
from bilevel.tabletop import TASKS

TRIES = 3  # to make a file, which may fail, or whose worker may be killed
PARTS = ("table", "scaling", "films", "report")


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
    **settings: float | str | None,
) -> ExperimentSummary:
    """Run the paper's experiment in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every usual row of the table on the paper's tasks, with 1 to 10 objects, 10 episodes of each
    size, and 3 seeds; a `quick` one is smaller. Among `settings` are `epochs`, `updates`, `learning_rate`,
    `dagger_episodes`, `demonstrations` and `tray_position`. A `cluster` is the address of a Ray cluster that sees the
    folder.
    """
    parts = rows.choose("part", parts, PARTS, PARTS)
    names = rows.choose("task", tasks, TASKS, rows.PAPER_TASKS)
    found = rows.find_rows(methods, rows.PAPER_ROWS if quick else rows.USUAL_ROWS)
    chosen, sizes = choose_settings(Path(output), quick, settings), (1, 3, 6) if quick else range(1, 11)
    table = [
        Cell("episodes", task, row.name, seed, number, episodes or (3 if quick else 10))
        for task, row, seed, number in product(names, found, range(seeds or (1 if quick else 3)), objects or sizes)
        if row.is_for(task)
    ]
    filmed = [row.name for row in found if row.method == BISON][-1:]
    films = [Cell("films", task, row, 0, making.FILMED) for task, row in product(names, filmed)]
    symbols = points(rows.AXES["symbols"], names, [row.name for row in found], [], 1, chosen)
    wanted = {"table": table, "scaling": list(symbols), "films": films, "report": []}
    cells = [cell for part in parts for cell in wanted[part]]
    return _run(Path(output), chosen, cells, "report" in parts, workers, cluster, callback)


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
    **settings: float | str | None,
) -> ExperimentSummary:
    """Run the hard suite in a folder, or whatever of it is not there yet, and write its report.

    By default, that is every axis on each of its tasks, with 4 episodes for each point and each of 3 seeds. All else is
    as in `reproduce`, whose policies it uses in the same folder; the settings are those that the folder has.
    """
    folder, names = Path(output), [row.name for row in rows.find_rows(methods, rows.HARD_METHODS)]
    chosen = choose_settings(folder, quick, settings)
    sizes, wanted = [*(objects or ([3] if quick else []))], rows.choose("task", tasks, rows.HARD_TASKS, rows.HARD_TASKS)
    cells = [
        msgspec.structs.replace(cell, episodes=1 if axis.kind == "symbols" else episodes or (3 if quick else 4))
        for axis in rows.find_axes(axes)
        for cell in points(axis, wanted, names, sizes, seeds or (1 if quick else 3), chosen)
    ]
    return _run(folder, chosen, cells, report, workers, cluster, callback)


def points(
    axis: rows.Axis, tasks: Sequence[str], methods: Sequence[str], sizes: Sequence[int], seeds: int, settings: Settings
) -> Iterator[Cell]:
    """Yield the cells along an axis that can be measured: where there is room, and all that the value needs."""
    usual = {"demonstrations": settings.demonstrations, "shown": settings.shown}
    for task, value in product(axis.tasks, axis.values):
        options = dict(axis.change(value))
        number, learned = options.pop("objects", None), {key: options.pop(key) for key in usual if key in options}
        if task.removesuffix("-noisy") not in tasks or learned.get("demonstrations", 0) > settings.demonstrations:
            continue
        every = product([number] if number else sizes or [axis.objects], axis.rows_for(methods), range(seeds))
        for objects, row, seed in every:
            unusual = {key: new for key, new in learned.items() if row.learned and new != usual[key]}
            where: dict[str, Any] = {"axis": axis.name, "value": float(value), "place": None if number else objects}
            yield Cell(axis.kind, task, row.name, seed, objects, options=options, **where, **unusual)


# The work


def _run(
    folder: Path,
    settings: Settings,
    cells: Sequence[Cell],
    report: bool,
    workers: int | None,
    cluster: str | None,
    callback: Callback,
) -> ExperimentSummary:
    """Make what is missing of these cells, and what they need, phase after phase; then write the report.

    The order within a phase is random, so that several runs in a folder make different files.
    """
    fitting = [cell for cell in cells if cell.kind == "symbols" or cell.objects <= (TASKS[cell.task].max_objects or 0)]
    left_out = {f"{cell.task} with {cell.objects} objects: no room" for cell in cells if cell not in fitting}
    open_folder(folder, settings, fitting)
    outcome = ExperimentSummary(left_out=sorted(left_out))
    for phase, function, wanted in _phases(folder, fitting):
        missing = {file: "its worker was killed" for file, cell in wanted.items() if not is_made(folder / file, cell)}
        there, make = len(wanted) - len(missing), partial(make_file, folder, settings, function)
        callback(Progress(phase, there, len(wanted)))
        for _ in range(TRIES):
            left = random.sample([(file, wanted[file]) for file in missing], len(missing))
            with suppress(WorkerDied), closing(parallel(make, left, workers, cluster)) as results:
                for file, error in results:
                    missing[file] = error
                    if not error:
                        del missing[file]
                    callback(Progress(phase, len(wanted) - len(missing), len(wanted)))
        outcome.there += there
        outcome.done += len(wanted) - there - len(missing)
        outcome.failed.update(missing)
    if report and write_findings(folder):
        outcome.report = folder / REPORT
        write_report(folder, outcome.report, folder / "report-files")
    return outcome


def _phases(folder: Path, cells: Sequence[Cell]) -> Iterator[tuple[str, making.Make, Mapping[str, Cell]]]:
    """Yield what is made one after the other: a function, and each file with the cell that it is made for.

    Where rules alone are learned, the network of another policy is kept, which is learned before.
    """
    unmade = [cell for cell in cells if cell.learned and not is_made(folder / cell.file, cell)]
    policies = {cell.policy_file: cell for cell in unmade if not (folder / cell.policy_file).exists()}
    policies |= {kept.policy_file: kept for kept in [cell.with_kept_network for cell in policies.values()]}
    yield "data sets", making.collect_data, {f"{cell.data}.complete": cell for cell in policies.values()}
    for phase, is_rules in (("networks", False), ("rules", True)):
        wanted = {file: cell for file, cell in policies.items() if (cell.with_kept_network != cell) == is_rules}
        yield phase, making.learn_policy, wanted
    for kind, function in making.MEASURES.items():
        yield kind, function, {cell.file: cell for cell in cells if cell.kind == kind}


def is_made(path: Path, cell: Cell) -> bool:
    """Return whether a file is there, with all records that it should have."""
    return path.exists() and (path.suffix != ".jsonl" or path.read_bytes().count(b"\n") >= cell.episodes)


def make_file(folder: Path, settings: Settings, make: making.Make, item: tuple[str, Cell]) -> tuple[str, str]:
    """Make a file, unless another run does, which is waited for; return its name, and the error if there is one."""
    file, cell = item
    name = file.replace("/", "+")
    failure = folder / "failures" / f"{name}.txt"
    (folder / "locks").mkdir(exist_ok=True)
    with FileLock(folder / "locks" / name):
        try:
            if not is_made(folder / file, cell):
                make(folder, settings, cell)
        except Exception as error:  # of one file, which must not end the others
            write_atomically(failure, traceback.format_exc())
            return file, " ".join(str(error).split()) or type(error).__name__
        failure.unlink(missing_ok=True)
        return file, ""

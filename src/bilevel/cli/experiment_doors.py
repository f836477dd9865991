"""The experiments as two functions, until `bilevel.experiments` has them itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder
    from bilevel.experiments.reproduction.selection import Request
    from bilevel.progress import Callback

PARTS = ("table", "memory", "scaling", "films", "report")


@dataclass(frozen=True)
class Summary:
    """What a run has done, and what is missing."""

    done: int
    already_there: int
    missing: list[str]
    failed: dict[str, str]
    left_out: list[str]
    seconds: float
    report: Path | None


def run_reproduction(
    output: Path, *, tasks: Sequence[str], methods: Sequence[str], objects: tuple[int, ...] | None,
    episodes: int | None, seeds: int | None, quick: bool, parts: Sequence[str], callback: Callback, **further: Any,
) -> Summary:  # fmt: skip
    """Run the whole experiment."""
    from bilevel.experiments.reproduction.folder import QUICK, Experiment
    from bilevel.experiments.reproduction.selection import Selection, find_task_names, request
    from bilevel.experiments.reproduction.variants import PAPERS_ROWS, USUAL, find_variant

    if unknown := [part for part in parts if part not in PARTS]:
        raise BadInput(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}")
    rows, usual = (PAPERS_ROWS, ((1, 3, 6), 3, 1)) if quick else (USUAL, (tuple(range(1, 11)), 10, 3))
    selection = Selection(
        tasks=find_task_names(tasks),
        variants=[find_variant(name) for name in dict.fromkeys(methods or rows)],
        objects=objects or usual[0],
        episodes=episodes or usual[1],
        seeds=range(seeds or usual[2]),
        parts=parts or PARTS,
    )
    return _run(output, request(selection), QUICK if quick else Experiment(), callback, **further)


def run_hard(
    output: Path, *, axes: Sequence[str], tasks: Sequence[str], methods: Sequence[str],
    objects: tuple[int, ...] | None, episodes: int | None, seeds: int | None, quick: bool, no_report: bool,
    callback: Callback, **further: Any,
) -> Summary:  # fmt: skip
    """Run the hard suite."""
    from bilevel.experiments.hard.axes import METHODS, TASKS, find_axes
    from bilevel.experiments.hard.request import hard_request
    from bilevel.experiments.hard.selection import HARD, HardSelection
    from bilevel.experiments.reproduction.folder import EXPERIMENT, QUICK, read_experiment
    from bilevel.experiments.reproduction.variants import find_variant

    for task in tasks:
        if task not in TASKS:
            raise BadInput(f"unknown task '{task}'; tasks of the hard suite: {', '.join(TASKS)}")
    usual = QUICK if quick else read_experiment(output) if (output / EXPERIMENT).is_file() else HARD
    experiment = _changed(usual, **{name: further.pop(name) for name in CHANGEABLE})
    selection = HardSelection(
        axes=tuple(axis.name for axis in find_axes(axes)),
        tasks=tuple(dict.fromkeys(tasks or TASKS)),
        methods=tuple(find_variant(name).name for name in dict.fromkeys(methods or METHODS)),
        objects=objects or ((3,) if quick else ()),
        episodes=episodes or (3 if quick else 4),
        seeds=seeds or (1 if quick else 3),
    )
    request = hard_request(selection, experiment, not no_report)
    return _run(output, request, experiment, callback, **further)


CHANGEABLE = ("epochs", "updates", "learning_rate", "dagger_episodes", "demonstrations")


def _changed(experiment: Experiment, **given: Any) -> Experiment:
    import msgspec

    return msgspec.structs.replace(experiment, **{name: value for name, value in given.items() if value is not None})


def _run(
    output: Path, request: Request, experiment: Experiment, callback: Callback, *, cluster: str | None,
    workers: int | None, **given: Any,
) -> Summary:  # fmt: skip
    from bilevel.experiments.reproduction.backends import Backend, Processes
    from bilevel.experiments.reproduction.driver import Driver
    from bilevel.experiments.reproduction.folder import Locks, open_folder
    from bilevel.experiments.reproduction.forecast import Forecast
    from bilevel.experiments.reproduction.ray_backend import RayCluster
    from bilevel.parallel import usable_cores
    from bilevel.progress import Progress

    began = time.monotonic()
    if request.page:
        import_module("bilevel.experiments.report.writing")
    folder = open_folder(output, _changed(experiment, **given))
    backend: Backend = (
        RayCluster(folder, cluster, workers, 0.0) if cluster else Processes(folder, workers or usable_cores(), 0.0)
    )
    with closing(Locks(folder.path / "locks")) as locks, closing(backend):
        driver = Driver(folder, request.units, backend, locks, Forecast(folder.experiment, False), lambda number: None)
        progress = driver.progress
        kinds = {unit.kind for unit in progress.waiting}
        if not cluster and "train" in kinds and find_spec("torch") is None:
            raise BadInput("torch is missing; install it with: pip install 'bilevel[learning]'")
        if not cluster and "film" in kinds:
            import_module("PIL.ImageFont")
            import_module("av")
        folder.note_run()
        request.note(folder)
        try:
            driver.run(lambda: callback(Progress("working", progress.there + len(progress.done), progress.total)))
        finally:
            request.write_findings(folder)
    failed = {unit.name: failure.error for unit, failure in progress.failed.items()}
    return Summary(
        done=len(progress.done),
        already_there=progress.there,
        missing=[*failed, *(unit.name for unit in progress.waiting)],
        failed=failed,
        left_out=list(request.left_out),
        seconds=time.monotonic() - began,
        report=_write_report(folder, request.page) if request.page else None,
    )


def _write_report(folder: ExperimentFolder, name: str) -> Path | None:
    """Return where the page is; `None` if there is nothing to report on."""
    from bilevel.experiments.report.writing import PAGES, NothingFound

    page = folder.path / name
    try:
        PAGES[name](folder.path, page, folder.path / "report-files")
    except NothingFound:
        return None
    return page

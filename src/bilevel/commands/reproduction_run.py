"""Running the whole experiment as a user asks for it: from the options of the command to what it says at the end."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bilevel.commands.arguments import count, print_json
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.commands.policy_commands import needing_torch
from bilevel.commands.report_command import needing_report
from bilevel.commands.reproduction_display import Display, duration
from bilevel.experiments.machines import cores
from bilevel.experiments.reproduction.backends import Backend
from bilevel.experiments.reproduction.costs import Forecast
from bilevel.experiments.reproduction.driver import Driver, RunProgress
from bilevel.experiments.reproduction.folder import FINDINGS, ExperimentFolder, open_folder
from bilevel.experiments.reproduction.locks import Locks
from bilevel.experiments.reproduction.process_backend import Processes
from bilevel.experiments.reproduction.ray_backend import RayCluster
from bilevel.experiments.reproduction.selection import Selection, left_out, require_methods, select_units
from bilevel.experiments.reproduction.settings import QUICK, USUAL, Experiment, find_variant
from bilevel.experiments.reproduction.summary import write_findings
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS, find_task
from bilevel.video import package

if TYPE_CHECKING:
    from bilevel.commands.reproduce_command import Reproduce


def reproduce(options: Reproduce) -> int:
    """Do all that is asked for and not there yet, and say how it went; return the exit code."""
    selection = _selection(options)
    require_methods(selection)
    _require_gpu(options)
    if "report" in options.parts:
        with needing_report():
            import_module("bilevel.experiments.report.writing")
    folder = open_folder(options.output, _experiment(options))
    began = time.monotonic()
    progress = _work(options, folder, selection)
    seconds = time.monotonic() - began
    page = _write_report(folder) if "report" in options.parts else None
    if options.json:
        _print_as_json(folder, selection, progress, seconds, page)
    else:
        _print(options, folder, progress, seconds, page)
    return 1 if progress.failed or progress.waiting else 0


def _selection(options: Reproduce) -> Selection:
    tasks = [find_task(name) for name in dict.fromkeys(options.tasks or TASKS)]
    objects, episodes, seeds = ("1,3,6", 3, 1) if options.quick else ("1-10", 10, 3)
    return Selection(
        tasks=[task.name for task in tasks],
        variants=[find_variant(name) for name in dict.fromkeys(options.methods or USUAL)],
        objects=parse_numbers(options.objects or objects, max(task.most_objects for task in tasks)),
        episodes=options.episodes or episodes,
        seeds=range(options.seeds or seeds),
        parts=options.parts,
    )


def _experiment(options: Reproduce) -> Experiment:
    usual = QUICK if options.quick else Experiment()
    return replace(
        usual,
        demonstrations=options.demonstrations or usual.demonstrations,
        epochs=options.epochs or usual.epochs,
        end_to_end_epochs=options.end_to_end_epochs or options.epochs or usual.end_to_end_epochs,
    )


def _work(options: Reproduce, folder: ExperimentFolder, selection: Selection) -> RunProgress:
    units = select_units(selection, side_by_side=options.gpu_share > 0)
    with closing(Locks(folder.path / "locks")) as locks, closing(_backend(options, folder)) as backend:
        driver = Driver(folder, units, backend, locks, Forecast(folder.experiment, options.gpu_share > 0))
        _require_packages(options, {unit.kind for unit in driver.progress.waiting})
        folder.note_run()
        with Display(driver.progress, backend, options.json) as display:
            display.announce(units, left_out(selection))
            try:
                driver.run(display.show)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"interrupted; {display.state()}; run the same command again to go on"
                ) from None
            finally:
                write_findings(folder)
    return driver.progress


def _backend(options: Reproduce, folder: ExperimentFolder) -> Backend:
    if options.backend == "ray":
        return RayCluster(folder, options.address or "auto", options.workers, options.gpu_share)
    return Processes(folder, options.workers or cores(), options.gpu_share)


def _require_gpu(options: Reproduce) -> None:
    """`BadInput` where there is none to take a share of; a cluster is asked by its back-end."""
    if options.gpu_share and options.backend == "processes":
        with needing_torch():
            from bilevel.lowlevel.training import usual_device
        if usual_device().type == "cpu":
            raise BadInput("--gpu-share: this machine has no GPU; leave it out to train on CPUs")


def _require_packages(options: Reproduce, kinds: set[str]) -> None:
    """`BadInput` where work of these kinds is to be done here, and what it needs is not installed."""
    if options.backend == "processes" and "train" in kinds and find_spec("torch") is None:
        raise BadInput("torch is missing; install it with: pip install 'bilevel[learning]'")
    if options.backend == "processes" and "film" in kinds:
        package("PIL.ImageFont", "films")
        package("av", "films")


def _write_report(folder: ExperimentFolder) -> Path | None:
    """Return where the page is; `None` if there is nothing to report on."""
    from bilevel.experiments.report.sources import NothingFound
    from bilevel.experiments.report.writing import write_report

    try:
        return write_report(folder.path, folder.path / "report.html").page
    except NothingFound:
        return None


def _print_as_json(
    folder: ExperimentFolder, selection: Selection, progress: RunProgress, seconds: float, page: Path | None
) -> None:
    print_json(
        output=str(folder.path),
        done=len(progress.done),
        already_there=progress.there,
        failed={unit.name: failure.error for unit, failure in progress.failed.items()},
        not_done=[unit.name for unit in progress.waiting],
        left_out=left_out(selection),
        seconds=round(seconds, 1),
        worker_seconds={kind: round(taken, 1) for kind, taken in progress.forecast.taken.items()},
        report=page and str(page),
    )


def _print(
    options: Reproduce, folder: ExperimentFolder, progress: RunProgress, seconds: float, page: Path | None
) -> None:
    there = f", {progress.there} were there" if progress.there else ""
    print(f"{count(progress.done, 'unit')} of work done in {duration(seconds)}{there}")
    if progress.done:
        spent = [f"{kind} {duration(taken)}" for kind, taken in progress.forecast.taken.items()]
        print(f"where the time went, all workers together: {', '.join(spent)}")
    for unit, failure in progress.failed.items():
        print(f"failed twice: {unit.name}: {failure.error}", file=sys.stderr)
    if left := [unit.name for unit in progress.waiting]:
        more = " …" if left[5:] else ""
        print(f"not done, since they need what failed: {', '.join(left[:5])}{more}", file=sys.stderr)
    report = f"; report: {page}" if page else "; no report: there are no results" if "report" in options.parts else ""
    print(f"findings: {folder.path / FINDINGS}{report}")

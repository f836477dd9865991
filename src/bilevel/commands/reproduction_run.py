"""Running the whole experiment as a user asks for it: from the options of the command to what it says at the end."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from bilevel.commands.arguments import count, print_json
from bilevel.commands.reproduction_display import Display, duration
from bilevel.experiments.machines import cores
from bilevel.experiments.reproduction.backends import Backend
from bilevel.experiments.reproduction.costs import Forecast
from bilevel.experiments.reproduction.driver import Driver, RunProgress
from bilevel.experiments.reproduction.folder import FINDINGS, ExperimentFolder, open_folder
from bilevel.experiments.reproduction.locks import Locks
from bilevel.experiments.reproduction.process_backend import Processes
from bilevel.experiments.reproduction.ray_backend import RayCluster
from bilevel.experiments.reproduction.selection import (
    Selection,
    left_out,
    require_methods,
    select_units,
)
from bilevel.experiments.reproduction.settings import Experiment
from bilevel.experiments.reproduction.summary import write_findings
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Reproduction:
    """A run of the experiment as a user asks for it."""

    output: Path
    selection: Selection
    experiment: Experiment
    backend: str
    address: str | None
    workers: int | None
    gpu_share: float
    json: bool

    def run(self) -> int:
        """Do all that is asked for and not there yet, and say how it went; return the exit code."""
        require_methods(self.selection)
        self._require_gpu()
        reports = "report" in self.selection.parts
        if reports:
            import_module("bilevel.experiments.report.writing")
        folder = open_folder(self.output, self.experiment)
        began = time.monotonic()
        progress = self._work(folder)
        seconds = time.monotonic() - began
        page = _write_report(folder) if reports else None
        if self.json:
            self._print_as_json(progress, seconds, page)
        else:
            self._print(progress, seconds, page)
        return 1 if progress.failed or progress.waiting else 0

    def _work(self, folder: ExperimentFolder) -> RunProgress:
        units = select_units(self.selection)
        with closing(Locks(folder.path / "locks")) as locks, closing(self._backend(folder)) as backend:
            driver = Driver(folder, units, backend, locks, Forecast(folder.experiment, self.gpu_share > 0))
            self._require_packages({unit.kind for unit in driver.progress.waiting})
            folder.note_run()
            with Display(driver.progress, backend, self.json) as display:
                display.announce(units, left_out(self.selection))
                try:
                    driver.run(display.show)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(
                        f"interrupted; {display.state()}; run the same command again to go on"
                    ) from None
                finally:
                    write_findings(folder)
        return driver.progress

    def _backend(self, folder: ExperimentFolder) -> Backend:
        if self.backend == "ray":
            return RayCluster(folder, self.address or "auto", self.workers, self.gpu_share)
        return Processes(folder, self.workers or cores(), self.gpu_share)

    def _require_gpu(self) -> None:
        """`BadInput` where there is none to take a share of; a cluster is asked by its back-end."""
        if self.gpu_share and self.backend == "processes":
            from bilevel.lowlevel.training import usual_device

            if usual_device().type == "cpu":
                raise BadInput("--gpu-share: this machine has no GPU; leave it out to train on CPUs")

    def _require_packages(self, kinds: set[str]) -> None:
        """`BadInput` where work of these kinds is to be done here, and what it needs is not installed."""
        if self.backend == "processes" and "train" in kinds and find_spec("torch") is None:
            raise BadInput("torch is missing; install it with: pip install 'bilevel[learning]'")
        if self.backend == "processes" and "film" in kinds:
            import_module("PIL.ImageFont")
            import_module("av")

    def _print_as_json(self, progress: RunProgress, seconds: float, page: Path | None) -> None:
        print_json(
            output=str(self.output),
            done=len(progress.done),
            already_there=progress.there,
            failed={unit.name: failure.error for unit, failure in progress.failed.items()},
            not_done=[unit.name for unit in progress.waiting],
            left_out=left_out(self.selection),
            seconds=round(seconds, 1),
            worker_seconds={kind: round(taken, 1) for kind, taken in progress.forecast.taken.items()},
            report=page and str(page),
        )

    def _print(self, progress: RunProgress, seconds: float, page: Path | None) -> None:
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
        missing = "; no report: there are no results" if "report" in self.selection.parts else ""
        print(f"findings: {self.output / FINDINGS}{f'; report: {page}' if page else missing}")


def _write_report(folder: ExperimentFolder) -> Path | None:
    """Return where the page is; `None` if there is nothing to report on."""
    from bilevel.experiments.report.sources import NothingFound
    from bilevel.experiments.report.writing import write_report

    try:
        return write_report(folder.path, folder.path / "report.html").page
    except NothingFound:
        return None

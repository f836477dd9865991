"""Running the whole experiment as a user asks for it: from the options of the command to what it says at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bilevel.commands.arguments import answer, count
from bilevel.experiments.reproduction.backends import Backend, Processes
from bilevel.experiments.reproduction.driver import Driver, RunProgress
from bilevel.experiments.reproduction.folder import Experiment, ExperimentFolder, Locks, open_folder
from bilevel.experiments.reproduction.forecast import Forecast
from bilevel.experiments.reproduction.ray_backend import RayCluster
from bilevel.experiments.reproduction.selection import Request
from bilevel.experiments.reproduction.units import Unit
from bilevel.processes import usable_cores
from bilevel.symbolic.domain import BadInput

MOST_SHOWN = 16  # units that are being worked on
CHECKED_EVERY = 3.0  # seconds
SAID_EVERY = 30.0  # seconds, where nobody looks at a terminal


@dataclass(frozen=True)
class Reproduction:
    """A run of the experiment as a user asks for it."""

    output: Path
    request: Request
    experiment: Experiment
    backend: str
    address: str | None
    workers: int | None
    gpu_share: float
    json: bool

    def run(self) -> int:
        """Do all that is asked for and not there yet, and say how it went; return the exit code."""
        self._require_gpu()
        page = self.request.page
        if page:
            import_module("bilevel.experiments.report.writing")
        folder = open_folder(self.output, self.experiment)
        began = time.monotonic()
        progress = self._work(folder)
        seconds = time.monotonic() - began
        if page:
            _say("writing the report", self.json)
        self._print(progress, seconds, _write_report(folder, page) if page else None)
        return 1 if progress.failed or progress.waiting else 0

    def _work(self, folder: ExperimentFolder) -> RunProgress:
        units = self.request.units
        with closing(Locks(folder.path / "locks")) as locks, closing(self._backend(folder)) as backend:
            forecast, checking = Forecast(folder.experiment, self.gpu_share > 0), _Checking(len(units), self.json)
            driver = Driver(folder, units, backend, locks, forecast, checking.show)
            self._require_packages({unit.kind for unit in driver.progress.waiting})
            folder.note_run()
            self.request.note(folder)
            with Display(driver.progress, backend, self.json) as display:
                display.announce(units, self.request.left_out)
                try:
                    driver.run(display.show)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(
                        f"interrupted; {display.state()}; run the same command again to go on"
                    ) from None
                finally:
                    self.request.write_findings(folder)
        return driver.progress

    def _backend(self, folder: ExperimentFolder) -> Backend:
        if self.backend == "ray":
            return RayCluster(folder, self.address or "auto", self.workers, self.gpu_share)
        return Processes(folder, self.workers or usable_cores(), self.gpu_share)

    def _require_gpu(self) -> None:
        """`BadInput` where there is none to take a share of; a cluster is asked by its back-end."""
        if self.gpu_share and self.backend == "processes":
            from bilevel.lowlevel.training import find_device

            if find_device().type == "cpu":
                raise BadInput("--gpu-share: this machine has no GPU; leave it out to train on CPUs")

    def _require_packages(self, kinds: set[str]) -> None:
        """`BadInput` where work of these kinds is to be done here, and what it needs is not installed."""
        if self.backend == "processes" and "train" in kinds and find_spec("torch") is None:
            raise BadInput("torch is missing; install it with: pip install 'bilevel[learning]'")
        if self.backend == "processes" and "film" in kinds:
            import_module("PIL.ImageFont")
            import_module("av")

    def _print(self, progress: RunProgress, seconds: float, page: Path | None) -> None:
        """Print what was done on standard output and, unless it is for a program, what was not on standard error."""
        taken, left = progress.forecast.taken, [unit.name for unit in progress.waiting]
        failed = {unit.name: failure.error for unit, failure in progress.failed.items()}
        there = f", {progress.there} were there" if progress.there else ""
        spent = ", ".join(f"{kind} {duration(seconds)}" for kind, seconds in taken.items())
        missing = "; no report: there are no results" if self.request.page else ""
        lacking, asked = len(failed) + len(left), count(range(progress.total), "unit")
        whole = (
            f"incomplete: {lacking} of {asked} asked for are missing" if lacking else f"complete: all {asked} are there"
        )
        answer(
            {
                "output": str(self.output),
                "done": len(progress.done),
                "already_there": progress.there,
                "failed": failed,
                "not_done": left,
                "complete": not lacking,
                "left_out": list(self.request.left_out),
                "seconds": round(seconds, 1),
                "worker_seconds": {kind: round(seconds, 1) for kind, seconds in taken.items()},
                "report": page and str(page),
            },
            self.json,
            f"{count(progress.done, 'unit')} of work done in {duration(seconds)}{there}",
            whole,
            f"where the time went, all workers together: {spent}" if spent else "",
            f"findings: {self.output / self.request.findings}{f'; report: {page}' if page else missing}",
        )
        if not self.json:
            for name, error in failed.items():
                print(f"failed twice: {name}: {error}", file=sys.stderr)
            if left:
                more = " …" if left[5:] else ""
                print(f"not done, since they need what failed: {', '.join(left[:5])}{more}", file=sys.stderr)


def _write_report(folder: ExperimentFolder, name: str) -> Path | None:
    """Return where the page is; `None` if there is nothing to report on."""
    from bilevel.experiments.report.writing import PAGES, NothingFound

    page = folder.path / name
    try:
        PAGES[name](folder.path, page, folder.path / "report-files")
    except NothingFound:
        return None
    return page


def duration(seconds: float) -> str:
    """Return a time in words that a person plans with."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def _say(line: str, silent: bool = False) -> None:
    if not silent:
        Console(stderr=True).print(line, highlight=False, soft_wrap=True)


class _Checking:
    """Says what is being checked before any work begins, and for a long list now and then how far that is."""

    def __init__(self, total: int, silent: bool) -> None:
        self._total, self._silent, self._said = total, silent, time.monotonic()
        _say(f"checking what is there: {count(total, 'unit')} of work", silent)

    def show(self, number: int) -> None:
        if time.monotonic() - self._said > CHECKED_EVERY:
            self._said = time.monotonic()
            _say(f"checked {number:,} of {self._total:,}", self._silent)


class Display:
    """Shows how far it is: on a terminal all the time, elsewhere in a line now and then."""

    def __init__(self, progress: RunProgress, backend: Backend, silent: bool) -> None:
        self._progress, self._backend, self._silent = progress, backend, silent
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, transient=True, refresh_per_second=2, get_renderable=self._draw)
        self._said = time.monotonic()

    def __enter__(self) -> Display:
        if self._console.is_terminal and not self._silent:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def announce(self, units: Sequence[Unit], left_out: Sequence[str]) -> None:
        """Say what there is to do, and about how long it will take."""
        for line in left_out:
            self._say(f"left out: {line}")
        kinds = Counter(unit.kind for unit in self._progress.waiting)
        what = ", ".join(f"{kind} {number}" for kind, number in kinds.items()) or "nothing"
        self._say(f"{count(units, 'unit')} of work, {self._progress.there} of them there; to do: {what}")
        if kinds:
            workers, left = count(range(self._backend.workers), "worker"), self._left()
            self._say(f"about {left} with {workers}; the estimate gets better on the way")

    def show(self) -> None:
        """Say now and then how far it is, where there is no terminal that shows it."""
        if not self._live.is_started and time.monotonic() - self._said > SAID_EVERY:
            self._said = time.monotonic()
            self._say(self.state())

    def state(self) -> str:
        """Return how far the run is, in a line."""
        progress = self._progress
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        others = f", {len(progress.elsewhere)} with another run" if progress.elsewhere else ""
        done = progress.there + len(progress.done)
        return f"{done} of {progress.total} units there{failed}{others}; about {self._left()} left"

    def _left(self) -> str:
        return duration(self._progress.seconds_left(self._backend.workers))

    def _say(self, line: str) -> None:
        if not self._silent:
            self._console.print(line, highlight=False, soft_wrap=True)

    def _draw(self) -> RenderableType:
        progress = self._progress
        bar = ProgressBar(progress.total, progress.there + len(progress.done), width=60)
        table = Table.grid(padding=(0, 2))
        for unit, note in list(progress.running.items())[:MOST_SHOWN]:
            table.add_row(unit.name, Text(note, style="dim"))
        return Group(Text(self.state()), bar, table)

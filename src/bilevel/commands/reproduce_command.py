"""The command that runs the whole experiment."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bilevel.commands.arguments import count, print_json, require_at_least
from bilevel.commands.demonstration_commands import needing_worlds
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.backends import Backend
    from bilevel.experiments.reproduction.driver import Progress
    from bilevel.experiments.reproduction.folder import Kept
    from bilevel.experiments.reproduction.settings import Experiment, Wanted
    from bilevel.experiments.reproduction.units import Unit

Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...")]
Numbers = Annotated[str | None, tyro.conf.arg(metavar="N-M")]
Count = Annotated[int | None, tyro.conf.arg(metavar="N")]

QUICK_OBJECTS, QUICK_EPISODES, QUICK_SEEDS = "1,3,6", 3, 1
PARTS = ("table", "scaling", "films", "report")
MOST_SHOWN = 16  # units that are being worked on
TOLD_EVERY = 30.0  # seconds, where nobody looks at a terminal


@dataclass(frozen=True)
class Reproduce:
    """Run the whole experiment: collect, train, evaluate and report whatever is not there yet.

    It can be stopped or killed at any time: the same command goes on, here or on another machine that sees the folder.
    Several of them may work in one folder at the same time, and share the work. Results do not depend on who did what.

    Examples: bilevel reproduce --quick --output build/quick
              bilevel reproduce --tasks blocks gacha --methods bison det-replan --output build/some
              bilevel reproduce --backend ray --address auto --output build/all
    """

    output: Folder
    """Where everything is kept: demonstrations, policies, episodes, films, and report.html."""
    methods: Names = ()
    """Rows of the table (by default bison-paper, bison, expert, det-plan, det-replan, ndt-plan, ndt-replan, pddl-nn and
    pure-nn; there are also pddl-nn-practised, pure-nn-practised, smolvla and smolvla-metaworld)."""
    tasks: Names = ()
    """Some of the eight tasks (by default all)."""
    objects: Numbers = None
    """How many blocks, or in gacha target colours (by default 1-10)."""
    episodes: Count = None
    """For each number of objects (by default 10)."""
    seeds: Count = None
    """How many networks of each kind, each in worlds of its own (by default 3)."""
    quick: bool = False
    """A smaller version, labelled as such, which ends within 30 minutes on two cores: 50 demonstrations, short
    training, 1, 3 and 6 objects, 3 episodes, 1 seed."""
    backend: Literal["processes", "ray"] = "processes"
    """`processes` on this machine; `ray` on a cluster that you run. The results are the same, bit for bit."""
    address: str = "auto"
    """Of the Ray cluster, such as auto, 10.0.0.1:6379 or ray://head:10001."""
    workers: Count = None
    """How many units are worked on at the same time (by default one for each core)."""
    gpu_share: float = 0.0
    """Train on GPUs, each training with this share of one: 0.25 for four at a time. With 0, on CPUs, and to the same
    bits on every machine of a kind."""
    epochs: Count = None
    """Of cloning in the paper's setting (by default 200)."""
    end_to_end_epochs: Count = None
    """The same for networks that do all (by default as many as --epochs)."""
    demonstrations: Count = None
    """That each policy learns from (by default 200)."""
    parts: Names = PARTS
    """What to make: the table, scaling (large problems for rules and LAMA), films (an episode of each task), report."""
    json: bool = False
    """Print one JSON object at the end instead of text."""

    def run(self) -> int:
        self._check()
        with needing_worlds():
            from bilevel.experiments.reproduction.folder import open_folder
        wanted = self._wanted()
        kept = open_folder(self.output, self._experiment())
        began = time.monotonic()
        progress = self._work(kept, wanted)
        self._tell(kept, progress, time.monotonic() - began)
        return 1 if progress.failed or progress.waiting else 0

    def _check(self) -> None:
        counts = {"episodes": self.episodes, "seeds": self.seeds, "workers": self.workers, "epochs": self.epochs}
        require_at_least(1, **counts, end_to_end_epochs=self.end_to_end_epochs)
        require_at_least(2, demonstrations=self.demonstrations)
        if not 0 <= self.gpu_share <= 1:
            raise BadInput(f"--gpu-share is a part of a GPU, 0 to 1, not {self.gpu_share:g}")
        if unknown := [part for part in self.parts if part not in PARTS]:
            raise BadInput(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}")

    def _experiment(self) -> Experiment:
        from bilevel.experiments.reproduction.settings import QUICK, Experiment

        usual = QUICK if self.quick else Experiment()
        epochs = self.epochs or usual.epochs
        fewer = self.end_to_end_epochs or (self.epochs if self.epochs else usual.end_to_end_epochs)
        shown = self.demonstrations or usual.demonstrations
        return replace(usual, demonstrations=shown, epochs=epochs, end_to_end_epochs=fewer)

    def _wanted(self) -> Wanted:
        from bilevel.experiments.reproduction.settings import USUAL, Wanted, find_entrant
        from bilevel.tasks import TASKS, find_task

        tasks = [find_task(name) for name in dict.fromkeys(self.tasks or TASKS)]
        objects = self.objects or (QUICK_OBJECTS if self.quick else "1-10")
        return Wanted(
            tasks=[task.name for task in tasks],
            entrants=[find_entrant(name) for name in dict.fromkeys(self.methods or USUAL)],
            objects=parse_numbers(objects, max(task.most_objects for task in tasks)),
            episodes=self.episodes or (QUICK_EPISODES if self.quick else 10),
            seeds=range(self.seeds or (QUICK_SEEDS if self.quick else 3)),
            table="table" in self.parts,
            scaling="scaling" in self.parts,
            films="films" in self.parts,
        )

    def _work(self, kept: Kept, wanted: Wanted) -> Progress:
        from bilevel.experiments.reproduction.claims import Claims
        from bilevel.experiments.reproduction.costs import Forecast
        from bilevel.experiments.reproduction.driver import Driver
        from bilevel.experiments.reproduction.plan import plan_units, require_methods
        from bilevel.experiments.reproduction.summary import this_command, write_findings

        require_methods(wanted)
        units = plan_units(wanted, side_by_side=self.gpu_share > 0)
        with closing(Claims(kept)) as claims, closing(self._backend(kept)) as backend:
            driver = Driver(kept, units, backend, claims, Forecast(kept.experiment, self.gpu_share > 0))
            with _Display(driver.progress, backend, self.json) as display:
                display.announce(units)
                try:
                    driver.run(display.show)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(
                        f"interrupted; {display.state()}; run the same command again to go on"
                    ) from None
                finally:
                    write_findings(kept, this_command())
        return driver.progress

    def _backend(self, kept: Kept) -> Backend:
        if self.backend == "ray":
            from bilevel.experiments.reproduction.ray_backend import RayCluster

            return RayCluster(kept, self.address, self.workers, self.gpu_share)
        from bilevel.experiments.machines import cores
        from bilevel.experiments.reproduction.processes import Processes

        return Processes(kept, self.workers or cores(), self.gpu_share)

    def _tell(self, kept: Kept, progress: Progress, seconds: float) -> None:
        page = self._report(kept)
        left = [unit.name for unit in progress.waiting]
        failed = {unit.name: failure.error for unit, failure in progress.failed.items()}
        if self.json:
            print_json(
                output=str(kept.folder),
                done=len(progress.done),
                already_there=progress.there,
                failed=failed,
                not_done=left,
                seconds=round(seconds, 1),
                worker_seconds={kind: round(taken, 1) for kind, taken in progress.forecast.taken.items()},
                report=page and str(page),
            )
            return
        there = f", {progress.there} were there" if progress.there else ""
        print(f"{count(progress.done, 'unit')} of work done in {duration(seconds)}{there}")
        if progress.done:
            spent = [f"{kind} {duration(taken)}" for kind, taken in progress.forecast.taken.items()]
            print(f"where the time went, all workers together: {', '.join(spent)}")
        for name, error in failed.items():
            print(f"failed twice: {name}: {error}", file=sys.stderr)
        if left:
            print(
                f"not done, since they need what failed: {', '.join(left[:5])}{' …' if left[5:] else ''}",
                file=sys.stderr,
            )
        print(f"findings: {kept.findings}" + (f"; report: {page}" if page else ""))

    def _report(self, kept: Kept) -> Path | None:
        if "report" not in self.parts:
            return None
        from bilevel.experiments.report.writing import write_report

        page = kept.folder / "report.html"
        write_report(kept.folder, page)
        return page


def duration(seconds: float) -> str:
    """In words that a person plans with."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


class _Display:
    """Shows how far it is: on a terminal all the time, elsewhere in a line now and then."""

    def __init__(self, progress: Progress, backend: Backend, silent: bool) -> None:
        self._progress, self._backend, self._silent = progress, backend, silent
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, transient=True, refresh_per_second=2, get_renderable=self._draw)
        self._told = time.monotonic()

    def __enter__(self) -> _Display:
        if self._console.is_terminal and not self._silent:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def announce(self, units: Sequence[Unit]) -> None:
        """What there is to do, and about how long it will take."""
        kinds = Counter(unit.kind for unit in self._progress.waiting)
        what = ", ".join(f"{kind} {number}" for kind, number in kinds.items()) or "nothing"
        self._say(f"{count(units, 'unit')} of work, {self._progress.there} of them there; to do: {what}")
        if kinds:
            workers = self._backend.workers
            left = duration(self._progress.seconds_left(workers))
            self._say(
                f"about {left} with {workers} worker{'s' if workers > 1 else ''}; the estimate gets better on the way"
            )

    def show(self) -> None:
        if not self._live.is_started and time.monotonic() - self._told > TOLD_EVERY:
            self._told = time.monotonic()
            self._say(self.state())

    def state(self) -> str:
        progress = self._progress
        done = progress.there + len(progress.done)
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        others = f", {len(progress.elsewhere)} with another run" if progress.elsewhere else ""
        left = duration(progress.seconds_left(self._backend.workers))
        return f"{done} of {progress.total} units there{failed}{others}; about {left} left"

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

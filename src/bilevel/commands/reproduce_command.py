"""The command that runs the whole experiment."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import count, print_json, require_at_least
from bilevel.commands.demonstration_commands import needing_worlds
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.commands.policy_commands import needing_torch
from bilevel.commands.report_command import needing_report
from bilevel.commands.reproduction_display import Display, duration
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.backends import Backend
    from bilevel.experiments.reproduction.driver import Progress
    from bilevel.experiments.reproduction.folder import Kept
    from bilevel.experiments.reproduction.settings import Experiment, Wanted

Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME...")]
Numbers = Annotated[str | None, tyro.conf.arg(metavar="N-M")]
Count = Annotated[int | None, tyro.conf.arg(metavar="N")]
Address = Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")]

QUICK_OBJECTS, QUICK_EPISODES, QUICK_SEEDS = "1,3,6", 3, 1
PARTS = ("table", "memory", "scaling", "films", "report")


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
    training, 1, 3 and 6 objects, 3 episodes, 1 seed. What you give besides counts instead."""
    backend: Literal["processes", "ray"] = "processes"
    """`processes` on this machine; `ray` on a cluster that you run. The results are the same, bit for bit."""
    address: Address = None
    """Of the Ray cluster, such as 10.0.0.1:6379 or ray://head:10001 (by default auto: the one of this machine)."""
    workers: Count = None
    """How many units are worked on at the same time (by default one for each core)."""
    gpu_share: float = 0.0
    """Train on a GPU, each training with this share of one: 0.25 for four at a time. With 0, on CPUs, and to the same
    bits on every machine of a kind. On a machine with several GPUs, start a run for each, with CUDA_VISIBLE_DEVICES."""
    epochs: Count = None
    """Of cloning in the paper's setting (by default 200, or 20 if quick)."""
    end_to_end_epochs: Count = None
    """The same for networks that do all (by default as many as --epochs, if that is given, else 200, or 6 if quick)."""
    demonstrations: Count = None
    """That each policy learns from (by default 200, or 50 if quick)."""
    parts: Names = PARTS
    """What to make: the table, memory (what each row needs), scaling (large problems for rules and LAMA), films (an
    episode of each task), report."""
    json: bool = False
    """Print one JSON object at the end instead of text."""

    def run(self) -> int:
        self._check()
        with needing_worlds():
            from bilevel.experiments.reproduction.folder import open_folder
            from bilevel.experiments.reproduction.plan import require_methods
        wanted = self._wanted()
        require_methods(wanted)
        self._require_gpu()
        if "report" in self.parts:
            with needing_report():
                import_module("bilevel.experiments.report.writing")
        kept = open_folder(self.output, self._experiment())
        began = time.monotonic()
        progress = self._work(kept, wanted)
        self._tell(kept, wanted, progress, time.monotonic() - began)
        return 1 if progress.failed or progress.waiting else 0

    def _check(self) -> None:
        counts = {"episodes": self.episodes, "seeds": self.seeds, "workers": self.workers, "epochs": self.epochs}
        require_at_least(1, **counts, end_to_end_epochs=self.end_to_end_epochs)
        require_at_least(2, demonstrations=self.demonstrations)
        if not 0 <= self.gpu_share <= 1:
            raise BadInput(f"--gpu-share is a part of a GPU, 0 to 1, not {self.gpu_share:g}")
        if unknown := [part for part in self.parts if part not in PARTS]:
            raise BadInput(f"unknown part '{unknown[0]}'; there are: {', '.join(PARTS)}")
        if self.address is not None and self.backend != "ray":
            raise BadInput("--address is that of a Ray cluster, and goes with --backend ray")

    def _experiment(self) -> Experiment:
        from bilevel.experiments.reproduction.settings import QUICK, Experiment

        usual = QUICK if self.quick else Experiment()
        epochs = self.epochs or usual.epochs
        end_to_end_epochs = self.end_to_end_epochs or self.epochs or usual.end_to_end_epochs
        shown = self.demonstrations or usual.demonstrations
        return replace(usual, demonstrations=shown, epochs=epochs, end_to_end_epochs=end_to_end_epochs)

    def _wanted(self) -> Wanted:
        from bilevel.experiments.reproduction.settings import USUAL, Wanted, find_entrant
        from bilevel.tabletop.tasks import TASKS, find_task

        tasks = [find_task(name) for name in dict.fromkeys(self.tasks or TASKS)]
        objects = self.objects or (QUICK_OBJECTS if self.quick else "1-10")
        return Wanted(
            tasks=[task.name for task in tasks],
            entrants=[find_entrant(name) for name in dict.fromkeys(self.methods or USUAL)],
            objects=parse_numbers(objects, max(task.most_objects for task in tasks)),
            episodes=self.episodes or (QUICK_EPISODES if self.quick else 10),
            seeds=range(self.seeds or (QUICK_SEEDS if self.quick else 3)),
            table="table" in self.parts,
            memory="memory" in self.parts,
            scaling="scaling" in self.parts,
            films="films" in self.parts,
        )

    def _work(self, kept: Kept, wanted: Wanted) -> Progress:
        from bilevel.experiments.reproduction.claims import Claims
        from bilevel.experiments.reproduction.costs import Forecast
        from bilevel.experiments.reproduction.driver import Driver
        from bilevel.experiments.reproduction.plan import left_out, plan_units
        from bilevel.experiments.reproduction.summary import this_command, write_findings

        units = plan_units(wanted, side_by_side=self.gpu_share > 0)
        with closing(Claims(kept)) as claims, closing(self._backend(kept)) as backend:
            driver = Driver(kept, units, backend, claims, Forecast(kept.experiment, self.gpu_share > 0))
            self._require_packages({unit.kind for unit in driver.progress.waiting})
            with Display(driver.progress, backend, self.json) as display:
                display.announce(units, left_out(wanted))
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

            return RayCluster(kept, self.address or "auto", self.workers, self.gpu_share)
        from bilevel.experiments.machines import cores
        from bilevel.experiments.reproduction.processes import Processes

        return Processes(kept, self.workers or cores(), self.gpu_share)

    def _require_gpu(self) -> None:
        """`BadInput` where there is none to take a share of; a cluster is asked by its back-end."""
        if self.gpu_share and self.backend == "processes":
            with needing_torch():
                from bilevel.lowlevel.training import usual_device
            if usual_device().type == "cpu":
                raise BadInput("--gpu-share: this machine has no GPU; leave it out to train on CPUs")

    def _require_packages(self, kinds: set[str]) -> None:
        """`BadInput` where work of these kinds is to be done here, and what it needs is not installed."""
        if self.backend == "processes" and "train" in kinds and find_spec("torch") is None:
            raise BadInput("torch is missing; install it with: pip install 'bilevel[learning]'")
        if self.backend == "processes" and "film" in kinds:
            from bilevel.video import package

            package("PIL.ImageFont", "films")
            package("av", "films")

    def _tell(self, kept: Kept, wanted: Wanted, progress: Progress, seconds: float) -> None:
        from bilevel.experiments.reproduction.plan import left_out

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
                left_out=left_out(wanted),
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
        report = f"; report: {page}" if page else "; no report: there are no results" if "report" in self.parts else ""
        print(f"findings: {kept.findings}{report}")

    def _report(self, kept: Kept) -> Path | None:
        """Where it is; `None` if none is wanted, or there is nothing to report on."""
        if "report" not in self.parts:
            return None
        from bilevel.experiments.report.sources import NothingFound
        from bilevel.experiments.report.writing import write_report

        try:
            return write_report(kept.folder, kept.folder / "report.html").page
        except NothingFound:
            return None

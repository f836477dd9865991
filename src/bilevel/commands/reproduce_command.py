"""The command that runs the whole experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import Words, require_at_least
from bilevel.commands.evaluate_command import parse_numbers
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.folder import Experiment
    from bilevel.experiments.reproduction.selection import Selection

Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Names = Annotated[Words, tyro.conf.arg(metavar="NAME...")]
Numbers = Annotated[Optional[str], tyro.conf.arg(metavar="N-M")]
Count = Annotated[Optional[int], tyro.conf.arg(metavar="N")]
Address = Annotated[Optional[str], tyro.conf.arg(metavar="HOST:PORT")]

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
    """Tasks of the tabletop (by default the eight of the paper)."""
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
        """Run the command; return the exit code."""
        from bilevel.commands.reproduction_run import Reproduction

        self._check()
        how = self.backend, self.address, self.workers, self.gpu_share, self.json
        return Reproduction(self.output, self._selection(), self._experiment(), *how).run()

    def _selection(self) -> Selection:
        from bilevel.experiments.reproduction.selection import Selection, find_task_names, room
        from bilevel.experiments.reproduction.units import USUAL, find_variant

        tasks = find_task_names(self.tasks)
        objects, episodes, seeds = ("1,3,6", 3, 1) if self.quick else ("1-10", 10, 3)
        return Selection(
            tasks=tasks,
            variants=[find_variant(name) for name in dict.fromkeys(self.methods or USUAL)],
            objects=parse_numbers(self.objects or objects, max(map(room, tasks))),
            episodes=self.episodes or episodes,
            seeds=range(self.seeds or seeds),
            parts=self.parts,
        )

    def _experiment(self) -> Experiment:
        import msgspec

        from bilevel.experiments.reproduction.folder import QUICK, Experiment

        usual = QUICK if self.quick else Experiment()
        return msgspec.structs.replace(
            usual,
            demonstrations=self.demonstrations or usual.demonstrations,
            epochs=self.epochs or usual.epochs,
            end_to_end_epochs=self.end_to_end_epochs or self.epochs or usual.end_to_end_epochs,
        )

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

"""Options that all commands have that run experiments in a folder: of what size, and on which machines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import Words, require_at_least, require_positive
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.reproduction.folder import Experiment
    from bilevel.experiments.reproduction.selection import Request

Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Names = Annotated[Words, tyro.conf.arg(metavar="NAME...")]
Numbers = Annotated[Optional[str], tyro.conf.arg(metavar="N-M")]
Count = Annotated[Optional[int], tyro.conf.arg(metavar="N")]
Rate = Annotated[Optional[float], tyro.conf.arg(metavar="X")]
Address = Annotated[Optional[str], tyro.conf.arg(metavar="HOST:PORT")]


@dataclass(frozen=True)
class ExperimentOptions:
    """What a command that runs an experiment in a folder takes, whatever it measures there."""

    output: Folder
    """Where everything is kept: demonstrations, policies, episodes, and the report."""
    backend: Literal["processes", "ray"] = "processes"
    """`processes` on this machine; `ray` on a cluster that you run. The results are the same, bit for bit."""
    address: Address = None
    """Of the Ray cluster, such as 10.0.0.1:6379 or ray://head:10001 (by default auto: the one of this machine)."""
    workers: Count = None
    """How many units are worked on at the same time (by default one for each core)."""
    gpu_share: float = 0.0
    """Train on a GPU, each training with this share of one: 0.25 for four at a time. With 0, on CPUs, and to the same
    bits on every machine of a kind. On a machine with several GPUs, start a run for each, with CUDA_VISIBLE_DEVICES."""
    episodes: Count = None
    """For each number of objects, with each seed (by default 10, or 3 if quick)."""
    seeds: Count = None
    """How many networks of each kind, each in worlds of its own (by default 3, or 1 if quick)."""
    epochs: Count = None
    """Of cloning in the paper's setting, whatever the method (by default 200, or 20 if quick)."""
    updates: Count = None
    """The same in steps of training: so many over all epochs, however many samples a task has (by default one pass over
    the samples an epoch)."""
    learning_rate: Rate = None
    """Of all networks at first; it falls to 0 along a cosine (by default 0.001)."""
    dagger_episodes: Count = None
    """Rollouts in each round of DAgger, whatever the method (by default 60, or 20 if quick)."""
    demonstrations: Count = None
    """That each policy learns from (by default 200, or 50 if quick)."""
    json: bool = False
    """Print one JSON object at the end instead of text."""

    def experiment_like(self, usual: Experiment) -> Experiment:
        """Return what all work in the folder has in common: what is given, and else what is usual."""
        import msgspec

        return msgspec.structs.replace(
            usual,
            demonstrations=self.demonstrations or usual.demonstrations,
            epochs=self.epochs or usual.epochs,
            updates=self.updates or usual.updates,
            learning_rate=self.learning_rate or usual.learning_rate,
            dagger_episodes=self.dagger_episodes or usual.dagger_episodes,
        )

    def start(self, request: Request, experiment: Experiment) -> int:
        """Do what is asked for and not there yet; return the exit code."""
        from bilevel.commands.reproduction_run import Reproduction

        how = self.backend, self.address, self.workers, self.gpu_share, self.json
        return Reproduction(self.output, request, experiment, *how).run()

    def check_options(self) -> None:
        """`BadInput` for numbers that make no sense, and for options that do not go together."""
        training = {"epochs": self.epochs, "updates": self.updates, "dagger_episodes": self.dagger_episodes}
        require_at_least(1, episodes=self.episodes, seeds=self.seeds, workers=self.workers, **training)
        require_at_least(2, demonstrations=self.demonstrations)
        require_positive(learning_rate=self.learning_rate)
        if not 0 <= self.gpu_share <= 1:
            raise BadInput(f"--gpu-share is a part of a GPU, 0 to 1, not {self.gpu_share:g}")
        if self.address is not None and self.backend != "ray":
            raise BadInput("--address is that of a Ray cluster, and goes with --backend ray")

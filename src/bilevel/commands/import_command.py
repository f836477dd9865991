"""The command that imports demonstrations which others recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import (
    EnvArguments,
    Json,
    OptionalTask,
    Words,
    answer,
    count,
    env_arguments,
    progress_bar,
    require_positive,
)

if TYPE_CHECKING:
    from bilevel.demonstrations.dataset import ImportReport

SOURCE_HELP = "A file or a folder, or the name of a Minari data set."
RecordedSource = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE", help=SOURCE_HELP)]
OutputFolder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Function = Annotated[Optional[str], tyro.conf.arg(metavar="FILE:FUNCTION")]
Hertz = Annotated[Optional[float], tyro.conf.arg(metavar="HZ")]
Names = Annotated[Words, tyro.conf.arg(metavar="NAME...")]
OptionalName = Annotated[Optional[str], tyro.conf.arg(metavar="NAME")]
Number = Annotated[Optional[int], tyro.conf.arg(metavar="N")]


@dataclass(frozen=True)
class Import:
    """Make a data set of episodes that somebody else recorded: arrays, Minari's, LeRobot's, robomimic's.

    Afterwards the folder is there and whole, or nothing is. What was exported by `bilevel demonstrations export` comes
    back as it was.

    Example: bilevel import play.npz --task cubes.py:task --perceive cubes.py:from_vector --output build/cubes
    """

    source: RecordedSource
    output: OutputFolder
    """New folder for the data set."""
    task: OptionalTask = None
    """The task to learn: its name, or file.py:task (by default the one that an export of ours names)."""
    format: Optional[Literal["npz", "minari", "lerobot", "robomimic"]] = None
    """The format, where it is not seen."""
    perceive: Function = None
    """From an observation, or that and its info, to a Scene (by default the task's, without an environment)."""
    hindsight: Annotated[Optional[str], tyro.conf.arg(metavar="final|each|FILE:FUNCTION")] = None
    """What was brought about was wanted: what holds at the end (`final`), or each fact that comes true (`each`), of
    those that the task's goals are made of; or a function finds the goals."""
    controls_from: Annotated[Optional[str], tyro.conf.arg(metavar="expert|FILE:FUNCTION")] = None
    """Who makes the controls, where none were recorded or these are of another kind: the task's expert, or a function
    of a scene, the next one, and what was recorded."""
    rate: Hertz = None
    """Keep so many timesteps per second."""
    recorded_rate: Hertz = None
    """How many there are, where the recordings do not say so."""
    combine: Literal["mean", "sum", "last"] = "mean"
    """What becomes of the controls between two timesteps that are kept: the mean of velocities, the sum of
    displacements, the last of targets."""
    clip: bool = False
    """Move controls that are out of the action space's bounds to the bounds, instead of refusing them."""
    keep_failed: bool = False
    """Keep failed episodes, too, up to where the most of the goal was achieved."""
    demonstrator: Names = ()
    """Only the episodes of these demonstrators."""
    mask: OptionalName = None
    """Only those episodes of a robomimic file that this mask names."""
    objects: Number = None
    """How many objects the environment has in which a policy will practise (3 unless told)."""
    env_args: EnvArguments = ()
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.importing.importer import import_demonstrations
        from bilevel.tasks.registry import find_task

        require_positive(rate=self.rate, recorded_rate=self.recorded_rate)
        with progress_bar() as progress:
            bar = progress.add_task("importing")
            data = import_demonstrations(
                self.source,
                None if self.task is None else find_task(self.task),
                self.output,
                format=self.format,
                mask=self.mask,
                perceive=self.perceive,
                hindsight=self.hindsight,
                controls_from=self.controls_from,
                rate=self.rate,
                recorded_rate=self.recorded_rate,
                combine=self.combine,
                demonstrator=self.demonstrator,
                keep_failed=self.keep_failed,
                clip=self.clip,
                objects=self.objects,
                arguments=env_arguments(self.env_args),
                callback=lambda now: progress.update(bar, completed=now.done, total=now.total),
            )
        assert data.report
        self._report(data.report)
        return 0

    def _report(self, report: ImportReport) -> None:
        demonstrators = {name: number for name, number in sorted(report.demonstrators.items()) if name}
        values = {
            "output": str(self.output),
            "read": report.read,
            "kept": report.kept,
            "steps": report.steps,
            "dropped": dict(report.dropped),
            "rate": report.rate,
            "controls": dict(report.controls),
            "demonstrators": demonstrators,
            "notes": report.notes,
        }
        kept = f"{count(report.kept, 'demonstration')} kept, {report.steps} steps"
        rate = f" at {report.rate:g} Hz" if report.rate else ""
        controls = ", ".join(f"{what} ({number})" for what, number in report.controls.most_common())
        answer(
            values,
            self.json,
            f"{count(report.read, 'episode')} read, {kept}{rate}",
            *(f"dropped: {number} {reason}" for reason, number in report.dropped.most_common()),
            f"controls: {controls}",
            f"demonstrators: {_numbers(demonstrators)}" if demonstrators else "",
            *report.notes,
            f"written to {self.output}",
        )


def _numbers(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())

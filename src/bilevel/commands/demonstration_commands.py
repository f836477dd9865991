"""Commands about demonstrations: collect a data set, replay it, look at it, export it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import (
    DataFolder,
    EnvArguments,
    Json,
    Names,
    OptionallyNamed,
    OptionalTask,
    PerceptionText,
    Size,
    TaskName,
    WorkerCount,
    answer,
    count,
    env_arguments,
    named_after,
    picture_size,
    print_json,
    progress_bar,
    require_at_least,
    resumable,
    task_of,
)
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.demonstrations.demonstration import Demonstration
    from bilevel.progress import Callback, Progress

OutputFolder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Episode = Annotated[Optional[int], tyro.conf.arg(metavar="K")]


@dataclass(frozen=True)
class Collect:
    """Let a task's expert demonstrate it, and keep the episodes that succeed: a data set.

    Stopped or killed, it goes on where it was when the same command is given again; with more --episodes it adds to
    what is there. The files are the same for any number of workers.

    Example: bilevel collect blocks --objects 3 --episodes 200 --seed 0 --output build/blocks
    """

    task: TaskName
    output: OutputFolder
    """Folder for the data set: a manifest, and a file for each episode."""
    objects: int = 3
    """How many objects the environment shall have, as the task counts them."""
    episodes: int = 200
    """How many episodes to keep."""
    seed: int = 0
    """Decides everything that is random."""
    workers: WorkerCount = None
    """How many processes record at the same time (by default one for each core, where that saves time)."""
    noise: Optional[float] = None
    """Perturb the expert's controls by bursts of this amplitude, such as 0.7; what it wanted and what was done are both
    kept."""
    perception: PerceptionText = ""
    env_args: EnvArguments = ()
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.collect import collect
        from bilevel.tasks.registry import find_task

        started, done = time.perf_counter(), 0
        require_at_least(1, workers=self.workers)
        task, further = find_task(self.task), env_arguments(self.env_args)
        wanted = f"{count(self.episodes, 'episode')} are in {self.output}"
        with resumable(lambda: f"{done} of {wanted}"), progress_bar() as progress:
            bar = progress.add_task("collecting", total=self.episodes)

            def callback(so_far: Progress) -> None:
                nonlocal done
                done = so_far.done
                failures = so_far.values.get("failed attempts")
                failed = f" ({failures} failed)" if failures else ""
                progress.update(bar, completed=done, description=f"collecting{failed}")

            data = collect(
                task,
                self.output,
                objects=self.objects,
                episodes=self.episodes,
                seed=self.seed,
                noise=self.noise,
                perception=self.perception,
                workers=self.workers,
                callback=callback,
                **further,
            )
        self._report(data, time.perf_counter() - started)
        return 0

    def _report(self, data: Demonstrations, seconds: float) -> None:
        assert data.manifest
        assert data.collected
        report = data.collected
        entries, kept = data.manifest.files, report.already_there
        steps = sum(entry.steps for entry in entries)
        megabytes = sum((self.output / entry.file).stat().st_size for entry in entries) / 1e6
        found = {
            "output": str(self.output),
            "episodes": self.episodes,
            "already_there": kept,
            "broken": report.broken,
            "failed_attempts": report.failed_attempts,
            "failures": dict(report.failures),
            "steps": steps,
            "megabytes": round(megabytes, 2),
            "seconds": round(seconds, 2),
        }
        there = f", {kept} of them already there" if kept else ""
        reasons = ", ".join(f"{number} {reason}" for reason, number in report.failures.most_common())
        failed = f"; {count(report.failed_attempts, 'failed attempt')} not kept" if report.failed_attempts else ""
        answer(
            found,
            self.json,
            *(f"{problem}; collected again" for problem in report.broken),
            f"{count(self.episodes, 'episode')}{there}, {steps} steps, {megabytes:.1f} MB{failed}"
            f"{f' ({reasons})' if reasons else ''}",
            f"written to {self.output} in {seconds:.1f} s",
        )


@dataclass(frozen=True)
class ReplayDemonstrations:
    """Execute a data set's episodes again, from their seeds, and say whether they are the same bit for bit.

    Exits with 1, and says where the first difference is, if they are not.

    Example: bilevel demonstrations replay build/blocks --episode 3 --video
    """

    folder: DataFolder
    episode: Episode = None
    """Only this one, counted from 0."""
    task: OptionalTask = None
    """Where the task is, if it is not registered: file.py:task or module:task."""
    video: OptionallyNamed = None
    """Write a video of the episode, with what the expert was doing as its caption (without a FILE: TASK.mp4 in this
    folder)."""
    quality: Literal["fast", "smooth", "good"] = "smooth"
    """Of the video, where there is a choice: good has shadows, too; fast is small and has rough edges."""
    size: Size = None
    names: Names = False
    json: bool = False
    """Print one JSON object for each episode instead of text."""

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations
        from bilevel.demonstrations.replay import replay

        if self.episode is None and self.video:
            raise BadInput("--video shows one episode: say which with --episode K")
        if (self.names or self.size) and not self.video:
            raise BadInput("--names and --size are about pictures: add --video")
        data = Demonstrations.read(self.folder)
        task = task_of(data.task, self.task, str(self.folder))
        video = named_after(task.name, self.video, ".mp4")
        with progress_bar() as progress:
            bar = progress.add_task("replaying")
            found = replay(
                data,
                task,
                episode=self.episode,
                video=video,
                quality=self.quality,
                size=picture_size(self.size),
                names=self.names,
                callback=lambda so_far: progress.update(bar, completed=so_far.done, total=so_far.total),
            )
        different = {number: text for number, text in found.differences.items() if text is not None}
        if self.json:
            for number, text in found.differences.items():
                print_json(episode=number, matches=text is None, difference=text)
            return 1 if different else 0
        for number, text in different.items():
            print(f"episode {number}: {text}")
        total = len(found.differences)
        print(f"{count(total, 'episode')}, {total - len(different)} the same bit for bit")
        for cause in found.causes:
            print(cause)
        if video:
            print(f"written to {video}")
        return 1 if different else 0


def _checked(number: int, data: Demonstrations) -> int:
    if not 0 <= number < len(data):
        raise BadInput(f"there is no episode {number}: they are counted from 0 to {len(data) - 1}")
    return number


@dataclass(frozen=True)
class ShowDemonstrations:
    """Say what a data set is, or tell one of its episodes: goals, actions and events, with their steps."""

    folder: DataFolder
    episode: Episode = None
    """Tell this one, counted from 0."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations

        data = Demonstrations.read(self.folder)
        if self.episode is not None:
            story = _story(data[_checked(self.episode, data)])
            lines = (f"{timestep:6}  {what}" for timestep, what in story)
            answer({"episode": self.episode, "story": story}, self.json, *lines)
            return 0
        assert data.manifest is not None
        command, made_with = data.manifest.command_for(self.folder), data.manifest.versions
        steps = sum(entry.steps for entry in data.manifest.files)
        answer(
            {"command": command, "episodes": len(data), "steps": steps, "versions": made_with},
            self.json,
            command,
            f"{count(data, 'episode')}, {steps} steps",
            "objects of the first: " + ", ".join(f"{name} ({kind})" for name, kind in data[0].objects.items()),
            "made with " + ", ".join(f"{name} {version}" for name, version in made_with.items()),
        )
        return 0


def _story(demonstration: Demonstration) -> list[tuple[int, str]]:
    """Return what happened when, in order."""
    story = [(timestep, f"goal: {', '.join(map(str, sorted(goal)))}") for timestep, goal in demonstration.goals]
    story += [(timestep, f"event: {event}") for timestep, event in demonstration.events]
    for action, run in groupby(range(demonstration.steps), key=lambda step: demonstration.actions[step]):
        story += [(next(run), str(action))] if action else []
    story.append((demonstration.steps, demonstration.outcome))
    return sorted(story, key=lambda entry: entry[0])


@dataclass(frozen=True)
class ExportDemonstrations:
    """Write a data set in another format: as one of Minari's, or of LeRobot's (v3.0).

    Minari keeps its data sets in MINARI_DATASETS_PATH or ~/.minari/datasets; for LeRobot it is a folder of your choice.
    In both, actions are the controls as they were executed; what the expert wanted and was doing is beside them.

    Example: bilevel demonstrations export build/blocks --lerobot build/lerobot/blocks
    """

    folder: DataFolder
    minari: Annotated[Optional[str], tyro.conf.arg(metavar="NAMESPACE/NAME-vN")] = None
    """What Minari shall call it."""
    lerobot: Annotated[Optional[Path], tyro.conf.arg(metavar="DIR")] = None
    """New folder for LeRobot."""
    rate: Annotated[Optional[float], tyro.conf.arg(metavar="HZ")] = None
    """How many timesteps there are in a second, for LeRobot; unless told, what the data set says, or else 10."""
    task: OptionalTask = None
    """Where the task is, if it is not registered, so that Minari can make its environment again."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.demonstrations.dataset import Demonstrations

        if (self.minari is None) == (self.lerobot is None):
            raise BadInput("say which format it shall be: either --minari NAMESPACE/NAME-vN or --lerobot DIR")
        data = Demonstrations.read(self.folder)
        with progress_bar() as progress:
            bar = progress.add_task("exporting", total=len(data))

            def callback(now: Progress) -> None:
                progress.update(bar, completed=now.done, total=now.total)

            target = self._to_minari(data, callback) if self.minari else self._to_lerobot(data, callback)
        minari = f"minari.load_dataset({self.minari!r})"
        lerobot = f"LeRobotDataset({'bilevel/' + data.task!r}, root={str(target)!r})"
        answer(
            {"minari": self.minari, "output": str(target), "episodes": len(data)},
            self.json,
            f"{count(data, 'episode')} written to {target}",
            f"read them with: {minari if self.minari else lerobot}",
        )
        return 0

    def _to_minari(self, data: Demonstrations, callback: Callback) -> Path:
        from bilevel.demonstrations.minari_export import export_to_minari
        from bilevel.tasks.registry import find_task, registered_task

        assert self.minari is not None
        task = find_task(self.task) if self.task else registered_task(data.task)
        return export_to_minari(data, self.minari, task, callback)

    def _to_lerobot(self, data: Demonstrations, callback: Callback) -> Path:
        from bilevel.demonstrations.lerobot_export import export_to_lerobot

        assert self.lerobot is not None
        return export_to_lerobot(data, self.lerobot, self.rate, callback)

"""Commands about demonstrations: collect a data set, check it, replay it, look at it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import count, print_json, progress_bar
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.checking import Report
    from bilevel.demonstrations.collection import Collection
    from bilevel.demonstrations.demonstration import Demonstration
    from bilevel.demonstrations.manifest import Manifest

TaskName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
Folder = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
OutputFolder = Annotated[Path, tyro.conf.arg(metavar="DIR")]


@contextmanager
def needing_worlds() -> Iterator[None]:
    """The worlds are an extra: imported only by the commands that need them."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing; install it with: pip install 'bilevel[worlds]'") from None


@dataclass(frozen=True)
class Collect:
    """Let a task's expert demonstrate it, and keep the episodes that succeed: a data set.

    Stopped or killed, it goes on where it was when the same command is given again; with more --episodes it adds to
    what is there. The files are the same for any number of workers.

    Example: bilevel collect blocks --objects 3 --episodes 200 --seed 0 --output build/blocks --workers 2
    """

    task: TaskName
    """blocks, factory, colour, gacha; with -noisy, objects teleport away from their goals."""
    output: OutputFolder
    """Folder for the data set: a manifest, and a file for each episode."""
    objects: int = 3
    """How many blocks, or in gacha target colours."""
    episodes: int = 200
    """How many episodes to keep."""
    seed: int = 0
    """Decides everything that is random."""
    workers: int = 1
    """How many processes record at the same time."""
    noise: float | None = None
    """Disturb the expert by bursts of this amplitude, such as 0.7; what it wanted and what was done are both kept."""
    teleport_rate: float | None = None
    """How probably an object at its goal teleports at a step (by default 0, in the noisy tasks 1/2000)."""
    draw: Literal["empty", "uniform"] | None = None
    """Gacha: draw among the colours whose trays are empty, or among all."""
    colours: int | None = None
    """Colour: how many colours there are."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        started = time.perf_counter()
        if self.workers < 1:
            raise BadInput(f"--workers must be at least 1, but is {self.workers}")
        with needing_worlds():
            from bilevel.demonstrations.collection import open_collection
            from bilevel.demonstrations.recording import ExpertFailed, make_recipe

            further = {"teleport_rate": self.teleport_rate, "draw": self.draw, "colours": self.colours}
            recipe, slots = make_recipe(self.task, self.objects, seed=self.seed, noise=self.noise, **further)
        with open_collection(self.output, recipe, slots, self.episodes) as collection:
            kept = len(collection.entries)
            for problem in () if self.json else collection.broken:
                print(f"{problem}; collected again")
            try:
                self._collect(collection)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted; {self._state(collection)}") from None
            except ExpertFailed:
                raise
            except BadInput as error:
                raise BadInput(f"{error}; {self._state(collection)}") from None
        self._tell(collection, kept, time.perf_counter() - started)
        return 0

    def _collect(self, collection: Collection) -> None:
        with progress_bar() as progress:
            bar = progress.add_task("collecting", total=self.episodes, completed=len(collection.entries))
            for _ in collection.collect(self.workers):
                failed = f" ({collection.failures} failed)" if collection.failures else ""
                progress.update(bar, advance=1, description=f"collecting{failed}")

    def _state(self, collection: Collection) -> str:
        there = f"{len(collection.entries)} of {count(range(self.episodes), 'episode')} are in {self.output}"
        return f"{there}; run the same command again to go on"

    def _tell(self, collection: Collection, kept: int, seconds: float) -> None:
        steps = sum(entry.steps for entry in collection.entries.values())
        megabytes = sum((self.output / entry.file).stat().st_size for entry in collection.entries.values()) / 1e6
        if self.json:
            print_json(
                output=str(self.output),
                episodes=self.episodes,
                already_there=kept,
                broken=collection.broken,
                failed_attempts=collection.failures,
                steps=steps,
                megabytes=round(megabytes, 2),
                seconds=round(seconds, 2),
            )
            return
        there = f", {kept} of them already there" if kept else ""
        failed = f"; {count(range(collection.failures), 'failed attempt')} not kept" if collection.failures else ""
        print(f"{count(range(self.episodes), 'episode')}{there}, {steps} steps, {megabytes:.1f} MB{failed}")
        print(f"written to {self.output} in {seconds:.1f} s")


@dataclass(frozen=True)
class CheckDemonstrations:
    """Read every file of a data set and name those that are broken, with the reason; exits with 1 if there are any.

    Also says what is in it: steps, high-level actions by schema, changes that no action explains.
    """

    folder: Folder
    """Folder of the data set."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.demonstrations.checking import check
        with progress_bar() as progress:
            bar = progress.add_task("checking")
            report = check(self.folder, lambda done, total: progress.update(bar, completed=done, total=total))
        if self.json:
            self._print_json(report)
        else:
            for line in (*report.problems, *_contents(report)):
                print(line)
            print(f"{count(report.problems, 'problem')}" if report.problems else "all files are whole")
        return 1 if report.problems else 0

    def _print_json(self, report: Report) -> None:
        found = report.summary
        print_json(
            problems=report.problems,
            task=report.manifest.recipe.task if report.manifest else None,
            episodes=found.episodes,
            steps=found.steps,
            actions=dict(sorted(found.actions.items())),
            exogenous=found.exogenous,
            ambiguous=found.ambiguous,
            events=dict(sorted(found.events.items())),
            explained_steps=found.explained,
            agreeing_steps=found.agreeing,
            megabytes=round(report.megabytes, 2),
        )


def _contents(report: Report) -> Iterator[str]:
    """What is in the files that could be read."""
    found = report.summary
    if report.manifest is None or not found.episodes:
        return
    actions = ", ".join(f"{name} {number}" for name, number in sorted(found.actions.items()))
    events = ", ".join(f"{name} {number}" for name, number in sorted(found.events.items()))
    told = f" (events: {events})" if events else ""
    yield f"{report.manifest.recipe.task}: {count(range(found.episodes), 'episode')}, {found.steps} steps"
    yield f"{found.steps / found.episodes:.1f} steps an episode, {report.megabytes:.1f} MB"
    yield f"actions: {actions}"
    yield f"exogenous changes: {found.exogenous}{told}; changes with several explanations: {found.ambiguous}"
    yield f"steps with a high-level action: {found.explained}; where it is the expert's: {found.agreeing}"


@dataclass(frozen=True)
class ReplayDemonstrations:
    """Execute a data set's episodes again, from their seeds, and say whether they are the same bit for bit.

    Exits with 1, and says where the first difference is, if they are not.
    """

    folder: Folder
    """Folder of the data set."""
    episode: Annotated[int | None, tyro.conf.arg(metavar="K")] = None
    """Only this one, counted from 0."""
    json: bool = False
    """Print one JSON object for each episode instead of text."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.demonstrations.dataset import read_dataset
            from bilevel.demonstrations.replaying import replay
        dataset = read_dataset(self.folder)
        environment = dataset.task.make(**dataset.manifest.recipe.arguments)
        numbers = range(len(dataset)) if self.episode is None else [_checked(self.episode, len(dataset))]
        differing = 0
        with progress_bar() as progress:
            for number in progress.track(numbers, description="replaying"):
                found = replay(dataset[number], environment)
                differing += found is not None
                if self.json:
                    print_json(episode=number, matches=found is None, difference=str(found) if found else None)
                elif found:
                    print(f"episode {number}: {found}")
        if not self.json:
            print(f"{count(numbers, 'episode')}, {len(numbers) - differing} the same bit for bit")
            if differing and (hint := _hint(dataset.manifest)):
                print(hint)
        return 1 if differing else 0


def _checked(number: int, episodes: int) -> int:
    if not 0 <= number < episodes:
        raise BadInput(f"there is no episode {number}: they are counted from 0 to {episodes - 1}")
    return number


def _hint(manifest: Manifest) -> str:
    """Why a replay may differ."""
    from bilevel.demonstrations.manifest import other_versions

    others = other_versions(manifest)
    return f"the data set was made with {others}" if others else ""


@dataclass(frozen=True)
class ShowDemonstrations:
    """Say what a data set is, or tell one of its episodes: goals, actions and events, with their steps."""

    folder: Folder
    """Folder of the data set."""
    episode: Annotated[int | None, tyro.conf.arg(metavar="K")] = None
    """Tell this one, counted from 0."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        with needing_worlds():
            from bilevel.demonstrations.dataset import read_dataset
        dataset = read_dataset(self.folder)
        if self.episode is not None:
            story = list(_story(dataset[_checked(self.episode, len(dataset))]))
            if self.json:
                print_json(episode=self.episode, story=story)
            else:
                print("\n".join(f"{moment:6}  {what}" for moment, what in story))
            return 0
        manifest = dataset.manifest
        steps = sum(entry.steps for entry in manifest.entries)
        if self.json:
            command = f"{manifest.command} --output {self.folder}"
            print_json(command=command, episodes=len(dataset), steps=steps, versions=dict(manifest.versions))
            return 0
        print(f"{manifest.command} --output {self.folder}")
        print(f"{count(dataset, 'episode')}, {steps} steps")
        print("objects: " + ", ".join(f"{slot.name} ({slot.type})" for slot in manifest.slots))
        print("made with " + ", ".join(f"{name} {version}" for name, version in manifest.versions.items()))
        return 0


def _story(demonstration: Demonstration) -> list[tuple[int, str]]:
    """What happened when, in order."""
    story = [(moment, f"goal: {', '.join(map(str, sorted(goal)))}") for moment, goal in demonstration.goals]
    story += [(moment, f"event: {event}") for moment, event in demonstration.events]
    for action, run in groupby(range(demonstration.steps), key=lambda step: demonstration.actions[step]):
        story.append((next(run), str(action)))
    story.append((demonstration.steps, demonstration.outcome))
    return sorted(story, key=lambda entry: entry[0])

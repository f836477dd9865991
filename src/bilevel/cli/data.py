"""Commands about demonstrations: collect, import, check, replay, show and export data sets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bilevel
from bilevel.cli.options import argument, command, folder_argument, option, required, shared, task_argument, task_of
from bilevel.cli.output import answer, count, listed, progress_line
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.dataset import Demonstration
    from bilevel.demonstrations.traces import Kind
    from bilevel.learning.diagnosis import Diagnosis

MOST_KINDS = 5  # of changes that are told; all are in --json


@command("collect", "blocks --objects 3 --episodes 200 --seed 0 --output build/blocks")
@task_argument
@required("--output", "DIR", "Folder for the data set: a manifest, and a file per episode.")
@option("--objects", "N>0", "How many objects the environment shall have, as the task counts them.", 3)
@option("--episodes", "N>0", "How many episodes to keep.", 200)
@shared("seed", "workers")
@option("--noise", "X", "Perturb the expert's controls by bursts of this amplitude, such as 0.7; both are kept.")
@shared("perception", "env-args")
def collect(task: str, output: Path, env_args: Iterable[tuple[str, Any]], **options: Any) -> None:
    """Let a task's expert demonstrate it, and keep the episodes that succeed: a data set.

    Stopped or killed, it goes on where it was when the same command is given again; with more --episodes it adds to
    what is there. The files are the same for any number of workers.
    """
    began = time.perf_counter()
    with progress_line(resumes=True) as callback:
        data = bilevel.collect(bilevel.find_task(task), output, callback=callback, **options, **dict(env_args))
    report, seconds = data.report, round(time.perf_counter() - began, 2)
    values = {"output": output, "episodes": len(data), "steps": data.steps, "already_there": report.found}
    answer({**values, "broken": report.notes, "failed_attempts": report.dropped, "seconds": seconds})


@command("demonstrations replay", "build/blocks --episode 3")
@folder_argument
@option("--episode", "N", "Only this one, counted from 0.", metavar="K")
@option("--task", "TASK", "Where the task is, if it is not registered: file.py:task, module:task.")
def replay(folder: Path, episode: int | None, task: str | None) -> int:
    """Execute a data set's episodes again, from their seeds, and say whether they are the same bit for bit.

    Exits with 1, and says where the first difference is, if they are not.
    """
    from bilevel.demonstrations.collect import causes, replay

    data = bilevel.Demonstrations.read(folder)
    with progress_line() as callback:
        found = replay(data, task_of(data.task, task, str(folder)), episode, callback)
    differing = {number: text for number, text in found.items() if text}
    lines = [f"episode {number}: {text}" for number, text in differing.items()]
    same = f"{count(found, 'episode')}, {len(found) - len(differing)} the same bit for bit"
    values = {"episodes": len(found), "differences": differing}
    answer(values, *lines, same, *(causes(data) if differing else ()))
    return 1 if differing else 0


@command("demonstrations show", "build/blocks --episode 3")
@folder_argument
@option("--episode", "N", "Tell this one, counted from 0.", metavar="K")
def show(folder: Path, episode: int | None) -> None:
    """Say what a data set is, or tell one of its episodes: goals, actions and events, with their steps."""
    data = bilevel.Demonstrations.read(folder)
    if episode is not None:
        story = _story(data[episode])
        answer({"episode": episode, "story": story}, *(f"{timestep:6}  {what}" for timestep, what in story))
        return
    assert data.manifest is not None
    values: dict[str, Any] = {"command": data.manifest.command_for(folder), "episodes": len(data), "steps": data.steps}
    answer({**values, "objects": data[0].objects, "versions": data.manifest.versions})


def _story(demonstration: Demonstration) -> list[tuple[int, str]]:
    """Return what happened when, in order."""
    story = [(timestep, f"goal: {', '.join(map(str, sorted(goal)))}") for timestep, goal in demonstration.goals]
    story += [(timestep, f"event: {event}") for timestep, event in demonstration.events]
    for action, steps in groupby(range(demonstration.steps), key=lambda step: demonstration.actions[step]):
        story += [(next(steps), str(action))] if action else []
    return sorted([*story, (demonstration.steps, demonstration.outcome)], key=lambda entry: entry[0])


@command("demonstrations export", "build/blocks --lerobot build/lerobot/blocks")
@folder_argument
@option("--minari", "NAMESPACE/NAME-vN", "What Minari shall call it.")
@option("--lerobot", "DIR", "New folder for LeRobot.")
@option("--rate", "HZ", "Timesteps in a second, for LeRobot (by default what the data set or its environment says).")
@option("--pictures", "CAMERA", "Add pictures for LeRobot, from this camera, such as corner; each episode runs again.")
@option("--task", "TASK", "The task of the data set (by default the one of its name).")
def export(folder: Path, minari: str | None, lerobot: Path | None, task: str | None, **options: Any) -> None:
    """Write a data set in another format: as one of Minari's, or of LeRobot's (v3.0).

    Minari keeps its data sets in MINARI_DATASETS_PATH or ~/.minari/datasets; for LeRobot it is a folder of your choice.
    Minari's actions are the controls as they were executed, LeRobot's those to be imitated; the other ones, and what
    the expert was doing, are beside them.
    """
    from bilevel.demonstrations.export import export_to_lerobot, export_to_minari
    from bilevel.tasks.registry import find_task

    if (minari is None) == (lerobot is None):
        raise BadInput("say which format it shall be: either --minari NAMESPACE/NAME-vN or --lerobot DIR")
    data = bilevel.Demonstrations.read(folder)
    with progress_line() as callback:
        if minari:
            target = export_to_minari(data, minari, callback)
            reader = f"minari.load_dataset({minari!r})"
        else:
            found = find_task(task) if task else None
            target = export_to_lerobot(data, lerobot or Path(), task=found, callback=callback, **options)
            reader = f"LeRobotDataset({'bilevel/' + data.task!r}, root={str(target)!r})"
    answer({"minari": minari, "output": target, "episodes": len(data), "read_with": reader})


@command("import", "play.npz --task cubes.py:task --perceive cubes.py:from_vector --output build/cubes")
@argument("source", "TEXT", "A file or a folder, or the name of a Minari data set.")
@required("--output", "DIR", "New folder for the data set.")
@required("--task", "TASK", "The task to learn: its name, or file.py:task.")
@option("--format", ("npz", "minari", "lerobot", "robomimic"), "The format, where it is not seen.")
@option("--perceive", "FILE:FUNCTION", "From an observation, or that and its info, to a Scene (by default the task's).")
@option("--hindsight", "FILE:FUNCTION", "From the scenes of play to the demonstrations in it.")
@option("--clip", bool, "Move controls that are out of the action space's bounds to these, instead of refusing them.")
@option("--objects", "N>0", "How many objects the environment has in which a policy will practise (by default 3).")
@shared("env-args")
def import_(source: str, output: Path, task: str, env_args: Iterable[tuple[str, Any]], **options: Any) -> None:
    """Make a data set of episodes that were recorded elsewhere: arrays, Minari's, LeRobot's, robomimic's.

    Afterwards the folder is there and whole, or nothing is.
    """
    options["arguments"] = dict(env_args)
    with progress_line() as callback:
        data = bilevel.import_demonstrations(source, bilevel.find_task(task), output, callback=callback, **options)
    values = {"output": output, "read": data.report.found, "kept": len(data), "steps": data.steps}
    answer({**values, "dropped": data.report.dropped, "notes": data.report.notes})


# Checking


@command("demonstrations check", "build/cubes")
@folder_argument
@shared("task")
def check_data(folder: Path, task: str | None) -> int:
    """Read every file of a data set and name those that are broken, with the reason; exits with 1 if there are any.

    Also says what is in it: who showed what, which changes of the labels no action explains, and which action comes
    nearest. Ends with whether rules and a network could be learned: yes, no, or doubtful, and why.
    """
    from bilevel.learning.diagnosis import diagnose

    with progress_line() as callback:
        problems, found = diagnose(folder, bilevel.find_task(task) if task else None, callback)
    verdict = count(problems, "problem") if problems else "all files are whole"
    names = ("episodes", "steps", "actions", "exogenous", "several", "demonstrators", "goals", "reached")
    kinds = found.contents.kinds()
    values = {name: getattr(found.contents, name) for name in names} | kinds
    verdicts = {"rules": found.for_rules, "network": found.for_network}
    values["verdicts"] = {name: {"answer": each.answer, "reason": each.reason} for name, each in verdicts.items()}
    values |= {"problems": problems, "task": found.manifest.settings.task, "constant": found.constant}
    lines = [*_lines(found, kinds), verdict, *(f"{name}: {each}" for name, each in verdicts.items())]
    answer(values, *problems, *(lines if found.contents.episodes else [verdict]))
    return 1 if problems else 0


def _lines(diagnosis: Diagnosis, kinds: Mapping[str, list[Kind]]) -> Iterator[str]:
    """Yield what is in the data set, from its size to what is odd."""
    found = diagnosis.contents
    source = diagnosis.manifest.source
    rate = f", {source.rate:g} Hz" if source and source.rate else ""
    yield f"{diagnosis.manifest.settings.task}: {count(found.episodes, 'episode')}, {found.steps} steps{rate}"
    yield f"shown by: {listed(found.demonstrators)}" if any(found.demonstrators) else ""
    yield f"actions: {listed(found.actions)}"
    yield f"exogenous changes: {found.exogenous}; changes with several explanations: {found.several}"
    yield from kind_lines([*kinds["unexplained"], *kinds["ambiguous"]])
    flickers = sum(kind.count for kind in kinds["flickers"])
    yield f"flickers, undone after a few steps: {flickers}" if flickers else ""
    yield from kind_lines(kinds["flickers"])
    goals = [f"{name} {found.reached[name]} of {number}" for name, number in sorted(found.goals.items())]
    yield f"goals that hold at the end: {listed(goals)}"
    yield from (f"controls: number {index} is always {value:g}" for index, value in diagnosis.constant.items())


def kind_lines(kinds: Sequence[Kind]) -> Iterator[str]:
    """Yield each kind of change, with its first example."""
    for kind in kinds[:MOST_KINDS]:
        if kind.reported == kind.count:
            yield f"  {kind.count} × {kind.change} (events)"
            continue
        yield f"  {kind.count} × {kind.change}"
        yield f"      first in episode {kind.episode} at step {kind.step}: {kind.first}"
        yield f"      may be {' or '.join(kind.actions)}" if kind.actions else ""
        yield f"      nearest: {kind.nearest}, but {kind.lacks}" if kind.nearest and not kind.actions else ""
    yield f"  and {len(kinds) - MOST_KINDS} more kinds, see --json" if len(kinds) > MOST_KINDS else ""

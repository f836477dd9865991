"""Commands about demonstrations: collect, import, check, replay, show and export data sets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bilevel.cli.options import argument, command, named_after, option, picture_option, required, shared, task_of
from bilevel.cli.output import answer, count, progress_line, wants_json
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.demonstrations.checking import Kind
    from bilevel.demonstrations.demonstration import Demonstration
    from bilevel.learning.diagnosis import Diagnosis

MOST_KINDS = 5  # of changes that are told; all are in --json

placed_task_option = option("--task", "TASK", "Where the task is, if it is not registered: file.py:task, module:task.")


@command("collect", "blocks --objects 3 --episodes 200 --seed 0 --output build/blocks")
@shared("task")
@required("--output", "DIR", "Folder for the data set: a manifest, and a file per episode.")
@option("--objects", "N>0", "How many objects the environment shall have, as the task counts them.", 3)
@option("--episodes", "N>0", "How many episodes to keep.", 200)
@shared("seed", "workers")
@option("--noise", "X", "Perturb the expert's controls by bursts of this amplitude, such as 0.7; both are kept.")
@shared("perception", "env-args")
def collect(task: str, output: Path, env_args: dict[str, Any], **options: Any) -> None:
    """Let a task's expert demonstrate it, and keep the episodes that succeed: a data set.

    Stopped or killed, it goes on where it was when the same command is given again; with more --episodes it adds to
    what is there. The files are the same for any number of workers.
    """
    from bilevel.demonstrations.collect import collect
    from bilevel.tasks.registry import find_task

    began = time.perf_counter()
    with progress_line(resumes=True) as callback:
        data = collect(find_task(task), output, callback=callback, **options, **env_args)
    seconds, found = time.perf_counter() - began, data.collected
    assert found is not None
    failed = found.failures.total()
    values = {"output": str(output), "episodes": len(data), "steps": data.steps, "already_there": found.already_there}
    values |= {"broken": found.broken, "failed_attempts": found.failures, "seconds": round(seconds, 2)}
    there = f", {found.already_there} of them already there" if found.already_there else ""
    reasons = ", ".join(f"{number} by {reason}" for reason, number in found.failures.most_common())
    answer(
        values,
        *(f"{problem}; collected again" for problem in found.broken),
        f"{count(data, 'episode')}{there}, {data.steps} steps",
        f"{count(failed, 'failed attempt')} not kept: {reasons}" if failed else "",
        f"written to {output} in {seconds:.1f} s",
    )


@command("demonstrations replay", "build/blocks --episode 3 --video")
@shared("folder")
@option("--episode", "N", "Only this one, counted from 0.", metavar="K")
@placed_task_option
@picture_option("--video", "Write a video of the episode (without a FILE: TASK.mp4 in this folder).")
@option("--quality", ("fast", "smooth", "good"), "Of the video: good has shadows, fast has rough edges.", "smooth")
@shared("size", "names")
def replay(folder: Path, task: str | None, video: Path | None, **options: Any) -> int:
    """Execute a data set's episodes again, from their seeds, and say whether they are the same bit for bit.

    Exits with 1, and says where the first difference is, if they are not.
    """
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.demonstrations.replay import replay

    data = Demonstrations.read(folder)
    found_task = task_of(data.task, task, str(folder))
    video = named_after(found_task.name, video, ".mp4")
    with progress_line() as callback:
        found = replay(data, found_task, video=video, callback=callback, **options)
    differing = {number: text for number, text in found.differences.items() if text}
    if wants_json():
        for number, text in found.differences.items():
            answer({"episode": number, "matches": text is None, "difference": text})
        return 1 if differing else 0
    same = f"{count(found.differences, 'episode')}, {len(found.differences) - len(differing)} the same bit for bit"
    lines = [*(f"episode {number}: {text}" for number, text in differing.items()), same, *found.causes]
    answer({}, *lines, f"written to {video}" if video else "")
    return 1 if differing else 0


@command("demonstrations show", "build/blocks --episode 3")
@shared("folder")
@option("--episode", "N", "Tell this one, counted from 0.", metavar="K")
def show(folder: Path, episode: int | None) -> None:
    """Say what a data set is, or tell one of its episodes: goals, actions and events, with their steps."""
    from bilevel.demonstrations.dataset import Demonstrations

    data = Demonstrations.read(folder)
    if episode is not None:
        story = _story(data.episode(episode))
        answer({"episode": episode, "story": story}, *(f"{timestep:6}  {what}" for timestep, what in story))
        return
    assert data.manifest is not None
    made_with, command_line = data.manifest.versions, data.manifest.command_for(folder)
    answer(
        {"command": command_line, "episodes": len(data), "steps": data.steps, "versions": made_with},
        command_line,
        f"{count(data, 'episode')}, {data.steps} steps",
        "objects of the first: " + ", ".join(f"{name} ({kind})" for name, kind in data[0].objects.items()),
        "made with " + ", ".join(f"{name} {version}" for name, version in made_with.items()),
    )


def _story(demonstration: Demonstration) -> list[tuple[int, str]]:
    """Return what happened when, in order."""
    story = [(timestep, f"goal: {', '.join(map(str, sorted(goal)))}") for timestep, goal in demonstration.goals]
    story += [(timestep, f"event: {event}") for timestep, event in demonstration.events]
    for action, steps in groupby(range(demonstration.steps), key=lambda step: demonstration.actions[step]):
        story += [(next(steps), str(action))] if action else []
    return sorted([*story, (demonstration.steps, demonstration.outcome)], key=lambda entry: entry[0])


@command("demonstrations export", "build/blocks --lerobot build/lerobot/blocks")
@shared("folder")
@option("--minari", "NAMESPACE/NAME-vN", "What Minari shall call it.")
@option("--lerobot", "DIR", "New folder for LeRobot.")
@option("--rate", "HZ", "Timesteps in a second, for LeRobot (by default what the data set says, or else 10).")
@option("--task", "TASK", "Where the task is, if it is not registered, so that Minari can make its environment again.")
def export(folder: Path, minari: str | None, lerobot: Path | None, rate: float | None, task: str | None) -> None:
    """Write a data set in another format: as one of Minari's, or of LeRobot's (v3.0).

    Minari keeps its data sets in MINARI_DATASETS_PATH or ~/.minari/datasets; for LeRobot it is a folder of your choice.
    In both, actions are the controls as they were executed; what the expert wanted and was doing is beside them.
    """
    from bilevel.demonstrations.dataset import Demonstrations
    from bilevel.demonstrations.export import export_to_lerobot, export_to_minari
    from bilevel.tasks.registry import find_task, registered_task

    if (minari is None) == (lerobot is None):
        raise BadInput("say which format it shall be: either --minari NAMESPACE/NAME-vN or --lerobot DIR")
    data = Demonstrations.read(folder)
    with progress_line() as callback:
        if minari:
            found_task = find_task(task) if task else registered_task(data.task)
            target = export_to_minari(data, minari, found_task, callback)
            reader = f"minari.load_dataset({minari!r})"
        else:
            target = export_to_lerobot(data, lerobot or Path(), rate, callback)
            reader = f"LeRobotDataset({'bilevel/' + data.task!r}, root={str(target)!r})"
    values = {"minari": minari, "output": str(target), "episodes": len(data)}
    answer(values, f"{count(data, 'episode')} written to {target}", f"read them with: {reader}")


# Importing


@command("import", "play.npz --task cubes.py:task --perceive cubes.py:from_vector --output build/cubes")
@argument("source", "TEXT", "A file or a folder, or the name of a Minari data set.")
@required("--output", "DIR", "New folder for the data set.")
@required("--task", "TASK", "The task to learn: its name, or file.py:task.")
@option("--format", ("npz", "minari", "lerobot", "robomimic"), "The format, where it is not seen.", name="form")
@option("--perceive", "FILE:FUNCTION", "From an observation, or that and its info, to a Scene (by default the task's).")
@option("--hindsight", "final|each|FILE:FUNCTION", "Goals: what holds at the end, each fact that comes true, or found.")
@option("--controls-from", "expert|FILE:FUNCTION", "Who makes controls where none, or others, were recorded.")
@option("--rate", "HZ", "How many timesteps per second to keep.")
@option("--recorded-rate", "HZ", "How many there are, if the recordings do not say.")
@option("--combine", ("mean", "sum", "last"), "How the controls between two kept timesteps become one.", "mean")
@option("--clip", bool, "Move controls that are out of the action space's bounds to these, instead of refusing them.")
@option("--mask", "NAME", "Only those episodes of a robomimic file that this mask names.")
@option("--objects", "N>0", "How many objects the environment has in which a policy will practise (by default 3).")
@shared("env-args")
def import_(source: str, output: Path, task: str, **options: Any) -> None:
    """Make a data set of episodes that were recorded elsewhere: arrays, Minari's, LeRobot's, robomimic's.

    Afterwards the folder is there and whole, or nothing is.
    """
    from bilevel.demonstrations.importing.importer import import_demonstrations
    from bilevel.tasks.registry import find_task

    options["arguments"], options["format"] = options.pop("env_args"), options.pop("form")
    with progress_line() as callback:
        data = import_demonstrations(source, find_task(task), output, callback=callback, **options)
    report = data.report
    assert report is not None
    values = {"output": str(output), "read": report.read, "kept": len(data), "steps": data.steps}
    values |= {"dropped": report.dropped, "rate": report.rate, "controls": report.controls, "notes": report.notes}
    rate = f" at {report.rate:g} Hz" if report.rate else ""
    answer(
        values,
        f"{count(report.read, 'episode')} read, {count(data, 'demonstration')} kept, {data.steps} steps{rate}",
        *(f"dropped: {number} {reason}" for reason, number in report.dropped.most_common()),
        f"controls: {', '.join(f'{what} ({number})' for what, number in report.controls.most_common())}",
        *report.notes,
        f"written to {output}",
    )


# Checking


@command("demonstrations check", "build/cubes")
@shared("folder", "relabel")
def check_data(folder: Path, task: str | None) -> int:
    """Read every file of a data set and name those that are broken, with the reason; exits with 1 if there are any.

    Also says what is in it: who showed what, which changes of the labels no action explains, and which action comes
    nearest. Ends with whether rules and a network could be learned: yes, no, or doubtful, and why.
    """
    from bilevel.learning.diagnosis import diagnose
    from bilevel.tasks.registry import find_task

    with progress_line() as callback:
        problems, found = diagnose(folder, find_task(task) if task else None, callback)
    values: dict[str, Any] = {"problems": problems, "task": found.manifest.settings.task}
    verdict = count(problems, "problem") if problems else "all files are whole"
    lines = [*problems, verdict]
    if found.contents.episodes:
        values |= _values(found)
        lines = [*problems, *_lines(found), verdict, f"rules: {found.for_rules}", f"network: {found.for_network}"]
    answer(values, *lines)
    return 1 if problems else 0


def _values(found: Diagnosis) -> dict[str, Any]:
    """Return what is in a data set, and whether one could learn from it, as JSON has it."""
    import msgspec

    contents = found.contents
    names = ("episodes", "steps", "actions", "events", "exogenous", "objects", "unreached", "reached_at_once")
    groups = [{"demonstrator": who, "outcome": how, "episodes": n} for (who, how), n in contents.groups.items()]
    verdicts = {"rules": found.for_rules, "network": found.for_network}
    values = {
        **{name: getattr(contents, name) for name in names},
        "groups": groups,
        "goals": {name: {"wanted": n, "reached": contents.reached[name]} for name, n in contents.goals.items()},
        "unexplained_changes": contents.unexplained,
        "ambiguous_changes": contents.ambiguous,
        "flickers": contents.flickers,
        "controls": found.controls,
        "verdicts": {name: {"answer": each.answer, "reason": each.reason} for name, each in verdicts.items()},
    }
    return {name: msgspec.to_builtins(value, str_keys=True) for name, value in values.items()}


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what is in the data set, from its size to what is odd."""
    found, controls = diagnosis.contents, diagnosis.controls
    source = diagnosis.manifest.source
    rate = f", {source.rate:g} Hz" if source and source.rate else ""
    yield f"{diagnosis.manifest.settings.task}: {count(found.episodes, 'episode')}, {found.steps} steps{rate}"
    for (who, outcome), number in sorted(found.groups.items()):
        yield f"{outcome}{f', shown by {who}' if who else ''}: {count(number, 'episode')}"
    numbers = (f"{name} {' or '.join(map(str, sorted(counts)))}" for name, counts in found.objects.items())
    yield f"objects: {', '.join(numbers)}"
    yield f"actions: {_numbers(found.actions)}"
    events = f" (events: {_numbers(found.events)})" if found.events else ""
    yield f"exogenous changes: {found.exogenous}{events}; changes with several explanations: {found.several}"
    yield from kind_lines([*found.unexplained, *found.ambiguous])
    if flickers := found.flickers:
        yield f"flickers, undone after a few steps: {sum(kind.count for kind in flickers)}"
        yield from kind_lines(flickers)
    goals = (f"{name} {found.reached[name]} of {number}" for name, number in sorted(found.goals.items()))
    yield f"goals that hold at the end: {', '.join(goals) or 'there are none'}"
    for number, facts in list(found.unreached.items())[:1]:
        without = f"{count(found.unreached, 'episode')} without, first episode {number}"
        yield f"  {without}: {', '.join(facts)} does not hold; is what was seen last on record?"
    for number in found.reached_at_once[:1]:
        yield f"  {count(found.reached_at_once, 'episode')} in which nothing was to be done, first episode {number}"
    yield from (f"controls: number {index} is always {value:g}" for index, value in controls.constant.items())
    for index, share in controls.out_of_bounds.items():
        yield f"controls: number {index} leaves its bounds in {max(share, 0.01):.0%} of the steps"


def kind_lines(kinds: Sequence[Kind]) -> Iterator[str]:
    """Yield each kind of change, with its first example."""
    for kind in kinds[:MOST_KINDS]:
        reported = " (events)" if kind.reported == kind.count else ""
        yield f"  {kind.count} × {kind.change}{reported}"
        if reported:
            continue
        parts = [f"{', '.join(facts)} {how}" for facts, how in ((kind.came, "came"), (kind.went, "went")) if facts]
        yield f"      first in episode {kind.episode} at step {kind.step}: {'; '.join(parts)}"
        if kind.actions:
            yield f"      may be {' or '.join(kind.actions)}"
        elif kind.nearest:
            yield f"      nearest: {kind.nearest}, but {kind.lacks}"
    if len(kinds) > MOST_KINDS:
        yield f"  and {len(kinds) - MOST_KINDS} more kinds, see --json"


def _numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items())) or "none"

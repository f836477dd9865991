"""Commands about a task: check it, and run a policy in it for one episode, told, explained, filmed or watched live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilevel.cli.options import argument, command, option, shared, task_argument, task_of
from bilevel.cli.output import answer, count, say, wants_json
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.records import Record
    from bilevel.policies.episode import Episode
    from bilevel.policies.policy import Policy
    from bilevel.tasks.scene_env import SceneEnv
    from bilevel.tasks.task import Task

EXPERT = "expert"
USUAL_OBJECTS = 3
CHOICES = ("method", "planner", "planning_seconds", "recovery", "estimation")  # of who acts
RECORDED = ("method", "seed", "noise", "recovery", "planner", "planning_seconds", "perception", "env_args")


@command("check", "examples/own_world/own_world.py:task")
@task_argument
@option("--objects", "N>0", "How many objects; 3, or the most that the task takes.")
@option("--seeds", "N>0", "How many episodes with random controls, and how many with the expert.", 3)
@shared("env-args")
def check(task: str, objects: int | None, seeds: int, env_args: Iterable[tuple[str, Any]]) -> int:
    """Say what is wrong with a task, in words, before anything is learned.

    Makes the environment, resets and steps it with several seeds, with random controls and with the expert. Exits with
    1 if learning would fail.
    """
    from bilevel.learning.task_checking import check_task
    from bilevel.tasks.registry import find_task

    found_task = find_task(task)
    findings = check_task(found_task, objects=objects, seeds=seeds, **dict(env_args))
    errors = [finding for finding in findings if finding.is_error]
    found = [{"error": finding.is_error, "message": finding.message} for finding in findings]
    verdict = count(errors, "error") if errors else "no errors: a policy can be learned"
    values = {"task": found_task.name, "learnable": not errors, "findings": found}
    answer(values, *map(str, findings), f"{found_task.name}: {verdict}")
    return 1 if errors else 0


@command(
    "run",
    "gacha --objects 5 --seed 0 --video",
    "cubes.py:task --policy build/policy --objects 10 --explain",
    "--replay build/results.jsonl --objects 10 --episode 3 --video",
)
@argument("task", "TEXT", "A task, or where it is: file.py:task, module:task (with --replay, its own).", required=False)
@shared("policy", "method", "planner", "planning-seconds")
@option("--objects", "N>0", "How many objects the environment shall have, as the task counts them (by default 3).")
@option("--seed", "SEED", "Decides how the episode begins and all that nature does in it.", 0)
@shared("noise", "recovery", "perception", "estimation", "env-args")
@option("--replay", "FILE", "Run an episode of these results of `bilevel evaluate` again, exactly as it was recorded.")
@option("--episode", "N", "Which one, by its number; with --objects where the results have several.", name="number")
@option("--video", "FILE", "Write a video (mp4) with the current action (by default episode.mp4 in this folder).",
        is_flag=False, flag_value="episode.mp4", metavar="[FILE]")  # fmt: skip
@option("--names", bool, "Write the names of things over them, in the pictures.")
@option("--trace", "FILE", "Write a table (csv) of what was seen, believed, chosen and done at each step.")
@option("--explain", bool, "At every change of the action, say which rule fired, with which objects, and why.")
@option("--view", bool, "Watch it live on a page: rules, facts, goals, controls; pause, push, edit rules.")
@option("--port", "PORT", "Of the page, on this machine alone; 0 is any that is free.", 0)
@click.pass_context
def run(ctx: click.Context, /, task: str | None, replay: Path | None, number: int | None, **options: Any) -> int:
    """Run a policy for one episode; prints what it does, exits with 1 if it does not succeed."""
    from bilevel.files import require_writable
    from bilevel.methods.methods import find_policy, usual_policy
    from bilevel.policies.narration import episode_json
    from bilevel.tasks.perception import read_perception
    from bilevel.tasks.registry import find_task
    from bilevel.tasks.scene_env import SceneEnv

    record, video, view = None, options["video"], options["view"]
    if replay is not None:
        for name in RECORDED:
            if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                flag = f"--{name.replace('_', '-')}"
                raise BadInput(f"{flag} does not go with --replay, which runs the episode as it was recorded")
        record, found = _recorded(task, replay, options, number)
    elif number is not None:
        raise BadInput("--episode needs --replay FILE")
    elif task is None:
        raise BadInput("name a TASK, such as blocks")
    else:
        found = find_task(task)
    if options["names"] and not (video or view):
        raise BadInput("--names is about pictures: add --video or --view")
    if view and (video or options["trace"] or wants_json()):
        raise BadInput("--view does not go together with --video, --trace or --json; choose one")
    files = [file for file in (video, options["trace"]) if file]
    for file in files:
        require_writable(file)
    who = options["policy"] or str(usual_policy(found, options["method"]) or EXPERT)
    acting = find_policy(who, task=found, **{name: options[name] for name in CHOICES})
    pictures = {"render_mode": "rgb_array"} if video or (view and found.takes_render_mode) else {}
    arguments = {"quality": "fast" if view else "smooth", **pictures, **acting.pictures, **dict(options["env_args"])}
    perception = read_perception(options["perception"])
    objects = options["objects"] or USUAL_OBJECTS
    assert acting.make is not None, "methods on their own act in environments"
    with closing(SceneEnv(found, objects, perception=perception, **arguments)) as env:
        policy = acting.make(env)
        say(*_remarks(found, policy, who, options))
        given = {name: options[name] for name in ("seed", "noise", "names", "explain")}
        if view:
            from bilevel.viewer.server import watch

            last = watch(env, policy, who=_named(who), folder=acting.policy, port=options["port"], **given)
            return 0 if last is not None and last.success else 1
        episode = _run_once(env, policy, video=video, trace=options["trace"], **given)
    values = {"task": found.source or found.name, "policy": who, "seed": options["seed"], "objects": env.objects}
    values |= episode_json(episode, explain=options["explain"])
    if record is not None:
        from bilevel.experiments.statistics import compare_with_record

        mismatches = compare_with_record(record, episode, acting, found)
        values |= {"as_recorded": not mismatches, "mismatches": mismatches}
        say(*(mismatches or ["as recorded"]))
    answer(values, "")
    say(*(f"written to {file}" for file in files))
    return 0 if episode.success else 1


def _remarks(task: Task, acting: Policy, who: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a user may not know about who acts."""
    if options["policy"] is None and who != EXPERT:
        yield f"the pretrained policy of '{task.name}' acts; for the expert, add --policy {EXPERT}"
    elif options["policy"] is None and options["method"] is None:
        yield f"the expert acts: '{task.name}' has no pretrained policy"
    if options["explain"] and acting.rules is None:
        yield f"{_named(who)} has no rules to explain what it does"


def _named(who: str) -> str:
    return "the expert" if who == EXPERT else f"the policy {who}"


def _run_once(
    env: SceneEnv, policy: Policy, seed: int, noise: float, explain: bool, names: bool, video: Path | None,
    trace: Path | None,
) -> Episode:  # fmt: skip
    """Run the episode, told and filmed as it is asked for, and return it."""
    from bilevel.policies.film import Film
    from bilevel.policies.narration import EpisodePrinter, TraceWriter
    from bilevel.policies.rollout import Transition, rollout

    with Film(video, env, names=names) if video else nullcontext() as film:
        listeners: list[Any] = [film] if film else []
        listeners += [] if wants_json() else [EpisodePrinter(explain=explain)]
        listeners += [TraceWriter(trace, policy)] if trace else []

        def callback(transition: Transition) -> None:
            for listener in listeners:
                listener(transition)

        with_rules = explain or trace is not None
        episode = rollout(env, policy, seed, noise=noise, callback=callback, explain=with_rules)
        for listener in listeners:
            listener.end(episode)
    return episode


# Episodes that were recorded


def _recorded(task: str | None, results: Path, given: dict[str, Any], episode: int | None) -> tuple[Record, Task]:
    """Return the record of an episode, and its task; `given` options become those that run it as it was recorded.

    What a record cannot say is as it is given: where the policy is now, and whose estimation it was.
    """
    from bilevel.experiments.records import read_records
    from bilevel.experiments.statistics import find_record

    record = find_record(read_records(results), results, given["objects"], episode)
    task_found = task_of(record.task, task, str(results), "name it before --replay, as")
    if task_found.name != record.task:
        raise BadInput(f"the episode is of the task '{record.task}', not of '{task_found.name}'")
    kinds = {"recovery": str, "planner": str, "estimation": str, "planning_seconds": int | float}
    settings = {name: record.settings.get(name) for name in kinds}
    if wrong := [name for name, kind in kinds.items() if not isinstance(settings[name], kind | None)]:
        raise BadInput(f"{results}: the settings of the episode are damaged: {wrong[0]}")
    if settings["estimation"] not in (None, "off") and not given["estimation"]:
        raise BadInput("the episode was run with the state estimation of another policy: name its folder: --estimation")
    given |= settings | {"estimation": given["estimation"] or settings["estimation"]}
    given |= {name: getattr(record, name) for name in ("method", "objects", "seed", "noise", "perception")}
    given |= {"policy": given["policy"] or record.policy or EXPERT, "env_args": dict(record.arguments)}
    return record, task_found

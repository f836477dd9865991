"""The command that runs a policy for one episode: told, explained, filmed, drawn, or watched live."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bilevel.cli.options import argument, command, named_after, option, picture_option, shared
from bilevel.cli.output import answer, count, say
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.records import Record
    from bilevel.methods.methods import RunnablePolicy
    from bilevel.policies.episode import Episode
    from bilevel.policies.film import Camera
    from bilevel.policies.policy import Policy
    from bilevel.policies.rollout import Transition
    from bilevel.tasks.scene_env import SceneEnv
    from bilevel.tasks.task import Task

EXPERT = "expert"
USUAL_OBJECTS = 3
CHOICES = ("method", "planner", "planning_seconds", "recovery", "estimation")  # of who acts
RECORDED = ("method", "seed", "noise", "recovery", "planner", "planning_seconds", "perception", "env_args")


@command()
@argument("task", "TEXT", "A task, or where it is: file.py:task, module:task (with --replay, its own).", required=False)
@option(
    "--policy",
    "POLICY|expert",
    "Who acts: the learned policy in this folder, the pretrained policy of this name, or the task's expert (by default "
    "the task's pretrained policy, if it has one; ./expert for a folder of that name).",
)
@option("--method", "METHOD", "How it acts, such as det-replan (by default as the policy was learned).")
@shared("planner", "planning-seconds")
@option("--objects", "N>0", "How many objects the environment shall have, as the task counts them (by default 3).")
@option("--seed", "SEED", "Decides how the episode begins and all that nature does in it.", 0)
@shared("noise", "recovery", "perception", "estimation", "env-args")
@option("--replay", "FILE", "Run an episode of these results of `bilevel evaluate` again, exactly as it was recorded.")
@option("--episode", "N", "Which one, by its number; with --objects where the results have several.")
@picture_option("--video", "Write a video (mp4) with the current action (without a FILE: TASK.mp4 in this folder).")
@picture_option("--sheet", "Write a contact sheet (png) of a dozen pictures (without a FILE: TASK.png here).")
@option("--trace", "FILE", "Write a table (csv) of what was seen, believed, chosen and done at each step.")
@option("--explain", bool, "At every change of the action, say which rule fired, with which objects, and why.")
@option("--view", bool, "Watch it live on a page: rules, facts, goals, controls; pause, push, edit rules.")
@option("--port", "N", "Of the page, on this machine alone; 0 is any that is free.", 0)
@option("--window", bool, "Show the simulator's own window.")
@option("--quality", ("auto", "fast", "smooth", "good"), "Of the pictures; auto is fast with --view.", "auto")
@shared("size", "names", "json")
@click.pass_context
def run(
    ctx: click.Context, /, task: str | None, replay: Path | None, episode: int | None, view: bool, port: int,
    **options: Any,
) -> int:  # fmt: skip
    """Run a policy for one episode; prints what it does, exits with 1 if it does not succeed.

    \b
    Examples:
      bilevel run gacha --objects 5 --seed 0 --video
      bilevel run cubes.py:task --policy build/policy --objects 10 --explain
      bilevel run --replay build/results.jsonl --objects 10 --episode 3 --video
    """
    from bilevel.methods.methods import find_policy, usual_policy
    from bilevel.tasks.perception import read_perception
    from bilevel.tasks.registry import find_task
    from bilevel.tasks.scene_env import SceneEnv

    record = None
    if replay is not None:
        record = _find_record(ctx, replay, options["objects"], episode)
        task = _recorded_task(task, replay, record)
        options |= _recorded_options(record, replay, options)
    elif episode is not None:
        raise BadInput("--episode needs --replay FILE")
    elif task is None:
        raise BadInput("name a TASK, such as blocks")
    for name, ending in (("video", ".mp4"), ("sheet", ".png")):
        options[name] = named_after(task, options[name], ending)
    found, mode = find_task(task), _render_mode(view, **options)
    who = options["policy"] or str(usual_policy(found, options["method"]) or EXPERT)
    acting = find_policy(who, task=found, **{name: options[name] for name in CHOICES})
    if acting.make is None:
        raise BadInput(f"the method '{acting.method}' needs no environment; `bilevel evaluate` measures it")
    options |= {"who": who, "objects": options["objects"] or USUAL_OBJECTS}
    quality = options["quality"].replace("auto", "fast" if view else "smooth")
    pictures = {"render_mode": mode if not view or found.takes_render_mode else None, "quality": quality}
    seen, size = read_perception(options["perception"]), options["size"] if mode else None
    with closing(
        SceneEnv(found, options["objects"], perception=seen, picture_size=size, **pictures, **options["env_args"])
    ) as env:
        bound = acting.make(env)
        remarks = [] if options["as_json"] else _remarks(found, bound, **options)
        if view:
            return _watch(env, bound, acting, remarks, port, **options)
        return _run_once(env, bound, acting, remarks, record, **options)


def _render_mode(view: bool, **options: Any) -> str | None:
    """Return how pictures are taken; `BadInput` for options that do not go together."""
    video, sheet, window = (options[name] for name in ("video", "sheet", "window"))
    if (options["names"] or options["size"]) and not (video or sheet or view):
        raise BadInput("--names and --size are about pictures: add --video, --sheet or --view")
    if window and video:
        raise BadInput("--window and --video do not go together; choose one")
    if view and (video or sheet or options["as_json"]):
        raise BadInput("--view does not go together with --video, --sheet or --json; choose one")
    if window:
        from bilevel.viewer.server import has_screen

        if not has_screen():
            raise BadInput("no window: there is no screen here; try --video FILE")
    return "human" if window else "rgb_array" if view or video or sheet else None


def _remarks(task: Task, bound: Policy, who: str, policy: str | None, **options: Any) -> list[str]:
    """Return what a user may not know about who acts."""
    remarks = []
    if policy is None and who != EXPERT:
        remarks.append(f"the pretrained policy of '{task.name}' acts; for the expert, add --policy {EXPERT}")
    elif policy is None and options["method"] is None:
        remarks.append(f"the expert acts: '{task.name}' has no pretrained policy")
    if options["explain"] and bound.rules is None:
        remarks.append(f"{_named(who)} has no rules to explain what it does")
    return remarks


def _named(who: str) -> str:
    return "the expert" if who == EXPERT else f"the policy {who}"


def _watch(env: SceneEnv, bound: Policy, acting: RunnablePolicy, remarks: list[str], port: int, **options: Any) -> int:
    """Run episodes as long as they are watched on the page; return the exit code."""
    from bilevel.policies.narration import EpisodePrinter
    from bilevel.viewer.server import watch

    for line in remarks:
        say(line)
    printer, about = EpisodePrinter(explain=options["explain"]), {name: options[name] for name in ("noise", "names")}
    who, folder = _named(options["who"]), acting.policy
    episode = watch(env, bound, options["seed"], printer, who=who, folder=folder, port=port, **about)
    return 0 if episode is not None and episode.success else 1


def _run_once(
    env: SceneEnv, bound: Policy, acting: RunnablePolicy, remarks: list[str], record: Record | None, *,
    seed: int, noise: float, explain: bool, video: Path | None, sheet: Path | None, trace: Path | None, names: bool,
    as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Run the episode, told and shown as it is asked for; return the exit code."""
    from bilevel.policies.narration import EpisodePrinter, TraceWriter, episode_json
    from bilevel.policies.rollout import rollout

    listeners: list[Any] = [] if as_json else [EpisodePrinter(explain=explain)]
    with ExitStack() as opened:
        if trace is not None:
            listeners.append(TraceWriter(trace, bound))
        if video or sheet:
            listeners.append(_camera(env, seed, video, sheet, names, opened))
        for line in remarks:
            say(line)

        def callback(transition: Transition) -> None:
            for listener in listeners:
                listener(transition)

        with_rules = explain or trace is not None
        episode = rollout(env, bound, seed, noise=noise, callback=callback, explain=with_rules)
        for listener in listeners:
            listener.end(episode)
    if sheet:
        details = f"{_named(options['who'])}, seed {seed}" + (f", control noise {noise:g}" if noise else "")
        details += f", perception {options['perception']}" if options["perception"] else ""
        _write_sheet(sheet, f"{env.task.name}, {count(options['objects'], 'object')}", details, episode, listeners[-1])
    mismatches = _mismatches(record, episode, acting, env.task)
    if as_json:
        asked = {"task": env.task.source or env.task.name, "policy": options["who"], "seed": seed}
        recorded = {} if mismatches is None else {"as_recorded": not mismatches, "mismatches": mismatches}
        shown = episode_json(episode, explain=explain)
        answer({**asked, "objects": options["objects"], **shown, **recorded}, as_json)
    else:
        written = [f"written to {file}" for file in (video, sheet, trace) if file]
        for line in [*([] if mismatches is None else mismatches or ["as recorded"]), *written]:
            say(line)
    return 0 if episode.success else 1


def _camera(env: SceneEnv, seed: int, video: Path | None, sheet: Path | None, names: bool, opened: ExitStack) -> Camera:
    """Return what takes pictures, after trying whether they are possible and have a place."""
    from bilevel.files import require_writable
    from bilevel.policies.film import Camera, NameTags, Video, frame_rate, take_picture

    if sheet:
        require_writable(sheet)
    env.reset(seed)
    take_picture(env, NameTags() if names else None)
    film = opened.enter_context(Video(video, fps=frame_rate(env).fps)) if video else None
    return Camera(env, film, sheet is not None, names=names)


def _write_sheet(sheet: Path, head: str, details: str, episode: Episode, camera: Camera) -> None:
    from bilevel.files import write_atomically
    from bilevel.policies.film import contact_sheet

    headline = f"{head}: {episode.outcome} after {episode.steps} steps"
    write_atomically(sheet, contact_sheet(headline, details, camera.tiles))


def _mismatches(record: Record | None, episode: Episode, acting: RunnablePolicy, task: Task) -> list[str] | None:
    """Return in what an episode was not as recorded, if it was to be."""
    if record is None:
        return None
    from bilevel.experiments.compare import compare_with_record

    return compare_with_record(record, episode, acting, task)


# Episodes that were recorded


def _find_record(ctx: click.Context, results: Path, objects: int | None, episode: int | None) -> Record:
    """Return the record of an episode; `BadInput` for options that it decides itself."""
    from bilevel.experiments.compare import find_record
    from bilevel.experiments.records import read_records

    for name in RECORDED:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = name.replace("_", "-")
            raise BadInput(f"--{option} does not go with --replay, which runs the episode as it was recorded")
    return find_record(read_records(results), results, objects, episode)


def _recorded_task(given: str | None, results: Path, record: Record) -> str:
    """Return where the task is: as it is given, else the one that is registered by the name in the record."""
    from bilevel.tasks.registry import find_task, registered_task

    if given is None and registered_task(record.task) is None:
        place = f"bilevel run file.py:task --replay {shlex.quote(str(results))}"
        raise BadInput(f"the episode is of the task '{record.task}', which is not registered here; say where: {place}")
    if given is not None and find_task(given).name != record.task:
        raise BadInput(f"the episode is of the task '{record.task}', not of '{find_task(given).name}'")
    return given or record.task


def _recorded_options(record: Record, results: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that run an episode as it was recorded.

    What a record cannot say is as it is given: where the policy is now, and whose estimation it was.
    """
    kinds = {"recovery": str, "planner": str, "estimation": str, "planning_seconds": int | float}
    settings = {name: record.settings.get(name) for name in kinds}
    if wrong := [name for name, kind in kinds.items() if not isinstance(settings[name], kind | None)]:
        raise BadInput(f"{results}: the settings of the episode are damaged: {wrong[0]}")
    if settings["estimation"] not in (None, "off") and not given["estimation"]:
        raise BadInput("the episode was run with the state estimation of another policy: name its folder: --estimation")
    decided = {name: getattr(record, name) for name in ("method", "objects", "seed", "noise", "perception")}
    decided |= {"policy": given["policy"] or record.policy or EXPERT, "env_args": dict(record.arguments)}
    return {**settings, **decided, "estimation": given["estimation"] or settings["estimation"]}

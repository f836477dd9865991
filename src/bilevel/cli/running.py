"""The command that runs a policy for one episode: told, explained, filmed, drawn, or watched live."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
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
@picture_option(
    "--video", "Write a video (mp4), with the current action as its caption (without a FILE: TASK.mp4 in this folder)."
)
@picture_option(
    "--sheet", "Write a contact sheet (png), the episode in a dozen pictures (without a FILE: TASK.png in this folder)."
)
@option("--trace", "FILE", "Write a table (csv) of what was seen, believed, chosen and done at each step.")
@option("--explain", bool, "At every change of the action, say which rule fired, with which objects, and why.")
@option(
    "--view", bool, "Watch it live on a page: the rule that fires, facts, goals, controls; pause, push, edit rules."
)
@option("--port", "N", "Of the page, on this machine alone; 0 is any that is free.", 0)
@option("--window", bool, "Show the simulator's own window.")
@option(
    "--quality",
    ("auto", "fast", "smooth", "good"),
    "Of the pictures: with smooth edges, with shadows as well (good), or neither (fast); auto is smooth, and fast with "
    "--view.",
    "auto",
)
@shared("size", "names", "json")
@click.pass_context
def run(
    ctx: click.Context, /, task: str | None, replay: Path | None, episode: int | None, explain: bool,
    trace: Path | None, video: Path | None, sheet: Path | None, view: bool, port: int, window: bool, names: bool,
    as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Run a policy for one episode; prints what it does, exits with 1 if it does not succeed.

    \b
    Examples:
      bilevel run gacha --objects 5 --seed 0 --video
      bilevel run cubes.py:task --policy build/policy --objects 10 --explain
      bilevel run --replay build/results.jsonl --objects 10 --episode 3 --video
    """
    from bilevel.tasks.registry import find_task

    record = None
    if replay is not None:
        record = _find_record(ctx, replay, options["objects"], episode)
        task = _recorded_task(task, replay, record)
        options |= _recorded_options(record, replay, options)
    elif episode is not None:
        raise BadInput("--episode needs --replay FILE")
    elif task is None:
        raise BadInput("name a TASK, such as blocks")
    video, sheet = named_after(task, video, ".mp4"), named_after(task, sheet, ".png")
    if (names or options["size"]) and not (video or sheet or view):
        raise BadInput("--names and --size are about pictures: add --video, --sheet or --view")
    if window and video:
        raise BadInput("--window and --video do not go together; choose one")
    if view and (video or sheet or as_json):
        raise BadInput("--view does not go together with --video, --sheet or --json; choose one")
    if window:
        from bilevel.viewer.server import has_screen

        if not has_screen():
            raise BadInput("no window: there is no screen here; try --video FILE")
    found = find_task(task)
    draws = (view and found.takes_render_mode) or video or sheet
    mode = "human" if window else "rgb_array" if draws else None
    if options["quality"] == "auto":
        options["quality"] = "fast" if view else "smooth"
    run = _Run(found, mode, explain, names, as_json, **options)
    return run.watch(port) if view else run.once(video, sheet, trace, record)


@dataclass(frozen=True)
class _Run:
    """Who acts where, as the options say."""

    task: Task
    mode: str | None  # of pictures
    explain: bool
    names: bool
    as_json: bool
    policy: str | None
    method: str | None
    planner: str | None
    planning_seconds: float | None
    recovery: str | None
    estimation: str | None
    objects: int | None
    seed: int
    noise: float
    perception: str
    env_args: dict[str, Any]
    quality: str
    size: tuple[int, int] | None

    @cached_property
    def acting(self) -> RunnablePolicy:
        """The policy that acts, as it is learned; by default the task's pretrained one, else its expert."""
        from bilevel.methods.methods import find_policy

        options = {name: getattr(self, name) for name in CHOICES}
        return find_policy(self.who, task=self.task, **options)

    @cached_property
    def who(self) -> str:
        """The policy's folder or name, or the expert."""
        from bilevel.methods.methods import usual_policy

        return self.policy or str(usual_policy(self.task, self.method) or EXPERT)

    @property
    def name(self) -> str:
        """What acts, in words."""
        return "the expert" if self.who == EXPERT else f"the policy {self.who}"

    @contextmanager
    def opened(self) -> Iterator[tuple[SceneEnv, Policy]]:
        """Give the environment, and the policy in it; say who acts where that was not chosen."""
        from bilevel.tasks.perception import read_perception
        from bilevel.tasks.scene_env import SceneEnv

        with closing(
            SceneEnv(
                self.task,
                self.objects or USUAL_OBJECTS,
                render_mode=self.mode,
                quality=self.quality,
                picture_size=self.size if self.mode else None,
                perception=read_perception(self.perception),
                **self.env_args,
            )
        ) as env:
            if self.acting.make is None:
                method = self.acting.method
                raise BadInput(f"the method '{method}' needs no environment; `bilevel evaluate` measures it")
            yield env, self.acting.make(env)

    def remarks(self, policy: Policy) -> Iterator[str]:
        """Yield what a user may not know about who acts."""
        if self.policy is None and self.who != EXPERT:
            yield f"the pretrained policy of '{self.task.name}' acts; for the expert, add --policy {EXPERT}"
        elif self.policy is None and self.method is None:
            yield f"the expert acts: '{self.task.name}' has no pretrained policy"
        if self.explain and policy.rules is None:
            yield f"{self.name} has no rules to explain what it does"

    def watch(self, port: int) -> int:
        """Run episodes as long as they are watched on the page; return the exit code."""
        from bilevel.policies.narration import EpisodePrinter
        from bilevel.viewer.server import watch

        with self.opened() as (env, policy):
            for line in self.remarks(policy):
                say(line)
            printer, folder = EpisodePrinter(explain=self.explain), self.acting.policy
            about = {"who": self.name, "noise": self.noise, "folder": folder, "port": port, "names": self.names}
            episode = watch(env, policy, self.seed, printer, **about)  # type: ignore[arg-type]
        return 0 if episode is not None and episode.success else 1

    def once(self, video: Path | None, sheet: Path | None, trace: Path | None, record: Record | None) -> int:
        """Run the episode, told and shown as it is asked for; return the exit code."""
        from bilevel.policies.narration import EpisodePrinter, TraceWriter
        from bilevel.policies.rollout import rollout

        listeners: list[Any] = [] if self.as_json else [EpisodePrinter(explain=self.explain)]
        with ExitStack() as opened:
            env, policy = opened.enter_context(self.opened())
            if trace is not None:
                listeners.append(TraceWriter(trace, policy))
            if video or sheet:
                listeners.append(self._camera(env, video, sheet, opened))
            for line in () if self.as_json else self.remarks(policy):
                say(line)

            def callback(transition: Transition) -> None:
                for listener in listeners:
                    listener(transition)

            episode = rollout(env, policy, self.seed, noise=self.noise, callback=callback, explain=self.explain)
            for listener in listeners:
                listener.end(episode)
        if sheet:
            self._write_sheet(sheet, episode, listeners[-1])
        self._report(episode, record)
        for file in filter(None, () if self.as_json else (video, sheet, trace)):
            say(f"written to {file}")
        return 0 if episode.success else 1

    def _camera(self, env: SceneEnv, video: Path | None, sheet: Path | None, opened: ExitStack) -> Camera:
        """Return what takes pictures, after trying whether they are possible and have a place."""
        from bilevel.files import require_writable
        from bilevel.policies.film import Camera, NameTags, Video, frame_rate, take_picture

        if sheet:
            require_writable(sheet)
        env.reset(self.seed)
        take_picture(env, NameTags() if self.names else None)
        film = opened.enter_context(Video(video, fps=frame_rate(env).fps)) if video else None
        return Camera(env, film, sheet is not None, names=self.names)

    def _write_sheet(self, sheet: Path, episode: Episode, camera: Camera) -> None:
        from bilevel.files import write_atomically
        from bilevel.policies.film import contact_sheet

        objects = count(self.objects or USUAL_OBJECTS, "object")
        headline = f"{self.task.name}, {objects}: {episode.outcome} after {episode.steps} steps"
        details = f"{self.name}, seed {self.seed}" + (f", control noise {self.noise:g}" if self.noise else "")
        details += f", perception {self.perception}" if self.perception else ""
        write_atomically(sheet, contact_sheet(headline, details, camera.tiles))

    def _report(self, episode: Episode, record: Record | None) -> None:
        """Print what was not told on the way, and in what the episode was not as recorded, if it was to be."""
        from bilevel.policies.narration import episode_json

        found: dict[str, Any] = {}
        if record is not None:
            from bilevel.experiments.compare import compare_with_record

            mismatches = compare_with_record(record, episode, self.acting, self.task)
            found = {"as_recorded": not mismatches, "mismatches": mismatches}
            if not self.as_json:
                say(*(mismatches or ["as recorded"]))
        if self.as_json:
            asked = {"task": self.task.source or self.task.name, "policy": self.who, "seed": self.seed}
            objects = self.objects or USUAL_OBJECTS
            answer({**asked, "objects": objects, **episode_json(episode, explain=self.explain), **found}, True)


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
    settings = record.settings
    recovery, planner, estimation = (settings.get(name) for name in ("recovery", "planner", "estimation"))
    seconds = settings.get("planning_seconds")
    if not all(isinstance(text, str | None) for text in (recovery, planner, estimation)) or not isinstance(
        seconds, int | float | None
    ):
        raise BadInput(f"{results}: the settings of the episode are none of ours: {settings}")
    if estimation not in (None, "off") and not given["estimation"]:
        raise BadInput("the episode was run with the state estimation of another policy: name its folder: --estimation")
    return {
        "policy": given["policy"] or record.policy or EXPERT,
        "method": record.method,
        "objects": record.objects,
        "seed": record.seed,
        "noise": record.noise,
        "recovery": recovery,
        "planner": planner,
        "planning_seconds": seconds,
        "perception": record.perception,
        "estimation": given["estimation"] or estimation,
        "env_args": dict(record.arguments),
    }

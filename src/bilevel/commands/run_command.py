"""The command that runs a policy for one episode."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import tyro

from bilevel.commands.arguments import (
    EnvArguments,
    EstimationName,
    GivenTask,
    Json,
    Names,
    Noise,
    OptionallyNamed,
    OptionalOutput,
    PerceptionText,
    RecoveryText,
    Size,
    count,
    env_arguments,
    named_after,
    picture_size,
    print_json,
    recovery_of,
    require_at_least,
    require_positive,
)
from bilevel.commands.watching import has_screen, watch
from bilevel.files import require_writable, write_atomically
from bilevel.symbolic.domain import BadInput

if TYPE_CHECKING:
    from bilevel.experiments.records import Record
    from bilevel.methods.methods import RunnablePolicy
    from bilevel.policies.episode import Episode
    from bilevel.policies.film import Tile, Video
    from bilevel.policies.policy import Policy
    from bilevel.tasks.scene_env import SceneEnv
    from bilevel.tasks.task import Task

EXPERT = "expert"
USUAL_OBJECTS = 3

Who = Annotated[Optional[str], tyro.conf.arg(metavar="POLICY|expert")]
Count = Annotated[int, tyro.conf.arg(metavar="N")]
OptionalCount = Annotated[Optional[int], tyro.conf.arg(metavar="N")]


@dataclass(frozen=True)
class Run:
    """Run a policy for one episode; prints what it does, exits with 1 if it does not succeed.

    Examples: bilevel run gacha --objects 5 --seed 0 --video
              bilevel run cubes.py:task --policy build/policy --objects 10 --explain
              bilevel run --replay build/results.jsonl --objects 10 --episode 3 --video
    """

    task: GivenTask = None
    """The name of a task, such as blocks, or where it is: file.py:task, module:task
    (with --replay, by default the task of the episode)."""
    policy: Who = None
    """Who acts: the learned policy in this folder, the pretrained policy of this name, or the task's expert (by default
    the task's pretrained policy, if it has one; ./expert for a folder of that name)."""
    method: Optional[str] = None
    """How it acts, such as det-replan with the network of a bilevel policy (by default as the policy was learned)."""
    planner: Optional[str] = None
    """What a method plans with: for det-plan and det-replan lama or search, for ndt-plan and ndt-replan fond."""
    planning_seconds: Optional[float] = None
    """How long each plan may take (by default 100)."""
    objects: OptionalCount = None
    """How many objects the environment shall have, as the task counts them (by default 3)."""
    seed: int = 0
    """Decides how the episode begins and all that nature does in it."""
    noise: Noise = 0.0
    recovery: RecoveryText = None
    perception: PerceptionText = ""
    estimation: EstimationName = None
    env_args: EnvArguments = ()
    replay: OptionalOutput = None
    """Run an episode again that is among these results of `bilevel evaluate`, exactly as it was recorded."""
    episode: OptionalCount = None
    """Which one, by its number; where the results have several numbers of objects, with --objects."""
    video: OptionallyNamed = None
    """Write a video (mp4), with the current action as its caption (without a FILE: TASK.mp4 in this folder)."""
    sheet: OptionallyNamed = None
    """Write a contact sheet (png), the episode in a dozen pictures (without a FILE: TASK.png in this folder)."""
    explain: bool = False
    """At every change of the action, say which rule fired, with which objects, and why; in the video, too."""
    view: bool = False
    """Watch it live on a page of your browser: the rule that fires, facts, goals, controls; pause, push, edit rules."""
    port: Count = 0
    """Of the page, on this machine alone; 0 is any that is free."""
    window: bool = False
    """Show the simulator's own window."""
    quality: Literal["auto", "fast", "smooth", "good"] = "auto"
    """Of the pictures, where there is a choice: with smooth edges, with shadows as well (good), or neither (fast); auto
    is smooth, and fast with --view."""
    size: Size = None
    names: Names = False
    json: Json = False

    def __post_init__(self) -> None:
        for option, ending in (("video", ".mp4"), ("sheet", ".png")) if self.task else ():
            object.__setattr__(self, option, named_after(self.task or "", getattr(self, option), ending))

    def run(self) -> int:
        """Run the command; return the exit code."""
        if self.replay is not None:
            from bilevel.commands.run_replay import recorded_options

            given = {option.name: getattr(self, option.name) for option in fields(self)}
            usual = {option.name: option.default for option in fields(self)}
            options, record = recorded_options({name: given[name] for name in given if given[name] != usual[name]})
            return replace(self, **options)._run(record)
        if self.task is None or self.episode is not None:
            raise BadInput(
                "--episode needs --replay FILE" if self.episode is not None else "name a TASK, such as blocks"
            )
        if self.policy is None:
            from bilevel.methods.methods import usual_policy
            from bilevel.tasks.registry import find_task

            pretrained = usual_policy(find_task(self.task), self.method)
            says_who = not self.json and (pretrained is not None or self.method is None)
            return replace(self, policy=str(pretrained or EXPERT))._run(says_who=says_who)
        return self._run()

    def _run(self, record: Record | None = None, says_who: bool = False) -> int:
        from bilevel.tasks.registry import find_task

        if (self.names or self.size) and not (self.video or self.sheet or self.view):
            raise BadInput("--names and --size are about pictures: add --video, --sheet or --view")
        if self.window and self.video:
            raise BadInput("--window and --video do not go together; choose one")
        if self.view and (self.video or self.sheet or self.json):
            raise BadInput("--view does not go together with --video, --sheet or --json; choose one")
        if self.window and not has_screen():
            raise BadInput("no window: there is no screen here; try --video FILE")
        require_at_least(0, noise=self.noise, seed=self.seed)
        require_positive(planning_seconds=self.planning_seconds)
        task = find_task(self.task or "")
        evaluated = self._evaluated(task)
        with ExitStack() as open_things:
            quality = self.quality if self.quality != "auto" else "fast" if self.view else "smooth"
            mode = "human" if self.window else "rgb_array" if self._draws(task) else None
            if self.view:
                if says_who:
                    print(self._who_acts(task), file=sys.stderr)
                return self._watch(open_things.enter_context(closing(self._env(task, mode, quality))), evaluated)
            env = open_things.enter_context(closing(self._env(task, mode, quality)))
            run, tiles = self._perform(env, evaluated, self._video(env, open_things), record, says_who)
            if self.sheet:
                write_atomically(self.sheet, self._sheet(env.task, run, tiles))
        for file in filter(None, () if self.json else (self.video, self.sheet)):
            print(f"written to {file}", file=sys.stderr)
        return 0 if run.reason is None else 1

    @property
    def _count(self) -> int:
        return USUAL_OBJECTS if self.objects is None else self.objects

    @property
    def _folder(self) -> Path | None:
        """The folder of the policy; there is none for the expert."""
        return None if self.policy in (None, EXPERT) else Path(str(self.policy))

    def _evaluated(self, task: Task) -> RunnablePolicy:
        from bilevel.methods.methods import find_policy

        return find_policy(
            self.policy,
            task=task,
            method=self.method,
            planner=self.planner,
            planning_seconds=self.planning_seconds,
            recovery=recovery_of(self.recovery),
            estimation=self.estimation,
        )

    # The environment and its pictures

    def _env(self, task: Task, render_mode: str | None, quality: str) -> SceneEnv:
        from bilevel.tasks.perception import read_perception
        from bilevel.tasks.scene_env import SceneEnv

        seen, further = read_perception(self.perception), env_arguments(self.env_args)
        size = picture_size(self.size) if render_mode else None
        return SceneEnv(
            task,
            self._count,
            render_mode=render_mode,
            quality=quality,
            picture_size=size,
            perception=seen,
            **further,
        )

    def _draws(self, task: Task) -> bool:
        """Whether pictures are taken while the episode goes on."""
        return (self.view and task.takes_render_mode) or self.video is not None or self.sheet is not None

    def _video(self, env: SceneEnv, open_things: ExitStack) -> Video | None:
        if self.video is None:
            return None
        from bilevel.policies.film import Video, frame_rate

        return open_things.enter_context(Video(self.video, fps=frame_rate(env).fps))

    def _try_pictures(self, env: SceneEnv) -> None:
        """Before anything is said, lest pictures turn out to be impossible, or to have no place."""
        if self.sheet:
            import PIL.ImageFont  # noqa: F401

            require_writable(self.sheet)
        if self.video or self.sheet:
            from bilevel.policies.film import NameTags, take_picture

            env.reset(self.seed)
            take_picture(env, NameTags() if self.names else None)

    def _sheet(self, task: Task, run: Episode, tiles: Sequence[Tile]) -> bytes:
        from bilevel.policies.film import contact_sheet

        headline = f"{task.name}, {count(self._count, 'object')}: {run.outcome} after {run.steps} steps"
        who = "the expert" if self.policy == EXPERT else f"the policy {self.policy}"
        details = f"{who}, seed {self.seed}" + (f", control noise {self.noise:g}" if self.noise else "")
        details += f", perception {self.perception}" if self.perception else ""
        return contact_sheet(headline, details, tiles)

    # The episode

    def _watch(self, env: SceneEnv, evaluated: RunnablePolicy) -> int:
        """Run episodes as long as they are watched; return the exit code."""
        from bilevel.policies.narration import EpisodePrinter

        who = "the expert" if self.policy == EXPERT else f"the policy {self.policy}"
        policy, printer, shown = _policy(evaluated, env), EpisodePrinter(explain=self.explain), evaluated.policy
        run = watch(
            env, policy, self.seed, printer, who=who, noise=self.noise, folder=shown, port=self.port, names=self.names
        )
        return 0 if run is not None and run.reason is None else 1

    def _perform(
        self,
        env: SceneEnv,
        evaluated: RunnablePolicy,
        video: Video | None,
        record: Record | None,
        says_who: bool,
    ) -> tuple[Episode, Sequence[Tile]]:
        """Run the episode, told and shown as it is asked for."""
        from bilevel.policies.film import Camera
        from bilevel.policies.narration import EpisodePrinter, episode_json
        from bilevel.policies.rollout import Transition, rollout

        policy = _policy(evaluated, env)
        self._try_pictures(env)
        printer = None if self.json else EpisodePrinter(explain=self.explain)
        camera = Camera(env, video, self.sheet is not None, names=self.names) if video or self.sheet else None
        listeners = [each for each in (printer, camera) if each is not None]
        if says_who:
            print(self._who_acts(env.task), file=sys.stderr)
        if self.explain and policy.rules is None and not self.json:
            who = "the expert" if self.policy == EXPERT else "this policy"
            print(f"{who} has no rules to explain what it does", file=sys.stderr)

        def callback(transition: Transition) -> None:
            for listener in listeners:
                listener(transition)

        episode = rollout(env, policy, self.seed, noise=self.noise, callback=callback, explain=self.explain)
        for listener in listeners:
            listener.end(episode)
        mismatches = None
        if record is not None:
            from bilevel.experiments.compare import compare_with_record

            mismatches = compare_with_record(record, episode, evaluated, env.task)
        if self.json:
            asked = {"task": self.task, "policy": self.policy, "objects": self._count, "seed": self.seed}
            as_recorded = {} if mismatches is None else {"as_recorded": not mismatches, "unlike": mismatches}
            print_json(**asked, **episode_json(episode, explain=self.explain), **as_recorded)
        elif mismatches is not None:
            print(*(mismatches or ["as recorded"]), sep="\n", file=sys.stderr)
        return episode, camera.tiles if camera else ()

    def _who_acts(self, task: Task) -> str:
        if self.policy == EXPERT:
            return f"the expert acts: '{task.name}' has no pretrained policy"
        return f"the pretrained policy of '{task.name}' acts; for the expert, add --policy {EXPERT}"


def _policy(evaluated: RunnablePolicy, env: SceneEnv) -> Policy:
    if evaluated.make is None:
        raise BadInput(f"the method '{evaluated.method}' needs no environment; `bilevel evaluate` measures it")
    return evaluated.make(env)

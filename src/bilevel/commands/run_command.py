"""The command that runs a policy in a world."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import OptionalOutput, count, print_json, require_amplitude, require_at_least
from bilevel.commands.demonstration_commands import TaskName, needing_worlds
from bilevel.files import require_writable, write_atomically
from bilevel.symbolic.domain import BadInput, Domain

if TYPE_CHECKING:
    from bilevel.experiments.evaluation import MakePolicy
    from bilevel.experiments.evaluation import Run as Episode
    from bilevel.policies.policies import WatchedPolicy
    from bilevel.policies.rollout import Moment
    from bilevel.tabletop.tabletop import Tabletop
    from bilevel.tabletop.tasks import Task
    from bilevel.video import Video

EXPERT = "expert"

Who = Annotated[str, tyro.conf.arg(metavar="POLICY|expert")]
Count = Annotated[int, tyro.conf.arg(metavar="N")]


@dataclass(frozen=True)
class Run:
    """Run a policy in a world for one episode; prints what it does, exits with 1 if it does not succeed.

    Examples: bilevel run gacha --policy expert --objects 5 --seed 0 --video out.mp4
              bilevel run blocks --policy build/policy --objects 10 --explain
    """

    task: TaskName
    """One of the eight tasks, such as blocks or gacha-noisy."""
    policy: Who = EXPERT
    """Who acts: the hand-written expert, or the learned policy in this folder (./expert for a folder of that name)."""
    method: str | None = None
    """How it acts, such as det-replan with the network of a bilevel policy (by default as the policy was learned)."""
    objects: Count = 3
    """How many blocks, or target colours."""
    seed: int = 0
    """Decides how the episode begins and all that nature does in it."""
    noise: float = 0.0
    """Jostle the hand with bursts of this amplitude, such as 0.7."""
    teleport_rate: float | None = None
    """How probably an object at its goal teleports at a step (by default 0, in the noisy tasks 1/2000)."""
    draw: Literal["empty", "uniform"] | None = None
    """Gacha: draw among the colours whose trays are empty, or among all."""
    colours: int | None = None
    """Colour: how many colours there are."""
    video: OptionalOutput = None
    """Where to write a video (mp4), with the current action as its caption."""
    sheet: OptionalOutput = None
    """Where to write a contact sheet (png): the episode in a dozen pictures."""
    explain: bool = False
    """At every change of the action, say which rule fired, with which objects, and why; in the video, too."""
    window: bool = False
    """Show a window."""
    quality: Literal["fast", "good"] = "fast"
    """Of the video: good has shadows and smooth edges, and takes ten times as long."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        self._check()
        with needing_worlds():
            from bilevel.tabletop.rendering import has_screen
            from bilevel.tabletop.tasks import find_task
        if self.window and not has_screen():
            raise BadInput("no window: there is no screen here; try --video FILE")
        task = find_task(self.task)
        make_policy = self._make_policy(task)
        further = task.given(teleport_rate=self.teleport_rate, draw=self.draw, colours=self.colours)
        mode = "human" if self.window else "rgb_array" if self.video else None
        environment = task.make(self.objects, render_mode=mode, quality=self.quality, **further)
        with ExitStack() as open_things:
            open_things.callback(environment.close)
            show = _Show(self, environment, make_policy(task, environment), self._video(open_things))
            self._try_pictures(environment)
            result = show.perform()
        if self.sheet:
            stage = task.make(self.objects, render_mode="rgb_array", quality="good", **further)
            with closing(stage):
                write_atomically(self.sheet, show.sheet(stage, result))
        return 0 if result.reason is None else 1

    def _check(self) -> None:
        if self.window and self.video:
            raise BadInput("--window and --video do not go together; choose one")
        require_amplitude(self.noise)
        require_at_least(0, seed=self.seed)

    def _make_policy(self, task: Task) -> MakePolicy:
        with needing_worlds():
            from bilevel.experiments.methods import find_contender, method_of

        folder = None if self.policy == EXPERT else Path(self.policy)
        contender = find_contender(self.method or (method_of(folder) if folder else EXPERT), folder)
        contender.check_domain(task)
        if contender.make is None:
            raise BadInput(f"the method '{contender.method}' does without worlds; `bilevel evaluate` measures it")
        return contender.make

    def _video(self, open_things: ExitStack) -> Video | None:
        if self.video is None:
            return None
        from bilevel.policies.narration import DRAWN, STEPS_PER_SECOND
        from bilevel.video import Video

        return open_things.enter_context(Video(self.video, fps=STEPS_PER_SECOND / DRAWN))

    def _try_pictures(self, environment: Tabletop) -> None:
        """Before anything is said, lest pictures turn out to be impossible, or to have no place."""
        if self.video:
            environment.render()
        if self.sheet:
            from bilevel.tabletop.opengl import backend
            from bilevel.video import package

            package("PIL.ImageFont", "contact sheets")
            backend()
            require_writable(self.sheet)


class _Show:
    """One episode, told and shown as the command asks for."""

    def __init__(self, command: Run, environment: Tabletop, policy: WatchedPolicy, video: Video | None) -> None:
        from bilevel.policies.narration import Camera, Narrator

        self._command, self._environment, self._policy = command, environment, policy
        self._narrator = Narrator(policy, _silence if command.json else _say, command.explain)
        self._camera = Camera(environment, self._narrator, video, sheet=command.sheet is not None)

    def perform(self) -> Episode:
        from bilevel.experiments.evaluation import run_episode
        from bilevel.policies.narration import rules_of, why_failed

        asked = self._command
        if asked.explain and rules_of(self._policy) is None and not asked.json:
            who = "the expert" if asked.policy == EXPERT else "an end-to-end policy"
            print(f"{who} has no rules to explain what it does", file=sys.stderr)
        result = run_episode(self._environment, self._policy, asked.seed, asked.noise, self._watch)
        self._camera.end(result.outcome)
        why = why_failed(result, self._narrator, self._policy, self._environment)
        self._print_json(result, why) if asked.json else self._print(result, why)
        return result

    def _watch(self, moment: Moment) -> None:
        self._narrator(moment)
        self._camera(moment)

    def _print(self, result: Episode, why: str | None) -> None:
        from bilevel.policies.narration import tell_surprises

        if self._command.explain:
            print("".join(f"{line}\n" for line in tell_surprises(self._narrator, self._domain())), end="")
        sys.stdout.flush()
        print(f"{result.outcome} after {result.steps} steps", file=sys.stderr)
        if why:
            print(why, file=sys.stderr)

    def _print_json(self, result: Episode, why: str | None) -> None:
        asked = self._command
        explanation: dict[str, object] = {}
        if asked.explain:
            surprises = self._narrator.surprises(self._domain())
            explanation = {
                "decisions": [decision.as_json() for decision in self._narrator.decisions],
                "unexpected": [{"step": change.moment, "kind": change.kind} for change in surprises],
            }
        print_json(
            task=asked.task,
            policy=asked.policy,
            objects=asked.objects,
            seed=asked.seed,
            outcome=result.outcome,
            reason=result.reason,
            why=why,
            steps=result.steps,
            **explanation,
        )

    def _domain(self) -> Domain:
        from bilevel.tabletop.tasks import find_task

        return find_task(self._command.task).domain

    def sheet(self, stage: Tabletop, result: Episode) -> bytes:
        from bilevel.policies.narration import draw_sheet

        asked = self._command
        headline = f"{asked.task}, {count(range(asked.objects), 'object')}: {result.outcome} after {result.steps} steps"
        who = "the expert" if asked.policy == EXPERT else f"the policy {asked.policy}"
        jostled = f", jostled by {asked.noise:g}" if asked.noise else ""
        return draw_sheet(stage, self._camera.shots, headline, f"{who}, seed {asked.seed}{jostled}")


def _say(step: int, text: str) -> None:
    first, *further = text.splitlines()
    print("\n".join([f"{step:6}  {first}", *(f"{'':10}{line}" for line in further)]), flush=True)


def _silence(step: int, text: str) -> None: ...

"""The command that runs a policy in a world."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from bilevel.commands.arguments import OptionalOutput, print_json
from bilevel.commands.demonstration_commands import TaskName, needing_worlds
from bilevel.symbolic.domain import Action, BadInput

if TYPE_CHECKING:
    from bilevel.environments.tabletop import Tabletop
    from bilevel.execution.policies import BilevelPolicy
    from bilevel.execution.rollout import Moment
    from bilevel.video import Video

DRAWN = 2  # every so many steps, for a video: 80 steps are a second, and 40 pictures are enough

Count = Annotated[int, tyro.conf.arg(metavar="N")]


@dataclass(frozen=True)
class Run:
    """Run a policy in a world for one episode; prints what it does, exits with 1 if it does not succeed.

    Example: bilevel run gacha --policy expert --objects 5 --seed 0 --video out.mp4
    """

    task: TaskName
    """One of the eight tasks, such as blocks or gacha-noisy."""
    policy: Literal["expert"] = "expert"
    """Who acts: the hand-written expert."""
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
    window: bool = False
    """Show a window."""
    quality: Literal["fast", "good"] = "fast"
    """Of the pictures: good has shadows and smooth edges, and takes ten times as long."""
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> int:
        self._check()
        with needing_worlds():
            from bilevel.environments.rendering import has_screen
            from bilevel.environments.tabletop import SUCCESS
            from bilevel.experiments.evaluation import run_episode
            from bilevel.tasks import find_task
        if self.window and not has_screen():
            raise BadInput("no window: there is no screen here; try --video FILE")
        task = find_task(self.task)
        mode = "human" if self.window else "rgb_array" if self.video else None
        further = task.given(teleport_rate=self.teleport_rate, draw=self.draw, colours=self.colours)
        environment = task.make(self.objects, render_mode=mode, quality=self.quality, **further)
        policy = task.expert(environment.slots)
        with ExitStack() as open_things:
            open_things.callback(environment.close)
            narrator = Narrator(environment, policy, self._video(open_things), silent=self.json)
            if self.video:
                environment.render()  # before anything is said, lest pictures turn out to be impossible
            result = run_episode(environment, policy, self.seed, self.noise, narrator)
            narrator.end(result.outcome)
        if self.json:
            print_json(task=self.task, objects=self.objects, seed=self.seed, outcome=result.outcome, steps=result.steps)
        else:
            print(f"{result.outcome} after {result.steps} steps", file=sys.stderr)
        return 0 if result.outcome == SUCCESS else 1

    def _check(self) -> None:
        if self.window and self.video:
            raise BadInput("--window and --video do not go together; choose one")
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise BadInput(f"--noise is an amplitude of controls, 0 or more, not {self.noise}")
        if self.seed < 0:
            raise BadInput(f"--seed must not be negative, but is {self.seed}")

    def _video(self, open_things: ExitStack) -> Video | None:
        if self.video is None:
            return None
        from bilevel.video import Video

        return open_things.enter_context(Video(self.video, fps=80 / DRAWN))


class Narrator:
    """Watches an episode: says what is being done and what happens, and shows it."""

    def __init__(self, environment: Tabletop, policy: BilevelPolicy, video: Video | None, silent: bool) -> None:
        self._environment, self._policy, self._video, self._silent = environment, policy, video, silent
        self._action: Action | None = None
        self._steps = 0

    def __call__(self, moment: Moment) -> None:
        for event in moment.info["events"]:
            self._say(f"({event})")
        if self._policy.action != self._action:
            self._action = self._policy.action
            self._say(str(self._action))
        if self._video and self._steps % DRAWN == 0:
            self._video.add(self._environment.render(), str(self._action))
        self._steps += 1

    def end(self, outcome: str) -> None:
        """Show for a second how it ended."""
        if self._video:
            picture = self._environment.render()
            for _ in range(80 // DRAWN):
                self._video.add(picture, outcome)

    def _say(self, line: str) -> None:
        if not self._silent:
            print(f"{self._steps:6}  {line}")

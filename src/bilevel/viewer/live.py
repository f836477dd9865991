"""Episodes that are watched while they run, and that those who watch may pause, perturb and give other rules.

An episode is run by `rollout`, as any other. What viewers want comes from other threads and is done between two steps,
by the thread that runs the episode, in the callback that shows the step which is about to be taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from time import monotonic
from typing import Protocol

import numpy as np

from bilevel.files import write_atomically
from bilevel.policies.episode import Entry, Episode
from bilevel.policies.film import NameTags, frame_rate, take_picture
from bilevel.policies.narration import why_failed
from bilevel.policies.policy import BilevelPolicy, ControllingExpert, Policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules, parse_rules, require_open_world
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Control
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import call
from bilevel.viewer import requests
from bilevel.viewer.board import About, Board, Drawn, Ending, Now, Pace, Rules
from bilevel.viewer.shown import control_numbers, held_control, seen_things
from bilevel.viewer.timeline import beat, rule_lines, texts

PICTURES_PER_SECOND = 25.0  # at most
LAG = 0.2  # seconds that steps may make up for, where a picture took long
PUSH, PUSHED = Perturbation(amplitude=1.0, rate=0.0, flips=0.0), 15  # what a push is, and how many steps it lasts


class Listener(Protocol):
    """Who else hears of an episode: of each step, and of its end."""

    def __call__(self, transition: Transition) -> None:
        """Take note of a step that is about to be taken."""

    def end(self, episode: Episode) -> None:
        """Take note of how the episode ended."""


class _Again(Exception):
    """Another episode shall begin, from this seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed


class _Quit(Exception):
    """No further episode shall begin."""


@dataclass(frozen=True)
class Watched:
    """What is run: a policy in an environment; `rules_file` is where edited rules may be saved."""

    env: SceneEnv
    policy: Policy
    who: str  # acts, in words
    noise: float = 0.0
    rules_file: Path | None = None
    no_pictures: str | None = None  # why there are none
    tags: NameTags | None = None  # to write the names of things on


class LiveView:
    """Runs the episodes that pages of a board watch."""

    def __init__(self, watched: Watched, board: Board, listener: Listener | None = None) -> None:
        self._watched, self._board, self._listener = watched, board, listener
        self._env, self._policy = watched.env, watched.policy
        self._rules = watched.policy.rules
        self._requests: Queue[requests.Request] = Queue()
        self._pace, self._one_more = Pace(paused=False, speed=1.0), False
        self._rate = frame_rate(watched.env).steps_per_second
        self._due = self._next_picture = -math.inf  # when the last step was due, and when the next picture is
        self._held: dict[int, float] = {}  # numbers of the control that somebody holds, by their places
        self._text = ""  # of the rules, as they were
        if self._rules is not None:
            self._text = _file_text(watched.rules_file) or format_rules(self._rules.rules)
            self._board.set_rules(Rules(rule_lines(self._rules.rules), self._text, is_edited=False))

    # Running, by the thread that owns the environment

    def run(self, seed: int) -> Episode | None:
        """Run episodes until nobody wants another; return how the last one went, or `None` if it did not end."""
        while True:
            run = None
            try:
                run = self._run_one(seed)
                while True:
                    self._do(self._requests.get())
            except _Again as again:
                seed = again.seed
            except _Quit:
                return run
            except KeyboardInterrupt:
                if run is None:
                    raise
                return run

    def _run_one(self, seed: int) -> Episode:
        self._seed, noise = seed, self._watched.noise
        controls, switches = self._env.controls, self._env.task.switches
        noises = [Perturbation(amplitude=noise)] if noise else []
        self._perturbations = [Perturb(one, controls, switches, seed) for one in (*noises, PUSH)]
        self._held.clear()
        episode = rollout(self._env, self._policy, seed, callback=self._show, perturb=self._perturb, explain=True)
        self._hear(episode.new_entry)
        ending = Ending(episode.outcome, episode.success, episode.steps, why_failed(episode))
        self._board.end(ending, self._draw())
        if self._listener:
            self._listener.end(episode)
        return episode

    def _perturb(self, control: Control) -> Control:
        for perturb in self._perturbations:
            control = perturb(control)
        return held_control(control, self._env.controls, self._held) if self._held else control

    def _hear(self, entry: Entry | None) -> None:
        if entry is not None:
            if entry.before is None:
                self._board.begin(self._about(entry))
            self._board.add(beat(entry, self._rules))

    def _about(self, first: Entry) -> About:
        watched = self._watched
        low = self._policy.low if isinstance(self._policy, BilevelPolicy) else None
        return About(
            task=self._env.task.name,
            policy=watched.who,
            mover="policy" if low is None else "expert" if isinstance(low, ControllingExpert) else "network",
            objects=self._env.objects,
            seed=str(self._seed),
            steps_per_second=self._rate,
            facts=texts(first.state),
            can_edit=self._rules is not None,
            can_move=self._env.task.displace is not None,
            rules_file=str(watched.rules_file) if watched.rules_file else None,
            no_pictures=watched.no_pictures,
        )

    def _show(self, transition: Transition) -> None:
        """Show the step that is about to be taken, and wait until it may be."""
        self._episode = transition.episode
        self._hear(self._episode.new_entry)
        if self._listener:
            self._listener(transition)
        scene = self._policy.believed(transition.scene)
        now = Now(
            step=self._episode.steps,
            control=control_numbers(transition, self._env.controls, self._env.task.switches),
            seen=seen_things(scene, self._policy.action),
            objects=list(scene.roster.names),
        )
        is_first = now.step == 0
        due = self._pace.paused or monotonic() >= self._next_picture
        self._board.show(now, self._draw() if is_first or (due and self._board.is_watched) else None)
        if is_first:
            self._board.wait_until_watched()
        self._wait()

    def _wait(self) -> None:
        """Do what viewers ask for until the next step is due; while it is paused, until they want one."""
        due = self._due
        while not self._one_more:
            due = self._due + (1 / (self._rate * self._pace.speed) if self._pace.speed else 0.0)
            left = None if self._pace.paused else due - monotonic()
            try:
                request = self._requests.get(block=left is None or left > 0, timeout=left)
            except Empty:
                break
            self._do(request)
        self._due = monotonic() if self._one_more else max(due, monotonic() - LAG)
        self._one_more = False

    def _draw(self) -> Drawn | None:
        if self._watched.no_pictures is not None:
            return None
        began = monotonic()
        picture = np.asarray(take_picture(self._env, self._watched.tags), np.uint8)
        places = self._env.locate() if self._env.task.locate else {}
        self._next_picture = max(began + 1 / PICTURES_PER_SECOND, 2 * monotonic() - began)  # half of the time at most
        return Drawn(picture, {name: place for name, place in places.items() if all(map(math.isfinite, place))})

    # What viewers ask for

    def tell(self, request: requests.Request) -> None:
        """Have a request done before the next step; `BadInput` where it cannot be. Any thread may call this."""
        task, controls = self._env.task, self._env.controls
        if isinstance(request, requests.Edit | requests.Save):
            self._parsed(request.text)
        if isinstance(request, requests.Hold) and request.place >= (math.prod(controls.shape) or 1):
            raise BadInput(f"the controls have no number {request.place + 1}")
        if isinstance(request, requests.Move) and task.displace is None:
            raise BadInput(f"the task '{task.name}' has no way to put objects elsewhere")
        if isinstance(request, requests.Save):
            self._save(request.text)
        else:
            self._requests.put(request)

    def _do(self, request: requests.Request) -> None:
        match request:
            case requests.Pace(paused, speed):
                self._set_pace(self._pace.paused if paused is None else paused, speed)
            case requests.Step():
                self._one_more = True
                self._set_pace(paused=True)
            case requests.Push():
                self._perturbations[-1].burst(PUSHED)
                self._episode.remark(f"you push the controls for {PUSHED} steps")
            case requests.Hold(place, value):
                self._hold(place, value)
            case requests.Move(name, point):
                self._move(name, point)
            case requests.Edit(text):
                self._follow(text, is_edited=True)
            case requests.Revert():
                self._follow(self._text, is_edited=False)
            case requests.Again(ahead):
                raise _Again(self._seed + ahead)
            case requests.Quit():
                raise _Quit

    def _set_pace(self, paused: bool, speed: float | None = None) -> None:
        self._pace = Pace(paused, self._pace.speed if speed is None else speed)
        self._board.set_pace(self._pace)
        if paused and not self._one_more:
            self._board.redraw(self._draw())

    def _hold(self, place: int, value: float | None) -> None:
        if value is None:
            self._held.pop(place, None)
            return
        if place not in self._held:
            self._episode.remark(f"you hold number {place + 1} of the controls")
        self._held[place] = value

    def _move(self, name: str, point: tuple[float, float] | None) -> None:
        displace = self._env.task.displace
        is_there = displace is not None and name in self._env.true_scene
        if displace and is_there and call("displace(env, {1!r})", displace, self._env.env, name):
            self._episode.remark(f"you move {name}")
            self._board.redraw(self._draw())
        else:
            self._board.say(f"{name} cannot be put there")

    # Rules

    def _parsed(self, text: str) -> tuple[Rule, ...]:
        """Return the rules of a text; `BadInput` where the policy cannot follow them."""
        if self._rules is None:
            raise BadInput("this policy has no rules")
        rules = parse_rules(text, "rules", self._rules.domain)
        if not rules:
            raise BadInput("rules: there is no rule in the text")
        if self._rules.open_world:
            require_open_world(rules)
        return rules

    def _follow(self, text: str, is_edited: bool) -> None:
        """Have the policy follow the rules of a text from the next decision on."""
        if self._rules is not None and isinstance(self._policy, BilevelPolicy):
            self._rules.follow(self._parsed(text))
            self._policy.reconsider()
            self._episode.remark("you change the rules")
            self._board.set_rules(Rules(rule_lines(self._rules.rules), text, is_edited))

    def _save(self, text: str) -> None:
        if self._watched.rules_file is None:
            raise BadInput("these rules have no file of yours; copy the text to one")
        write_atomically(self._watched.rules_file, text)


def _file_text(path: Path | None) -> str:
    """Return what is in a file, if there is one."""
    return path.read_text(encoding="utf-8") if path is not None else ""

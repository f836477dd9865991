"""Episodes that are watched while they run; viewers may pause them, perturb them and change their rules.

An episode is run by `rollout`, as any other. What viewers want comes from other threads and is done between two steps,
by the thread that runs the episode, in the callback that shows the step which is about to be taken.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from queue import Empty, Queue
from threading import Condition, Event
from time import monotonic
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from bilevel.files import write_atomically
from bilevel.json_files import Count
from bilevel.policies.episode import Episode, LogEntry
from bilevel.policies.film import take_picture
from bilevel.policies.folder import RULES
from bilevel.policies.narration import EpisodePrinter, why_failed
from bilevel.policies.policy import Policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.rules.explanation import sentence
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules, parse_rules, require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import BoxControls, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import LabelOnly


def viewer_asset(name: str) -> str:
    """Return the text of a file that belongs to the page."""
    return (files("bilevel.viewer") / "assets" / name).read_text(encoding="utf-8")


# The timeline: an episode in words, which pages show beside the picture, whether it still runs or was filmed


class Fired(msgspec.Struct, frozen=True):
    """The rule that chose an action."""

    number: Count  # from 1, as in the list of the rules
    text: str
    binding: dict[str, str]  # what each of its variables stands for
    sentence: str


class Beat(msgspec.Struct, frozen=True):
    """A step at which something is new: another action, other facts, or an event."""

    step: Count
    action: str | None  # from here on; `None` at the end, and where the policy does not say
    rule: Fired | None
    appeared: Sequence[str]  # facts; at the beginning, none does
    vanished: Sequence[str]
    goals_left: Sequence[str]
    events: Sequence[str]  # what nature did: reported by the world
    goals_done: Sequence[str] = ()


class RuleLine(msgspec.Struct, frozen=True):
    """A rule in the list of all."""

    text: str
    sentence: str


class Beginning(msgspec.Struct, frozen=True):
    """What there is before the first step: the facts that hold, and the rules, if the policy has some."""

    facts: Sequence[str] = ()
    rules: Sequence[RuleLine] = ()


def beginning(first: LogEntry, rules: RulePolicy | None) -> Beginning:
    """Return what there is at the first entry of an episode."""
    return Beginning(_texts(first.state), rule_lines(rules) if rules else [])


def rule_lines(rules: RulePolicy) -> list[RuleLine]:
    """Return the rules in order, each with what it says in English."""
    return [RuleLine(str(rule), sentence(rule)) for rule in rules.rules]


def beat(entry: LogEntry, rules: RulePolicy | None) -> Beat:
    """Return an entry in words, with what is new since the one before it."""
    before, fired = entry.before or entry, None
    if rules and entry.match:
        rule, binding = entry.match.rule, dict(sorted(entry.match.binding.items()))
        fired = Fired(rules.rules.index(rule) + 1, str(rule), binding, entry.sentence or "")
    return Beat(
        step=entry.step,
        action=str(entry.action) if entry.action else None,
        rule=fired,
        appeared=_texts(entry.state - before.state),
        vanished=_texts(before.state - entry.state),
        goals_left=_texts(entry.goal - entry.state),
        events=list(entry.events),
        goals_done=_texts(entry.goal & entry.state),
    )


def _texts(facts: Facts) -> list[str]:
    return [str(fact) for fact in sorted(facts)]


# What a page is shown

Shown = dict[str, Any]  # a part of what a page shows, as JSON


class News(msgspec.Struct, frozen=True):
    """All that a page shows but the picture, whose number is here; of the beats, those from some number on."""

    version: int = 0
    episode: int = 0
    paused: bool = False
    speed: float = 1.0  # times the true one; 0 is as fast as possible
    about: Shown | None = None  # what the episode is of
    beats: tuple[Beat, ...] = ()
    beats_from: int = 0
    now: Shown | None = None  # the step that is about to be taken
    rules: Shown | None = None  # that are followed, and the text of their file
    ending: Shown | None = None
    picture: int = 0


class Board:
    """The news of a live page; every method may be called from any thread.

    The episode waits for no page: what a page has not fetched in time is replaced by what is newer, but for beats.
    """

    def __init__(self) -> None:
        self.news = News()
        self.picture = 0, b""  # the step that it shows, and the newest picture as JPEG
        self._changed = Condition()
        self.asked = Event()  # for news, by a page
        self._closed = False

    def show(self, picture: tuple[int, bytes] | None = None, **changes: Any) -> None:
        """Show what has changed, and a new picture if there is one."""
        with self._changed:
            self.picture = picture or self.picture
            number = self.news.picture + (picture is not None)
            self.news = replace(self.news, version=self.news.version + 1, picture=number, **changes)
            self._changed.notify_all()

    def close(self) -> None:
        """Let no page wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.asked.set()

    def next(self, version: int, episode: int, beats: int, timeout: float) -> News | None:
        """Return the news once they are newer than this version, without beats that are known; `None` after a while."""
        self.asked.set()
        with self._changed:
            self._changed.wait_for(lambda: self._is_newer(version) or self._closed, timeout)
            if not self._is_newer(version):
                return None
            known = beats if episode == self.news.episode else 0
            return replace(self.news, beats=self.news.beats[known:], beats_from=known)

    def _is_newer(self, version: int) -> bool:
        return self.news.version > version and self.news.about is not None


# What viewers may ask for

SLOWEST, FASTEST = 1 / 64, 64  # times the true speed


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a viewer asks for; what is not given stays as it is."""

    type: Literal["pace", "step", "push", "edit", "revert", "save", "again", "quit"]
    paused: bool | None = None
    speed: Annotated[float, msgspec.Meta(ge=0, le=FASTEST)] | None = None  # times the true one; 0: as fast as possible
    text: str = ""  # of the rules to follow from the next decision on, or to save
    ahead: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0  # by how much the next seed is further on

    def __post_init__(self) -> None:
        if self.speed and self.speed < SLOWEST:
            raise ValueError(f"the speed is 0, or {SLOWEST} to {FASTEST}")


# Running

PACKAGE = Path(__file__).resolve().parents[1]
PICTURES_PER_SECOND = 25.0  # at most
LAG = 0.2  # seconds that steps may make up for, where a picture took long
PUSHED = 15  # steps that a push lasts
ONLY_PUSHES = Perturbation(amplitude=1.0, rate=0.0, flips=0.0)  # where there is no other noise


class _Leave(Exception):
    """The episode shall end here, and another begin from this seed, if there is one."""

    def __init__(self, next_seed: int | None = None) -> None:
        self.next_seed = next_seed


class LiveView:
    """Runs the episodes of a policy in an environment that pages of a board watch."""

    def __init__(
        self, env: SceneEnv, policy: Policy, board: Board, *, who: str, folder: str | None = None, noise: float = 0.0,
        names: bool = False, explain: bool = False,
    ) -> None:  # fmt: skip
        """The page says `who` acts; rules in the `folder` of a policy may be edited and saved there.

        With `names`, these are written over the things in pictures; with `explain`, the terminal shows reasons, too.
        """
        self._env, self._policy, self._rules, self._board = env, policy, policy.rules, board
        self._who, self._noise, self._rules_file = who, noise, rules_file(folder)
        self._names, self._no_pictures = names, why_no_pictures(env)
        if names and self._no_pictures is None:
            env.locate()  # where that is impossible, it is said before a page is opened
        self._printer = EpisodePrinter(explain=explain)
        self._requests: Queue[Request] = Queue()
        self._one_more = False  # step, although it is paused
        self._rate = env.steps_per_second
        self._due = self._next_picture = -math.inf  # when the last step was due, and when the next picture is
        if self._rules is not None:
            file = self._rules_file
            self._text = file.read_text(encoding="utf-8") if file else format_rules(self._rules.rules)
            self._show_rules(self._rules, self._text, is_edited=False)

    # By the thread that owns the environment

    def run(self, seed: int) -> Episode | None:
        """Run episodes until no viewer wants another; return the last one, or `None` if it did not end."""
        while True:
            episode = None
            try:
                episode = self._run_one(seed)
                while True:
                    self._do(self._requests.get())
            except _Leave as leaving:
                if leaving.next_seed is None:
                    return episode
                seed = leaving.next_seed
            except KeyboardInterrupt:
                if episode is None:
                    raise
                return episode

    def _run_one(self, seed: int) -> Episode:
        self._seed = seed
        noise = Perturbation(amplitude=self._noise) if self._noise else ONLY_PUSHES
        self._perturb = Perturb(noise, self._env.controls, self._env.task.switches, seed)
        episode = rollout(self._env, self._policy, seed, callback=self._show, perturb=self._perturb, explain=True)
        self._add(episode.new_entry)
        ending = {"outcome": episode.outcome, "is_success": episode.success, "steps": episode.steps}
        self._printer.end(episode)
        self._board.show(self._draw(), ending={**ending, "why": why_failed(episode)})
        return episode

    def _add(self, entry: LogEntry | None) -> None:
        """Show what is new at a step; with the first entry, a new episode begins."""
        if entry is None:
            return
        if entry.before is None:
            number = self._board.news.episode + 1
            self._board.show(episode=number, about=self._about(entry), beats=(), now=None, ending=None)
        self._board.show(beats=(*self._board.news.beats, beat(entry, self._rules)))

    def _about(self, first: LogEntry) -> Shown:
        return {
            "task": self._env.task.name,
            "policy": self._who,
            "objects": self._env.objects,
            "seed": str(self._seed),  # for browsers have no whole numbers of 64 bits
            "facts": _texts(first.state),
            "can_edit": self._rules is not None,
            "rules_file": str(self._rules_file) if self._rules_file else None,
            "no_pictures": self._no_pictures,
        }

    def _show(self, transition: Transition) -> None:
        """Show the step that is about to be taken, and wait until it may be."""
        self._episode = transition.episode
        self._add(self._episode.new_entry)
        self._printer(transition)
        scene = self._policy.scene or transition.scene
        now = {
            "step": self._episode.steps,
            "control": control_numbers(transition, self._env.controls, self._env.task.switches),
            "seen": seen_things(scene, self._policy.action, self._policy.looks_at),
        }
        is_due = self._episode.steps == 0 or self._board.news.paused or monotonic() >= self._next_picture
        self._board.show(self._draw() if is_due else None, now=now)
        self._board.asked.wait()
        self._wait()

    def _wait(self) -> None:
        """Do what viewers ask for until the next step is due; while it is paused, until they want one."""
        due = self._due
        while not self._one_more:
            news = self._board.news
            due = self._due + (1 / (self._rate * news.speed) if news.speed else 0.0)
            left = None if news.paused else due - monotonic()
            try:
                request = self._requests.get(block=left is None or left > 0, timeout=left)
            except Empty:
                break
            self._do(request)
        self._due = monotonic() if self._one_more else max(due, monotonic() - LAG)
        self._one_more = False

    def _draw(self) -> tuple[int, bytes] | None:
        """Return the number of the step and a picture of what is there now, if there are pictures."""
        if self._no_pictures is not None:
            return None
        from PIL import Image

        began, buffer = monotonic(), io.BytesIO()
        Image.fromarray(take_picture(self._env, self._names)).save(buffer, "JPEG", quality=85)
        self._next_picture = max(began + 1 / PICTURES_PER_SECOND, 2 * monotonic() - began)  # half of the time at most
        return self._env.steps, buffer.getvalue()

    # What viewers ask for

    def tell(self, request: Request) -> None:
        """Have a request done before the next step; `BadInput` where it cannot be. Any thread may call this."""
        if request.type in ("edit", "save"):
            self._parsed(request.text)
        if request.type == "save":
            if self._rules_file is None:
                raise BadInput("these rules have no file of yours; copy the text to one")
            write_atomically(self._rules_file, request.text)
        else:
            self._requests.put(request)

    def _do(self, request: Request) -> None:
        news = self._board.news
        match request.type:
            case "pace":
                paused = news.paused if request.paused is None else request.paused
                speed = news.speed if request.speed is None else request.speed
                self._board.show(self._draw() if paused else None, paused=paused, speed=speed)
            case "step":
                self._one_more = True
                self._board.show(paused=True)
            case "push":
                self._perturb.burst(PUSHED)
                self._episode.remarks.append(f"you push the controls for {PUSHED} steps")
            case "edit":
                self._follow(request.text, is_edited=True)
            case "revert":
                self._follow(self._text, is_edited=False)
            case "again":
                raise _Leave(self._seed + request.ahead)
            case "quit":
                raise _Leave

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
        if self._rules is not None:
            self._rules.follow(self._parsed(text))
            self._policy.reconsider()
            self._episode.remarks.append("you change the rules")
            self._show_rules(self._rules, text, is_edited)

    def _show_rules(self, rules: RulePolicy, text: str, is_edited: bool) -> None:
        self._board.show(rules={"lines": rule_lines(rules), "text": text, "is_edited": is_edited})


def rules_file(folder: str | None) -> Path | None:
    """Return the file that a policy's rules may be saved to: one that is there, can be written, and is not ours."""
    if folder is None or not os.access(path := Path(folder) / RULES, os.W_OK):
        return None
    return None if path.resolve().is_relative_to(PACKAGE) else path


def why_no_pictures(env: SceneEnv) -> str | None:
    """Return why there are no pictures of an environment; `None` where there are some."""
    if not env.task.takes_render_mode:
        return f"the environment of '{env.task.name}' gives no pictures: its make_env takes no render_mode"
    try:
        env.reset(0)
        env.render()
    except BadInput as error:
        return str(error)
    return None


def control_numbers(transition: Transition, controls: Controls, switches: Sequence[int]) -> list[Shown]:
    """Return each number of a control between its bounds, as the policy wants it and as it is executed."""
    if is_box := isinstance(controls, BoxControls):
        low, high = controls.low, controls.high
    else:
        low, high = [controls.start], [controls.start + controls.n - 1]
    both = (np.asarray(each, np.float64).reshape(-1).tolist() for each in (transition.control, transition.executed))
    return [
        dict(zip(("low", "high", "wanted", "executed"), numbers, strict=True))
        | {"is_switch": place in switches, "is_choice": not is_box}
        for place, numbers in enumerate(zip(low, high, *both, strict=True))
    ]


def seen_things(scene: Scene, action: Action | None, looks_at: str) -> list[Shown]:
    """Return the features of the agent, of the objects that the action names, and of the one that is looked at."""
    named = [name for name in dict.fromkeys([*(action.arguments if action else ()), looks_at]) if name in scene]
    spec = scene.spec
    things = [(scene.agent, spec.agent_roles), *((scene[name], spec.object_roles[scene[name].type]) for name in named)]
    return [
        {"name": thing.name, "features": {n: thing[n] for n, role in roles.items() if not isinstance(role, LabelOnly)}}
        for thing, roles in things
    ]

"""Episodes that are watched while they run, and that those who watch may pause, perturb and give other rules.

An episode is run by `rollout`, as any other. What viewers want comes from other threads and is done between two steps,
by the thread that runs the episode, in the callback that shows the step which is about to be taken.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from queue import Empty, Queue
from threading import Condition
from time import monotonic
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from bilevel.files import write_atomically
from bilevel.json_files import Count
from bilevel.policies.episode import Entry, Episode
from bilevel.policies.film import NameTags, frame_rate, take_picture
from bilevel.policies.narration import EpisodePrinter, why_failed
from bilevel.policies.policy import BilevelPolicy, ControllingExpert, Policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.rules.explanation.english import sentence
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules, parse_rules, require_open_world
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, BadInput, Facts
from bilevel.tasks.controls import BoxControls, Control, Controls
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.spec import LabelOnly
from bilevel.tasks.task import call


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


def beginning(first: Entry, rules: RulePolicy | None) -> Beginning:
    """Return what there is at the first entry of an episode."""
    return Beginning(_texts(first.state), rule_lines(rules.rules) if rules else [])


def rule_lines(rules: Sequence[Rule]) -> list[RuleLine]:
    """Return the rules in order, each with what it says in English."""
    return [RuleLine(str(rule), sentence(rule)) for rule in rules]


def beats(episode: Episode) -> list[Beat]:
    """Return the entries of an episode in words, each with what is new since the one before it."""
    return [beat(entry, episode.rules) for entry in episode.entries]


def beat(entry: Entry, rules: RulePolicy | None) -> Beat:
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
    rules_version: int = 0
    ending: Shown | None = None
    picture: int = 0
    notice: str = ""


JPEG_QUALITY = 85
WATCHED = 3.0  # seconds since a page last asked, within which somebody is taken to be watching


class Board:
    """The news of a live page; every method may be called from any thread.

    Nobody waits for a page: what it has not fetched in time is replaced by what is newer, except beats, which are few.
    """

    def __init__(self) -> None:
        self.news = News()
        self._changed = Condition()
        self._pixels: Any = None
        self._step = 0  # that the picture shows
        self._waiting, self._last_asked = 0, -WATCHED  # pages that wait for news, and when one has got some
        self._closed = False

    @property
    def is_watched(self) -> bool:
        """Whether a page waits for news, or has asked lately."""
        return self._waiting > 0 or monotonic() - self._last_asked < WATCHED

    def wait_until_watched(self) -> None:
        """Wait until a page asks for news, unless one has done so lately."""
        with self._changed:
            while not (self.is_watched or self._closed):
                self._changed.wait(1.0)

    def show(self, pixels: Any = None, **changes: Any) -> None:
        """Show what has changed, and a new picture if there is one."""
        with self._changed:
            news = msgspec.structs.replace(self.news, version=self.news.version + 1, **changes)
            if pixels is not None:
                self._pixels = pixels
                self._step = news.ending["steps"] if news.ending else news.now["step"] if news.now else 0
                news = msgspec.structs.replace(news, picture=news.picture + 1)
            self.news = news
            self._changed.notify_all()

    def close(self) -> None:
        """Let no page wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def next(self, version: int, episode: int, beats: int, timeout: float) -> News | None:
        """Return the news once they are newer than this version, without beats that are known; `None` after a while."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_newer(version) or self._closed, timeout)
            self._waiting -= 1
            self._last_asked = monotonic()
            if not self._is_newer(version):
                return None
            known = beats if episode == self.news.episode else 0
            return msgspec.structs.replace(self.news, beats=self.news.beats[known:], beats_from=known)

    def _is_newer(self, version: int) -> bool:
        return self.news.version > version and self.news.about is not None

    def picture(self) -> tuple[int, bytes]:
        """Return the newest picture as JPEG, and the step that it shows; empty where there is none."""
        with self._changed:
            pixels, step = self._pixels, self._step
        if pixels is None:
            return 0, b""
        from PIL import Image

        with io.BytesIO() as buffer:
            Image.fromarray(pixels).save(buffer, "JPEG", quality=JPEG_QUALITY)
            return step, buffer.getvalue()


# What those who watch may ask for

SLOWEST, FASTEST = 1 / 64, 64  # times the true speed


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a viewer asks for; what is not given stays as it is."""

    type: Literal["pace", "step", "push", "move", "edit", "revert", "save", "again", "quit"]
    paused: bool | None = None
    speed: Annotated[float, msgspec.Meta(ge=0, le=FASTEST)] | None = None  # times the true one; 0: as fast as possible
    name: str = ""  # of the object to move elsewhere
    text: str = ""  # of the rules to follow from the next decision on, or to save
    ahead: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0  # by how much the next seed is further on

    def __post_init__(self) -> None:
        if self.speed and self.speed < SLOWEST:
            raise ValueError(f"the speed is 0, or {SLOWEST} to {FASTEST}")


def read_request(data: bytes) -> Request:
    """Return the request that JSON is; `BadInput` for any other."""
    try:
        return msgspec.json.decode(data, type=Request)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"no request of the page: {error}") from None


# Running

PICTURES_PER_SECOND = 25.0  # at most
LAG = 0.2  # seconds that steps may make up for, where a picture took long
PUSH, PUSHED = Perturbation(amplitude=1.0, rate=0.0, flips=0.0), 15  # what a push is, and how many steps it lasts


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

    def __init__(self, watched: Watched, board: Board, printer: EpisodePrinter | None = None) -> None:
        self._watched, self._board, self._printer = watched, board, printer
        self._env, self._policy, self._rules = watched.env, watched.policy, watched.policy.rules
        self._requests: Queue[Request] = Queue()
        self._one_more = False  # step, although it is paused
        self._rate = frame_rate(watched.env).steps_per_second
        self._due = self._next_picture = -math.inf  # when the last step was due, and when the next picture is
        self._text = ""  # of the rules, as they were
        if self._rules is not None:
            file = watched.rules_file
            self._text = file.read_text(encoding="utf-8") if file else format_rules(self._rules.rules)
            self._show_rules(self._text, is_edited=False)

    # By the thread that owns the environment

    def run(self, seed: int) -> Episode | None:
        """Run episodes until nobody wants another; return the last one, or `None` if it did not end."""
        while True:
            episode = None
            try:
                episode = self._run_one(seed)
                while True:
                    self._do(self._requests.get())
            except _Again as again:
                seed = again.seed
            except _Quit:
                return episode
            except KeyboardInterrupt:
                if episode is None:
                    raise
                return episode

    def _run_one(self, seed: int) -> Episode:
        self._seed, noise = seed, self._watched.noise
        noises = [Perturbation(amplitude=noise)] if noise else []
        self._perturbations = [
            Perturb(one, self._env.controls, self._env.task.switches, seed) for one in (*noises, PUSH)
        ]
        episode = rollout(self._env, self._policy, seed, callback=self._show, perturb=self._perturb, explain=True)
        self._add(episode.new_entry)
        ending = {"outcome": episode.outcome, "is_success": episode.success, "steps": episode.steps}
        if self._printer:
            self._printer.end(episode)
        self._board.show(self._draw(), ending={**ending, "why": why_failed(episode)})
        return episode

    def _perturb(self, control: Control) -> Control:
        for perturb in self._perturbations:
            control = perturb(control)
        return control

    def _add(self, entry: Entry | None) -> None:
        """Show what is new at a step; with the first entry, a new episode begins."""
        if entry is None:
            return
        if entry.before is None:
            number = self._board.news.episode + 1
            self._board.show(episode=number, about=self._about(entry), beats=(), now=None, ending=None)
        self._board.show(beats=(*self._board.news.beats, beat(entry, self._rules)))

    def _about(self, first: Entry) -> Shown:
        watched = self._watched
        low = self._policy.low if isinstance(self._policy, BilevelPolicy) else None
        return {
            "task": self._env.task.name,
            "policy": watched.who,
            "mover": "policy" if low is None else "expert" if isinstance(low, ControllingExpert) else "network",
            "objects": self._env.objects,
            "seed": str(self._seed),  # for browsers have no whole numbers of so many digits
            "facts": _texts(first.state),
            "can_edit": self._rules is not None,
            "can_move": self._env.task.displace is not None,
            "rules_file": str(watched.rules_file) if watched.rules_file else None,
            "no_pictures": watched.no_pictures,
        }

    def _show(self, transition: Transition) -> None:
        """Show the step that is about to be taken, and wait until it may be."""
        self._episode = transition.episode
        self._add(self._episode.new_entry)
        if self._printer:
            self._printer(transition)
        scene = self._policy.believed(transition.scene)
        now = {
            "step": self._episode.steps,
            "control": control_numbers(transition, self._env.controls, self._env.task.switches),
            "seen": seen_things(scene, self._policy.action),
            "objects": list(scene.roster.names),
        }
        is_first, is_due = self._episode.steps == 0, self._board.news.paused or monotonic() >= self._next_picture
        self._board.show(self._draw() if is_first or (is_due and self._board.is_watched) else None, now=now, notice="")
        if is_first:
            self._board.wait_until_watched()
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

    def _draw(self) -> Any:
        """Return a picture of what is there now, if there are pictures."""
        if self._watched.no_pictures is not None:
            return None
        began = monotonic()
        picture = np.asarray(take_picture(self._env, self._watched.tags), np.uint8)
        self._next_picture = max(began + 1 / PICTURES_PER_SECOND, 2 * monotonic() - began)  # half of the time at most
        return picture

    # What viewers ask for

    def tell(self, request: Request) -> None:
        """Have a request done before the next step; `BadInput` where it cannot be. Any thread may call this."""
        if request.type in ("edit", "save"):
            self._parsed(request.text)
        if request.type == "move" and self._env.task.displace is None:
            raise BadInput(f"the task '{self._env.task.name}' has no way to put objects elsewhere")
        if request.type == "save":
            if self._watched.rules_file is None:
                raise BadInput("these rules have no file of yours; copy the text to one")
            write_atomically(self._watched.rules_file, request.text)
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
                self._perturbations[-1].burst(PUSHED)
                self._episode.remark(f"you push the controls for {PUSHED} steps")
            case "move":
                self._move(request.name)
            case "edit":
                self._follow(request.text, is_edited=True)
            case "revert":
                self._follow(self._text, is_edited=False)
            case "again":
                raise _Again(self._seed + request.ahead)
            case "quit":
                raise _Quit

    def _move(self, name: str) -> None:
        displace = self._env.task.displace
        is_there = displace is not None and name in self._env.true_scene
        if displace and is_there and call("displace(env, {1!r})", displace, self._env.env, name):
            self._episode.remark(f"you move {name}")
            self._board.show(self._draw())
        else:
            self._board.show(notice=f"{name} cannot be put elsewhere")

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
            self._show_rules(text, is_edited)

    def _show_rules(self, text: str, is_edited: bool) -> None:
        assert self._rules is not None
        rules = {"lines": rule_lines(self._rules.rules), "text": text, "is_edited": is_edited}
        self._board.show(rules=rules, rules_version=self._board.news.rules_version + 1)


def control_numbers(transition: Transition, controls: Controls, switches: Sequence[int]) -> list[Shown]:
    """Return each number of a control between its bounds, as the policy wants it and as it is executed."""
    wanted, executed = (
        np.asarray(one, np.float64).reshape(-1).tolist() for one in (transition.control, transition.executed)
    )
    if isinstance(controls, BoxControls):
        low, high = controls.low, controls.high
    else:
        low, high = [controls.start], [controls.start + controls.n - 1]
    return [
        {"low": low[place], "high": high[place], "wanted": wanted[place], "executed": executed[place]}
        | {"is_switch": place in switches, "is_choice": not isinstance(controls, BoxControls)}
        for place in range(len(wanted))
    ]


def seen_things(scene: Scene, action: Action | None) -> list[Shown]:
    """Return what the network is told about: the agent, and the objects that the action names, with their features."""
    named = [name for name in dict.fromkeys(action.arguments if action else ()) if name in scene]
    spec = scene.spec
    things = [(scene.agent, spec.agent_roles), *((scene[name], spec.object_roles[scene[name].type]) for name in named)]
    shown = [[name for name, role in roles.items() if not isinstance(role, LabelOnly)] for _, roles in things]
    return [
        {"name": thing.name, "features": {name: thing[name] for name in names}}
        for (thing, _), names in zip(things, shown, strict=True)
    ]

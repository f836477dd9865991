"""What a page is shown of a running episode: kept by the one who runs it, read by as many pages as there are.

Nobody waits for a page: what it has not fetched in time is replaced by what is newer, except beats, which are few.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from time import monotonic
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.viewer.timeline import Beat, RuleLine

JPEG_QUALITY = 85
WATCHED = 3.0  # seconds since a page last asked, within which somebody is taken to be watching


class About(msgspec.Struct, frozen=True):
    """What an episode is of."""

    task: str
    policy: str  # who acts, in words
    mover: str  # who gives the controls, in words
    objects: int
    seed: str  # for browsers have no whole numbers of so many digits
    steps_per_second: float  # at the true speed
    facts: Sequence[str]  # that hold at the beginning
    can_edit: bool  # there are rules
    can_move: bool  # the task has a way to put objects elsewhere
    rules_file: str | None  # that edited rules may be saved to
    no_pictures: str | None  # why there are none


class ControlNumber(msgspec.Struct, frozen=True):
    """One number of a control: what the policy wants, and what is executed."""

    low: float
    high: float
    wanted: float
    executed: float
    is_switch: bool = False
    is_choice: bool = False  # one of the whole numbers from low to high


class SeenThing(msgspec.Struct, frozen=True):
    """The agent, or an object that the action names, with the features that the network is told."""

    name: str
    type: str
    features: dict[str, float]


class Now(msgspec.Struct, frozen=True):
    """The step that is about to be taken."""

    step: int
    control: Sequence[ControlNumber]
    seen: Sequence[SeenThing]
    objects: Sequence[str]  # the names of all


class Ending(msgspec.Struct, frozen=True):
    """How an episode ended, and why so if it did not succeed."""

    outcome: str
    is_success: bool
    steps: int
    why: str | None


class Rules(msgspec.Struct, frozen=True):
    """The rules that are followed, and the text of their file."""

    lines: Sequence[RuleLine]
    text: str
    is_edited: bool


class Pace(msgspec.Struct, frozen=True):
    """How the episode goes on."""

    paused: bool
    speed: float  # times the true one; 0 is as fast as possible


Places = Mapping[str, tuple[float, float]]  # of things in a picture, as parts of its width and height from the top left


class Drawn(NamedTuple):
    """A picture, and where in it things are, if that is known."""

    pixels: NDArray[np.uint8]
    places: Places


class Picture(NamedTuple):
    """A JPEG of what there was before a step."""

    step: int
    jpeg: bytes


@dataclass(frozen=True)
class Asked:
    """What a page has got already: the newest version of all, and of each part."""

    version: int = 0
    episode: int = 0
    beats: int = 0
    rules: int = 0


class News(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a page does not know yet."""

    version: int
    episode: int
    pace: Pace
    about: About | None = None
    beats_from: int = 0
    beats: Sequence[Beat] = ()
    now: Now | None = None
    rules_version: int = 0
    rules: Rules | None = None
    ending: Ending | None = None
    picture: int = 0
    places: Places = {}
    notice: str = ""


@dataclass
class _Episode:
    number: int = 0
    about: About | None = None
    beats: list[Beat] = field(default_factory=list)
    now: Now | None = None
    ending: Ending | None = None


class Board:
    """The state of a live page; every method may be called from any thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._version = self._rules_version = self._pictures = 0
        self._episode, self._rules = _Episode(), Rules([], "", is_edited=False)
        self._drawn: Drawn | None = None
        self._step = 0  # that the picture shows
        self._notice = ""
        self._encoded = 0, Picture(0, b"")
        self._pace = Pace(False, 1.0)
        self._waiting, self._last_asked = 0, -WATCHED  # pages that wait for news, and when one has got some
        self._closed = False

    # For the one who runs the episode

    @property
    def is_watched(self) -> bool:
        """Whether a page waits for news, or has asked lately."""
        return self._waiting > 0 or monotonic() - self._last_asked < WATCHED

    def wait_until_watched(self) -> None:
        """Wait until a page asks for news, unless one has done so lately."""
        with self._changed:
            while not (self.is_watched or self._closed):
                self._changed.wait(1.0)

    def begin(self, about: About) -> None:
        """Show a new episode."""
        with self._changed:
            self._episode = _Episode(self._episode.number + 1, about)
            self._notify()

    def add(self, beat: Beat) -> None:
        """Show one more beat."""
        with self._changed:
            self._episode.beats.append(beat)
            self._notify()

    def show(self, now: Now, drawn: Drawn | None) -> None:
        """Show where the episode is now, with a picture."""
        with self._changed:
            self._episode.now, self._notice = now, ""
            self._put_up(drawn)

    def redraw(self, drawn: Drawn | None) -> None:
        """Show another picture of where it is."""
        with self._changed:
            self._put_up(drawn)

    def say(self, notice: str) -> None:
        """Tell viewers something until the next step."""
        with self._changed:
            self._notice = notice
            self._notify()

    def _put_up(self, drawn: Drawn | None) -> None:
        if drawn is not None:
            self._drawn, self._pictures = drawn, self._pictures + 1
            ending, now = self._episode.ending, self._episode.now
            self._step = ending.steps if ending else now.step if now else 0
        self._notify()

    def set_pace(self, pace: Pace) -> None:
        """Show how fast it goes, or that it waits."""
        with self._changed:
            self._pace = pace
            self._notify()

    def set_rules(self, rules: Rules) -> None:
        """Show other rules."""
        with self._changed:
            self._rules, self._rules_version = rules, self._rules_version + 1
            self._notify()

    def end(self, ending: Ending, drawn: Drawn | None) -> None:
        """Show how the episode ended."""
        with self._changed:
            self._episode.ending = ending
            self._put_up(drawn)

    def close(self) -> None:
        """Let no page wait any longer."""
        with self._changed:
            self._closed = True
            self._notify()

    def _notify(self) -> None:
        self._version += 1
        self._changed.notify_all()

    # For pages

    def news(self, asked: Asked, timeout: float) -> News | None:
        """Return what a page does not know, as soon as there is something; `None` where that takes too long."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_news(asked) or self._closed, timeout)
            self._waiting -= 1
            self._last_asked = monotonic()
            episode = self._episode
            if not self._is_news(asked):
                return None
            known = asked.beats if asked.episode == episode.number else 0
            rules_are_new = asked.rules != self._rules_version
            return News(
                version=self._version,
                episode=episode.number,
                pace=self._pace,
                about=episode.about if asked.episode != episode.number else None,
                beats_from=known,
                beats=episode.beats[known:],
                now=episode.now,
                rules_version=self._rules_version,
                rules=self._rules if rules_are_new else None,
                ending=episode.ending,
                picture=self._pictures,
                places=self._drawn.places if self._drawn else {},
                notice=self._notice,
            )

    def _is_news(self, asked: Asked) -> bool:
        return self._version > asked.version and self._episode.about is not None

    def picture(self) -> Picture:
        """Return the newest picture; it is empty where there is none."""
        with self._changed:
            drawn, number, step = self._drawn, self._pictures, self._step
            if self._encoded[0] == number or drawn is None:
                return self._encoded[1]
        from PIL import Image

        with io.BytesIO() as buffer:
            Image.fromarray(drawn.pixels).save(buffer, "JPEG", quality=JPEG_QUALITY)
            encoded = Picture(step, buffer.getvalue())
        with self._changed:
            if number > self._encoded[0]:
                self._encoded = number, encoded
        return encoded

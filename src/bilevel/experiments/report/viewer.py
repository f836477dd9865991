"""The episode viewer's data: for each film a timeline, which follows it, and moves it when it is clicked."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from bilevel.experiments.reproduction.settings import ENTRANTS
from bilevel.experiments.reproduction.timeline import Beat, Timeline
from bilevel.policies.narration import STEPS_PER_SECOND
from bilevel.symbolic.domain import BadInput
from bilevel.video import package

INTO = 0.25  # of a picture: so far into it is sought, lest rounding show the one before
COLOURS = 8  # of action schemas; more than so many begin again
SPEEDS = {0.25: "a quarter of the speed", 0.5: "half the speed", 1.0: "the true speed", 2.0: "twice the speed"}


@dataclass(frozen=True)
class TimedBeat:
    """A beat, and where it is in the film."""

    beat: Beat
    time: float  # seconds
    seek: float  # seconds: where the picture that first shows it has begun
    colour: int  # of its action's schema, from 1; 0 without an action


@dataclass(frozen=True)
class Segment:
    """Beats in a row with the same action."""

    start: TimedBeat
    until: float  # seconds


@dataclass(frozen=True)
class Episode:
    """All that the template needs to know of a film."""

    timeline: Timeline
    title: str
    who: str
    speed: str
    beats: Sequence[TimedBeat]
    segments: Sequence[Segment]
    colours: dict[str, int]  # by schema
    video: str  # base64
    still: str | None  # base64

    @property
    def surprises(self) -> list[TimedBeat]:
        return [timed for timed in self.beats if timed.beat.events]

    def share(self, seconds: float) -> str:
        """Return a time as a part of the whole film, in per cent."""
        return f"{100 * seconds / self.timeline.seconds:.3f}%"


def episode(timeline: Timeline, video: bytes) -> Episode:
    """Return an episode with its film, ready to be shown."""
    schemas = dict.fromkeys(_schema(beat.action) for beat in timeline.beats if beat.action)
    colours = {schema: number % COLOURS + 1 for number, schema in enumerate(schemas)}
    beats = [_timed(timeline, beat, colours) for beat in timeline.beats]
    starts = [next(group) for _, group in groupby(beats, key=lambda timed: timed.beat.action)]
    ends = [*(timed.time for timed in starts[1:]), timeline.seconds]
    speed = timeline.steps_per_second / STEPS_PER_SECOND
    still = _still(video)
    return Episode(
        timeline=timeline,
        title=timeline.task.replace("-", ", ").capitalize(),
        who=ENTRANTS[timeline.entrant].title,
        speed=SPEEDS.get(speed, f"{speed:g} times the speed"),
        beats=beats,
        segments=[Segment(start, end) for start, end in zip(starts, ends, strict=True) if start.beat.action],
        colours=colours,
        video=base64.b64encode(video).decode(),
        still=base64.b64encode(still).decode() if still else None,
    )


def _timed(timeline: Timeline, beat: Beat, colours: dict[str, int]) -> TimedBeat:
    time, rate = beat.step / timeline.steps_per_second, timeline.pictures_per_second
    picture = math.ceil(round(time * rate, 6))
    return TimedBeat(beat, time, (picture + INTO) / rate, colours[_schema(beat.action)] if beat.action else 0)


def _schema(action: str) -> str:
    return action.split("(")[0]


def clock(seconds: float) -> str:
    """Return 0:07.3, as players show it, with tenths."""
    tenths = math.floor(10 * seconds + 1e-6)
    return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"


def _still(video: bytes) -> bytes | None:
    """Return a JPEG of the first picture, to be seen before the film is loaded, and on paper; `None` if that fails."""
    try:
        package("PIL.ImageFont")
        av = package("av")
    except BadInput:
        return None
    try:
        with av.open(io.BytesIO(video)) as film, io.BytesIO() as buffer:
            next(film.decode(video=0)).to_image().save(buffer, "JPEG", quality=70)
            return buffer.getvalue()
    except (av.FFmpegError, IndexError, StopIteration):  # what cannot be drawn may yet be played, by some browser
        return None

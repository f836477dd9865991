"""The episode viewer: for each film a timeline beside it, which follows it, and moves it when it is clicked.

It is a part of a page that needs nothing else: its styles and its program are in it.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bilevel.experiments.reproduction.settings import ENTRANTS
from bilevel.experiments.reproduction.timeline import Beat, Timeline
from bilevel.policies.narration import STEPS_PER_SECOND
from bilevel.symbolic.domain import BadInput
from bilevel.video import package

INTO = 0.25  # of a picture: so far into it is sought, lest rounding show the one before
COLOURS = 8  # of action schemas; more than so many begin again
SPEEDS = {0.25: "a quarter of the speed", 0.5: "half the speed", 1.0: "the true speed", 2.0: "twice the speed"}


@dataclass(frozen=True)
class Row:
    """A beat, and where it is in the film."""

    beat: Beat
    time: float  # seconds
    seek: float  # seconds: where the picture that first shows it has begun
    colour: int  # of its action's schema, from 1; 0 without an action


@dataclass(frozen=True)
class Segment:
    """Beats in a row with the same action."""

    action: str
    colour: int
    start: Row
    until: float  # seconds


@dataclass(frozen=True)
class Episode:
    """All that the template needs to know of a film."""

    timeline: Timeline
    title: str
    who: str
    speed: str
    rows: Sequence[Row]
    segments: Sequence[Segment]
    colours: dict[str, int]  # by schema
    video: str  # base64
    still: str | None  # base64

    @property
    def surprises(self) -> list[Row]:
        return [row for row in self.rows if row.beat.events]

    def share(self, seconds: float) -> str:
        """Of the whole film, in per cent."""
        return f"{100 * seconds / self.timeline.seconds:.3f}%"


def viewer_html(films: Sequence[tuple[Timeline, bytes]]) -> str:
    """A tab for each film; nothing at all, where there is none."""
    if not films:
        return ""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    episodes = [_episode(timeline, video) for timeline, video in films]
    template, styles, program = (page_file(f"viewer.{kind}") for kind in ("html", "css", "js"))
    return environment.from_string(template).render(
        episodes=episodes, styles=Markup(styles), program=Markup(program), clock=clock
    )


def clock(seconds: float) -> str:
    """0:07.3, as players show it, with tenths."""
    tenths = math.floor(10 * seconds + 1e-6)
    return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"


def page_file(name: str) -> str:
    """A file that belongs to the page."""
    return (files("bilevel.experiments.report") / "assets" / name).read_text(encoding="utf-8")


def _episode(timeline: Timeline, video: bytes) -> Episode:
    schemas = dict.fromkeys(_schema(beat.action) for beat in timeline.beats if beat.action)
    colours = {schema: number % COLOURS + 1 for number, schema in enumerate(schemas)}
    rows = [_row(timeline, beat, colours) for beat in timeline.beats]
    speed = timeline.steps_per_second / STEPS_PER_SECOND
    still = _still(video)
    return Episode(
        timeline=timeline,
        title=timeline.task.replace("-", ", ").capitalize(),
        who=ENTRANTS[timeline.entrant].title,
        speed=SPEEDS.get(speed, f"{speed:g} times the speed"),
        rows=rows,
        segments=list(_segments(timeline, rows)),
        colours=colours,
        video=base64.b64encode(video).decode(),
        still=base64.b64encode(still).decode() if still else None,
    )


def _row(timeline: Timeline, beat: Beat, colours: dict[str, int]) -> Row:
    time, rate = beat.step / timeline.steps_per_second, timeline.pictures_per_second
    picture = math.ceil(round(time * rate, 6))
    return Row(beat, time, (picture + INTO) / rate, colours[_schema(beat.action)] if beat.action else 0)


def _schema(action: str) -> str:
    return action.split("(")[0]


def _segments(timeline: Timeline, rows: Sequence[Row]) -> list[Segment]:
    runs = [(action, list(group)) for action, group in groupby(rows, key=lambda row: row.beat.action)]
    starts = [group[0].time for _, group in runs[1:]] + [timeline.seconds]
    return [
        Segment(action, group[0].colour, group[0], until)
        for (action, group), until in zip(runs, starts, strict=True)
        if action is not None
    ]


def _still(video: bytes) -> bytes | None:
    """A JPEG of the first picture, to be seen before the film is loaded, and on paper; `None` where there is no way."""
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

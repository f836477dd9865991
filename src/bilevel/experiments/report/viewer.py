"""The episode viewer's data: for each film a timeline, which follows it, and moves it when it is clicked."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from bilevel.experiments.reproduction.settings import VARIANTS
from bilevel.experiments.reproduction.timeline import Beat, Timeline

COLOURS = 8  # of action schemas; more than so many begin again
SPEEDS = {0.25: "a quarter of the speed", 0.5: "half the speed", 1.0: "the true speed", 2.0: "twice the speed"}


@dataclass(frozen=True)
class Episode:
    """All that the template needs to know of a film."""

    timeline: Timeline
    segments: Sequence[tuple[Beat, float]]  # the first of some beats in a row with the same action, and the step after
    colours: dict[str, int]  # by action schema, from 1
    video: str  # base64
    still: str | None  # base64

    @property
    def title(self) -> str:
        return self.timeline.task.replace("-", ", ").capitalize()

    @property
    def method(self) -> str:
        return VARIANTS[self.timeline.variant].title

    @property
    def speed(self) -> str:
        return SPEEDS.get(self.timeline.speed, f"{self.timeline.speed:g} times the speed")

    @property
    def steps(self) -> float:
        """As many as would fill the film to its very end."""
        return self.timeline.seconds * self.timeline.steps_per_second

    def clock(self, beat: Beat) -> str:
        """Return when a beat is in the film: 0:07.3, as players show it, with tenths."""
        tenths = math.floor(10 * beat.step / self.timeline.steps_per_second + 1e-6)
        return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"

    def colour(self, beat: Beat) -> int:
        """Return the number of the colour of a beat's action, which it must have."""
        return self.colours[_schema(beat.action or "")]


def episode(timeline: Timeline, video: bytes) -> Episode:
    """Return an episode with its film, ready to be shown."""
    schemas = dict.fromkeys(_schema(beat.action) for beat in timeline.beats if beat.action)
    starts = [next(group) for _, group in groupby(timeline.beats, key=lambda beat: beat.action)]
    ends = [*(float(beat.step) for beat in starts[1:]), timeline.seconds * timeline.steps_per_second]
    still = _still(video)
    return Episode(
        timeline,
        [(start, end) for start, end in zip(starts, ends, strict=True) if start.action],
        {schema: number % COLOURS + 1 for number, schema in enumerate(schemas)},
        base64.b64encode(video).decode(),
        base64.b64encode(still).decode() if still else None,
    )


def _schema(action: str) -> str:
    return action.split("(")[0]


def _still(video: bytes) -> bytes | None:
    """Return a JPEG of the first picture, to be seen before the film is loaded, and on paper; `None` if that fails."""
    try:
        import av
        import PIL.ImageFont  # noqa: F401
    except ImportError:
        return None
    try:
        with av.open(io.BytesIO(video)) as film, io.BytesIO() as buffer:
            next(film.decode(video=0)).to_image().save(buffer, "JPEG", quality=70)
            return buffer.getvalue()
    except (av.FFmpegError, IndexError, StopIteration):  # what cannot be drawn may yet be played, by some browser
        return None

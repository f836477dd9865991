"""An episode in pictures: a video as every browser plays it, and names over things."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.files import require_writable, write_atomically
from bilevel.policies.episode import Episode
from bilevel.policies.narration import caption
from bilevel.policies.rollout import Transition
from bilevel.tasks.scene_env import SceneEnv

Image = NDArray[np.uint8]  # (height, width, 3), the top row first
Places = Mapping[str, tuple[float, float]]  # for each name, the parts of the width and the height, from the top left

MAX_RATE = 30.0  # pictures per second: about what an eye can see
ENCODER = {"crf": "20", "preset": "veryfast"}  # of quality: 0 is lossless, 51 the worst

LINE = 0.06  # height of a caption's line, as a part of the picture's
SENTENCE = 4  # lines for an action and why it is done
DARK, INK = (24, 27, 33), (245, 246, 248)


def take_picture(env: SceneEnv, names: bool = False) -> Image:
    """Draw what is there, with the names of things over them if these are wanted."""
    picture: Image = env.render()
    return with_names(picture, env.locate()) if names else picture


class Film(AbstractContextManager["Film"]):
    """A callback of a rollout that films every n-th step of an episode, as an H.264 video.

    The whole of it is at its path once its context is left, and nothing of it before.
    """

    def __init__(
        self, path: Path, env: SceneEnv, *, names: bool = False, most: float = MAX_RATE, speed: float = 1.0,
        encoder: Mapping[str, str] = ENCODER,
    ) -> None:  # fmt: skip
        """Show the episode at a multiple of its speed, and about `most` pictures of each of its seconds.

        With `names`, these are written over the things in all pictures; `encoder` holds options of libx264.
        """
        import av
        import PIL.ImageFont  # noqa: F401 (at once, like the next line, not after an hour of pictures)

        self._av: Any = av
        require_writable(path)
        self.every = max(1, round(env.steps_per_second / most))
        self.fps = speed * env.steps_per_second / self.every
        self._path, self._env, self._names, self._encoder = path, env, names, dict(encoder)
        self._file = tempfile.NamedTemporaryFile(suffix=".mp4")  # noqa: SIM115 (closed with the video)
        self._container: Any = av.open(self._file.name, "w", format="mp4", options={"movflags": "faststart"})
        self._stream: Any = None

    def __call__(self, transition: Transition) -> None:
        if transition.episode.steps % self.every == 0:
            self._shoot(transition.episode, caption(transition.episode))

    def end(self, episode: Episode) -> None:
        """Show for a second how it ended."""
        self._shoot(episode, episode.outcome, round(self.fps))

    def _shoot(self, episode: Episode, text: str, times: int = 1) -> None:
        lines = SENTENCE if episode.explain and episode.rules else 1
        picture = captioned(take_picture(self._env, self._names), text, lines)
        for _ in range(times):
            self.add(picture)

    def add(self, picture: Image) -> None:
        """Add the next picture; all are of one size."""
        height, width, _ = picture.shape
        picture = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")  # H.264 needs even sizes
        if self._stream is None:
            rate = Fraction(self.fps).limit_denominator(1000)
            self._stream = self._container.add_stream("libx264", rate=rate, options=self._encoder)
            self._stream.height, self._stream.width, _ = picture.shape
            self._stream.pix_fmt = "yuv420p"
        self._container.mux(self._stream.encode(self._av.VideoFrame.from_ndarray(np.ascontiguousarray(picture))))

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """Finish the video and put it at its path; after an error, or without a picture, what was there stays."""
        is_whole = error is None and self._stream is not None
        with self._file:
            if is_whole:
                self._container.mux(self._stream.encode(None))
            self._container.close()
            if is_whole:
                write_atomically(self._path, Path(self._file.name).read_bytes())


def captioned(picture: Image, caption: str, lines: int = 1) -> Image:
    """Return the picture with a caption on a dark strip below it, for so many lines; long ones are written smaller."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    height, width, _ = picture.shape
    line_height = max(12, round(LINE * height))
    margin = line_height // 2
    canvas = PillowImage.new("RGB", (width, height + lines * line_height + margin), DARK)
    canvas.paste(PillowImage.fromarray(picture))
    pen = ImageDraw.Draw(canvas)
    for number, line in enumerate(caption.splitlines()[:lines]):
        size, middle = 0.62 * line_height, height + margin // 2 + (number + 0.5) * line_height
        font = _font(size * min(1.0, (width - 2 * margin) / max(1.0, _font(size).getlength(line))))
        pen.text((margin, middle), line, fill=INK, font=font, anchor="lm")
    return np.asarray(canvas, np.uint8)


@lru_cache(maxsize=64)
def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


# Names over things

LETTERS = 1 / 42  # height of letters, as a part of the picture's
SMALLEST_LETTERS = 11.0  # pixels
OFFSETS = (-1.3, 1.3, -2.9, 2.9, -4.5, 4.5, -6.1)  # from a thing down to its name, in letters; the best one first

Box = tuple[float, float, float, float]  # left, top, right and bottom, in pixels


def with_names(picture: Image, places: Places) -> Image:
    """Return the picture with a tag above or below each thing in it, which covers no other tag where there is room."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    canvas = PillowImage.fromarray(picture)
    pen, (width, height) = ImageDraw.Draw(canvas, "RGBA"), canvas.size
    size = max(SMALLEST_LETTERS, LETTERS * height)
    points = {name: (x * width, y * height) for name, (x, y) in places.items() if 0 <= x < 1 and 0 <= y < 1}
    tags = free_boxes(points, {name: _font(size).getlength(name) + 2 / 3 * size for name in points}, size, width)
    middles = {name: ((left + right) / 2, (top + bottom) / 2) for name, (left, top, right, bottom) in tags.items()}
    for name, middle in middles.items():
        pen.line([points[name], middle], fill=DARK, width=max(1, round(size / 10)))
    for name, tag in tags.items():
        pen.rounded_rectangle(tag, radius=size / 3, fill=DARK)
        pen.text(middles[name], name, fill=INK, font=_font(size), anchor="mm")
    return np.asarray(canvas, np.uint8)


def free_boxes(
    points: Mapping[str, tuple[float, float]], widths: Mapping[str, float], size: float, width: float
) -> dict[str, Box]:
    """Return where tags of these widths stand in a picture of a width: the things in front choose first."""
    boxes: dict[str, Box] = {}
    for name in sorted(points, key=lambda name: (-round(points[name][1]), name)):
        (x, y), half = points[name], widths[name] / 2
        middle = min(max(x, half), width - half)
        ways = [(middle - half, y + (down - 0.72) * size, middle + half, y + (down + 0.72) * size) for down in OFFSETS]
        boxes[name] = next((box for box in ways if not any(map(partial(_overlap, box), boxes.values()))), ways[0])
    return boxes


def _overlap(one: Box, other: Box) -> bool:
    return all(min(one[end + 2], other[end + 2]) > max(one[end], other[end]) for end in (0, 1))

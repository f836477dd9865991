"""An episode in pictures: a video as every browser plays it, a contact sheet of its decisions, names over things.

Write `with Video(path, fps=40) as video:` and in it `video.add(environment.render(), "pick(block1)")`.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilevel.files import require_writable, write_atomically
from bilevel.policies.episode import Episode
from bilevel.policies.narration import caption
from bilevel.policies.rollout import Transition
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv

Image = NDArray[np.uint8]  # (height, width, 3), the top row first
Places = Mapping[str, tuple[float, float]]  # for each name, the parts of the width and the height, from the top left

USUAL_RATE = 30.0  # steps per second, for environments that do not say it
MAX_RATE = 30.0  # pictures per second: about what an eye can see
ENCODER = {"crf": "20", "preset": "veryfast"}  # of quality: 0 is lossless, 51 the worst

LINE = 1 / 14  # height of a caption's line, as a part of the picture's
BELOW = 0.85  # lines below a picture are so much lower
LINES_BELOW = 4  # for an action and its sentence
SMALLEST = 0.6  # a long line is written smaller, down to this part of the usual size, before it is cut
DARK, INK = (24, 27, 33), (245, 246, 248)
OPACITY = 0.8


class FrameRate(NamedTuple):
    """How many steps a second has, and of which steps a picture is taken."""

    steps_per_second: float
    every: int

    @property
    def fps(self) -> float:
        """How many pictures are taken of a second."""
        return self.steps_per_second / self.every


def frame_rate(env: SceneEnv, most: float = MAX_RATE) -> FrameRate:
    """Return the rate that the environment has by its own account, thinned to about so many pictures a second."""
    rate = float((getattr(env.env, "metadata", None) or {}).get("render_fps") or USUAL_RATE)
    return FrameRate(rate, max(1, round(rate / most)))


def take_picture(env: SceneEnv, tags: NameTags | None = None) -> Image:
    """Draw what is there, with the names of things where there are tags to write them on."""
    picture: Image = env.render()
    return tags.draw(picture, env.locate()) if tags else picture


class Camera:
    """A callback of a rollout that films an episode: in a video every n-th step, and each decision on a sheet."""

    def __init__(
        self,
        env: SceneEnv,
        video: Video | None,
        sheet: bool = False,
        *,
        names: bool = False,
        rate: FrameRate | None = None,
    ) -> None:
        """With `names`, these are written over the things in all pictures; the rate is that of the video."""
        self._env, self._video, self._sheet = env, video, sheet
        self._tags = NameTags() if names else None
        self._rate = rate or frame_rate(env)
        self._last: object = None  # the action whose picture was taken last
        self.tiles: list[Tile] = []

    def __call__(self, transition: Transition) -> None:
        episode, action = transition.episode, transition.episode.entries[-1].action
        if self._sheet and action is not None and action != self._last:
            self._last = action
            self._take_tile(episode.steps, str(action))
        if self._video and episode.steps % self._rate.every == 0:
            self._video.add(take_picture(self._env, self._tags), caption(episode), _lines_below(episode))

    def end(self, episode: Episode) -> None:
        """Show for a second how it ended."""
        if self._sheet:
            self._take_tile(episode.steps, episode.outcome)
        if self._video:
            picture = take_picture(self._env, self._tags)
            for _ in range(round(self._video.fps)):
                self._video.add(picture, episode.outcome, _lines_below(episode))

    def _take_tile(self, step: int, text: str) -> None:
        if len(self.tiles) >= MAX_TILES:
            del self.tiles[1::2]
        self.tiles.append(Tile(take_picture(self._env, self._tags), f"step {step}: {text}"))


def _lines_below(episode: Episode) -> int:
    """Return how many lines are kept free below pictures: only explanations are that long."""
    return LINES_BELOW if episode.explain and episode.rules else 0


# Videos


class Video(AbstractContextManager["Video"]):
    """An H.264 video being written. The whole of it is at its path once its context is left, and nothing of it before.

    Pictures wider than `width` are made smaller; `encoder` holds options of libx264.
    """

    def __init__(
        self, path: Path, fps: float, *, width: int | None = None, encoder: Mapping[str, str] = ENCODER
    ) -> None:
        import av
        import PIL.ImageFont  # noqa: F401 (at once, like the next line, not after an hour of pictures)

        self._av: Any = av
        require_writable(path)
        self.path, self.fps = path, fps
        self._width, self._encoder = width, dict(encoder)
        self._file = tempfile.NamedTemporaryFile(suffix=".mp4")  # noqa: SIM115 (closed with the video)
        self._container: Any = av.open(self._file.name, "w", format="mp4", options={"movflags": "faststart"})
        self._stream: Any = None

    def add(self, picture: Image, caption: str = "", below: int = 0) -> None:
        """Add the next picture, of the same size as the others, with a caption as `captioned` writes it."""
        if self._width is not None and picture.shape[1] > self._width:
            picture = _resized(picture, self._width)
        picture = captioned(picture, caption, below)
        height, width, _ = picture.shape
        picture = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")  # H.264 needs even sizes
        height, width, _ = picture.shape
        if self._stream is None:
            rate = Fraction(self.fps).limit_denominator(1000)
            self._stream = self._container.add_stream("libx264", rate=rate, options=self._encoder)
            self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        if (self._stream.width, self._stream.height) != (width, height):
            size = f"{self._stream.width} x {self._stream.height}"
            raise BadInput(f"{self.path}: a video of {size} pixels cannot take a picture of {width} x {height}")
        self._container.mux(self._stream.encode(self._av.VideoFrame.from_ndarray(np.ascontiguousarray(picture))))

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """Finish the video and put it at its path; after an error, what was there stays."""
        is_whole = error is None and self._stream is not None
        with self._file:
            if is_whole:
                self._container.mux(self._stream.encode(None))
            self._container.close()
            if is_whole:
                write_atomically(self.path, Path(self._file.name).read_bytes())
        if error is None and not is_whole:
            raise BadInput(f"{self.path}: a video needs at least one picture")


def captioned(picture: Image, caption: str, below: int = 0) -> Image:
    """Return the picture with the caption's lines on a dark strip over its lowest part.

    With `below`, the strip is below the picture, and has room for so many lines, whatever the caption is.
    """
    height, width, _ = picture.shape
    if below:
        lines = caption.splitlines()[:below]
        ink = _ink("\n".join([*lines, *[" "] * (below - len(lines))]), width, max(12, round(BELOW * LINE * height)))
        strip = (1 - ink) * np.array(DARK, np.float32) + ink * np.array(INK, np.float32)
        return np.concatenate([picture, strip.astype(np.uint8)])
    if not caption:
        return picture
    ink = _ink(caption, width, max(12, round(LINE * height)))[-height:]
    result: Image = picture.copy()
    lowest = result[height - len(ink) :]
    dimmed = (1 - OPACITY) * lowest + OPACITY * np.array(DARK, np.float32)
    lowest[:] = (1 - ink) * dimmed + ink * np.array(INK, np.float32)
    return result


@lru_cache(maxsize=64)
def _ink(caption: str, width: int, line_height: int) -> NDArray[np.float32]:
    """Return (rows, width, 1): how much of each pixel the letters cover, 0 to 1."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    lines = caption.splitlines()
    margin = line_height // 2
    canvas = PillowImage.new("L", (width, line_height * len(lines) + margin))
    draw = ImageDraw.Draw(canvas)
    for number, line in enumerate(lines):
        text, font = _fitted(line, width - 2 * margin, 0.62 * line_height)
        draw.text((margin, margin // 2 + (number + 0.5) * line_height), text, fill=255, font=font, anchor="lm")
    coverage: NDArray[np.float32] = np.asarray(canvas, np.float32)[:, :, None] / np.float32(255)
    return coverage


def _fitted(line: str, width: float, size: float) -> tuple[str, Any]:
    """Return the line and a font in which it is not wider; a line too long even for the smallest font loses its end."""
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    size *= min(1.0, max(SMALLEST, width / max(1.0, font.getlength(line))))
    font = ImageFont.load_default(size)
    while len(line) > 1 and font.getlength(line) > width:
        line = line[:-2] + "…"
    return line, font


def _resized(picture: Image, width: int) -> Image:
    """Return the picture so wide, every pixel the mean of those that it stands for."""
    from PIL import Image as PillowImage

    size = width, round(picture.shape[0] * width / picture.shape[1])
    return np.asarray(PillowImage.fromarray(picture).resize(size, PillowImage.Resampling.BOX), np.uint8)


# Contact sheets

TILES, COLUMNS = 12, 3
MAX_TILES = 100  # kept while an episode goes on; so many that thinning them does not show
TILE_WIDTH, GAP = 460, 16  # pixels
HEADLINE = 60  # height


class Tile(NamedTuple):
    """A picture with what is being done."""

    picture: Image
    text: str


def contact_sheet(headline: str, details: str, tiles: Sequence[Tile]) -> bytes:
    """Return a PNG with a headline, and below it a grid of some of the pictures, evenly spread, with their captions."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    if len(tiles) > TILES:
        tiles = [tiles[round(index * (len(tiles) - 1) / (TILES - 1))] for index in range(TILES)]
    pictures = [captioned(_resized(tile.picture, TILE_WIDTH), tile.text, below=1) for tile in tiles]
    height = max((len(picture) for picture in pictures), default=0) + GAP
    width = COLUMNS * (TILE_WIDTH + GAP) + GAP
    sheet = PillowImage.new("RGB", (width, 2 * HEADLINE + -(-len(pictures) // COLUMNS) * height), "white")
    draw = ImageDraw.Draw(sheet)
    for text, size, middle in ((headline, 34, 0.65 * HEADLINE), (details, 18, 1.4 * HEADLINE)):
        text, font = _fitted(text, width - 2 * GAP, size)
        draw.text((GAP, middle), text, fill=DARK, font=font, anchor="lm")
    for number, picture in enumerate(pictures):
        row, column = divmod(number, COLUMNS)
        sheet.paste(PillowImage.fromarray(picture), (GAP + column * (TILE_WIDTH + GAP), 2 * HEADLINE + row * height))
    data = io.BytesIO()
    sheet.save(data, "PNG", optimize=True)
    return data.getvalue()


# Names over things

LETTERS = 1 / 42  # height of letters, as a part of the picture's
SMALLEST_LETTERS = 11.0  # pixels
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))  # the best first
DISTANCES = (0.4, 1.6, 2.9)  # from a thing to its tag, in heights of a tag


class Box(NamedTuple):
    """Where a tag is, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Return the area that two have in common, in pixels."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


class NameTags:
    """Writes names into the pictures of one film. No tag covers another where there is room.

    A tag stays on its side of a thing for as long as nothing is in its way there, lest it jump about in a film.
    """

    def __init__(self) -> None:
        self.boxes: dict[str, Box] = {}  # in the last picture
        self._sides: dict[str, int] = {}  # which of the possible boxes a tag had last

    def draw(self, picture: Image, places: Places) -> Image:
        """Return the picture with a tag for each place in it, arranged from the front to the back."""
        from PIL import Image as PillowImage
        from PIL import ImageDraw

        height, width, _ = picture.shape
        size, frame = max(SMALLEST_LETTERS, LETTERS * height), Box(0, 0, width, height)
        inside = {name: place for name, place in places.items() if all(0 <= part < 1 for part in place)}
        canvas = PillowImage.fromarray(picture)
        pen = ImageDraw.Draw(canvas)
        self.boxes = {}
        for name in sorted(inside, key=lambda name: (-round(inside[name][1] * height / size), name)):
            anchor = inside[name][0] * width, inside[name][1] * height
            self.boxes[name] = box = self._free_box(name, anchor, size, frame)
            nearest = min(max(anchor[0], box.left), box.right), min(max(anchor[1], box.top), box.bottom)
            pen.line([anchor, nearest], fill=DARK, width=max(1, round(size / 10)))
        for name, box in self.boxes.items():
            tag = _tag(name, size)
            canvas.paste(tag, (round(box.left), round(box.top)), tag)
        return np.asarray(canvas, np.uint8)

    def _free_box(self, name: str, anchor: tuple[float, float], size: float, frame: Box) -> Box:
        """Return the first box around a thing that covers no other tag, nor the edge; the last side goes first."""
        (x, y), (width, height) = anchor, _tag(name, size).size
        boxes, costs = [], []
        for distance, (right, down) in product(DISTANCES, DIRECTIONS):
            left = x - width / 2 + right * (width / 2 + distance * height)
            top = y - height / 2 + down * (height / 2 + distance * height)
            box = Box(left, top, left + width, top + height)
            boxes.append(box)
            costs.append(round(sum(box.overlap(other) for other in self.boxes.values()) - box.overlap(frame)))
        last = self._sides.get(name, 0)
        side = self._sides[name] = min(range(len(boxes)), key=lambda side: (costs[side], side != last, side))
        return boxes[side]


@lru_cache(maxsize=256)
def _tag(name: str, size: float) -> Any:
    """Return a picture of a name on a dark ground."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size)
    width, height = round(font.getlength(name) + 2 / 3 * size), round(1.45 * size)
    tag = PillowImage.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(tag)
    pen.rounded_rectangle((0, 0, width - 1, height - 1), radius=size / 3, fill=(*DARK, 215))
    pen.text((width / 2, height / 2), name, fill=INK, font=font, anchor="mm")
    return tag

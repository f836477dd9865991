"""Pictures of what a robot does: videos, as every browser plays them, and contact sheets of an episode.

Write `with Video(path, fps=40) as video:` and in it `video.add(environment.render(), "pick(block1)")`.
"""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilevel.files import require_writable, write_atomically
from bilevel.symbolic.domain import BadInput

Image = NDArray[np.uint8]  # (height, width, 3), the top row first

ENCODER = {"crf": "20", "preset": "veryfast"}  # of quality: 0 is lossless, 51 the worst

LINE = 1 / 14  # height of a caption's line, as a part of the picture's
BELOW = 0.85  # lines below a picture are so much lower
SMALLEST = 0.6  # a long line is written smaller, down to this part of the usual size, before it is cut
DARK = (24, 27, 33)
OPACITY = 0.8
INK = (245, 246, 248)


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
        self._container: Any = None
        self._stream: Any = None

    def add(self, picture: Image, caption: str = "", below: int = 0) -> None:
        """Add the next picture, of the same size as the others. Its caption is written over its lowest part, or below
        it, where there is room for as many lines as `below` says.
        """
        if self._width is not None:
            picture = _narrowed(picture, self._width)
        if below:
            picture = with_lines_below(picture, caption, below)
        elif caption:
            picture = captioned(picture, caption)
        picture = _even(picture)
        height, width, _ = picture.shape
        if self._container is None:
            self._container = self._av.open(self._file.name, "w", format="mp4", options={"movflags": "faststart"})
            rate = Fraction(self.fps).limit_denominator(1000)
            self._stream = self._container.add_stream("libx264", rate=rate, options=self._encoder)
            self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        if (self._stream.width, self._stream.height) != (width, height):
            size = f"{self._stream.width} x {self._stream.height}"
            raise BadInput(f"{self.path}: a video of {size} pixels cannot take a picture of {width} x {height}")
        self._encode(self._av.VideoFrame.from_ndarray(picture, format="rgb24"))

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """Finish the video and put it at its path; after an error, what was there stays."""
        try:
            if error is None:
                if self._container is None:
                    raise BadInput(f"{self.path}: a video needs at least one picture")
                self._encode(None)
                write_atomically(self.path, Path(self._file.name).read_bytes())
        finally:
            with suppress(OSError):
                if self._container is not None:
                    self._container.close()
            self._file.close()

    def _encode(self, frame: Any) -> None:
        """Encode one more frame, or with `None` whatever the encoder still holds back, which is the end."""
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
            if frame is None:
                self._container.close()
        except OSError as error:
            raise BadInput(f"{self.path}: cannot be written: {error.strerror}") from None


def captioned(picture: Image, caption: str) -> Image:
    """Return the picture with the caption's lines on a dark strip over its lowest part."""
    height, width, _ = picture.shape
    ink = _ink(caption, width, max(12, round(LINE * height)))[-height:]
    strip = slice(height - len(ink), height)
    dimmed = (1 - OPACITY) * picture[strip] + OPACITY * np.array(DARK, np.float32)
    result: Image = picture.copy()
    result[strip] = (1 - ink) * dimmed + ink * np.array(INK, np.float32)
    return result


def with_lines_below(picture: Image, caption: str, lines: int) -> Image:
    """Return the picture with a dark strip below it that has room for so many lines, whatever the caption is."""
    height, width, _ = picture.shape
    padded = "\n".join([*caption.splitlines()[:lines], *[" "] * (lines - len(caption.splitlines()))])
    ink = _ink(padded, width, max(12, round(BELOW * LINE * height)))
    strip = (1 - ink) * np.array(DARK, np.float32) + ink * np.array(INK, np.float32)
    return np.concatenate([picture, strip.astype(np.uint8)])


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
        text, font = fitted(line, width - 2 * margin, 0.62 * line_height)
        draw.text((margin, margin // 2 + (number + 0.5) * line_height), text, fill=255, font=font, anchor="lm")
    coverage: NDArray[np.float32] = np.asarray(canvas, np.float32)[:, :, None] / np.float32(255)
    return coverage


def fitted(line: str, width: float, size: float) -> tuple[str, Any]:
    """Return the line and a font in which it is not wider; a line too long even for the smallest font loses its end."""
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    size *= min(1.0, max(SMALLEST, width / max(1.0, font.getlength(line))))
    font = ImageFont.load_default(size)
    while len(line) > 1 and font.getlength(line) > width:
        line = line[:-2] + "…"
    return line, font


def _narrowed(picture: Image, width: int) -> Image:
    """Return the picture at most so wide, every pixel the mean of those that it stands for."""
    from PIL import Image as PillowImage

    if picture.shape[1] <= width:
        return picture
    size = width, round(picture.shape[0] * width / picture.shape[1])
    return np.asarray(PillowImage.fromarray(picture).resize(size, PillowImage.Resampling.BOX), np.uint8)


def _even(picture: Image) -> Image:
    """Double an odd last row or column: colours are stored for two by two pixels."""
    height, width, _ = picture.shape
    return np.ascontiguousarray(np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge"))


# Contact sheets

PICTURES = 12
COLUMNS = 4
WIDTH = 1400  # pixels, as is all that follows
MARGIN, GAP = 28, 16
HEADLINE, DETAILS = 34, 18  # heights of letters
CAPTION, STEP = 19, 15
CAPTION_HEIGHT, LABEL_HEIGHT = 34, 26

PAPER, FAINT, FRAME = (255, 255, 255), (108, 114, 124), (208, 212, 218)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Tile:
    """A picture with what is being done, written below it, and when, on a label in its corner."""

    picture: Image
    when: str
    text: str


def thinned(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most so many of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]


def contact_sheet(headline: str, details: str, tiles: Sequence[Tile]) -> bytes:
    """Return a PNG with a headline, and below it a grid of pictures of one shape, each with its caption."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) // COLUMNS
    height = max((round(width * len(tile.picture) / tile.picture.shape[1]) for tile in tiles), default=0)
    top = MARGIN + HEADLINE + DETAILS + 2 * GAP
    rows = math.ceil(len(tiles) / COLUMNS)
    sheet = PillowImage.new("RGB", (WIDTH, top + rows * (height + CAPTION_HEIGHT + GAP) - GAP + MARGIN // 2), PAPER)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (MARGIN, MARGIN + HEADLINE / 2), headline, HEADLINE, DARK, WIDTH - 2 * MARGIN)
    _write(draw, (MARGIN, MARGIN + HEADLINE + GAP + DETAILS / 2), details, DETAILS, FAINT, WIDTH - 2 * MARGIN)
    for number, tile in enumerate(tiles):
        row, column = divmod(number, COLUMNS)
        x, y = MARGIN + column * (width + GAP), top + row * (height + CAPTION_HEIGHT + GAP)
        picture = PillowImage.fromarray(tile.picture)
        sheet.paste(picture.resize((width, height), PillowImage.Resampling.LANCZOS), (x, y))
        draw.rectangle((x, y, x + width - 1, y + height - 1), outline=FRAME)
        shown, font = fitted(tile.when, width - GAP, STEP)
        draw.rectangle((x, y, x + font.getlength(shown) + GAP, y + LABEL_HEIGHT), fill=PAPER, outline=FRAME)
        draw.text((x + GAP / 2, y + LABEL_HEIGHT / 2), shown, fill=FAINT, font=font, anchor="lm")
        _write(draw, (x, y + height + CAPTION_HEIGHT / 2), tile.text, CAPTION, DARK, width)
    data = io.BytesIO()
    sheet.save(data, "PNG", optimize=True)
    return data.getvalue()


def _write(draw: Any, at: tuple[float, float], text: str, size: float, colour: tuple[int, ...], width: int) -> None:
    """A line no wider than this, whose middle is at this height."""
    shown, font = fitted(text, width, size)
    draw.text(at, shown, fill=colour, font=font, anchor="lm")

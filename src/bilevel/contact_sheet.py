"""One episode in a dozen pictures: a PNG with a headline, and below it a grid of pictures, each with its caption."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bilevel.video import Image, fitted

PICTURES = 12
COLUMNS = 4
WIDTH = 1400  # pixels, as is all that follows
MARGIN, GAP = 28, 16
HEADLINE, DETAILS = 34, 18  # heights of letters
CAPTION, STEP = 19, 15
CAPTION_HEIGHT, LABEL_HEIGHT = 34, 26

PAPER, INK, FAINT, FRAME = (255, 255, 255), (24, 27, 33), (108, 114, 124), (208, 212, 218)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Tile:
    """A picture with what is being done, written below it, and when, on a label in its corner."""

    picture: Image
    when: str
    text: str


def thinned(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of the items, evenly spread, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]


def contact_sheet(headline: str, details: str, tiles: Sequence[Tile]) -> bytes:
    """The PNG; all pictures have the same shape."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    width = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) // COLUMNS
    height = max((round(width * len(tile.picture) / tile.picture.shape[1]) for tile in tiles), default=0)
    top = MARGIN + HEADLINE + DETAILS + 2 * GAP
    rows = math.ceil(len(tiles) / COLUMNS)
    sheet = PillowImage.new("RGB", (WIDTH, top + rows * (height + CAPTION_HEIGHT + GAP) - GAP + MARGIN // 2), PAPER)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (MARGIN, MARGIN + HEADLINE / 2), headline, HEADLINE, INK, WIDTH - 2 * MARGIN)
    _write(draw, (MARGIN, MARGIN + HEADLINE + GAP + DETAILS / 2), details, DETAILS, FAINT, WIDTH - 2 * MARGIN)
    for number, tile in enumerate(tiles):
        row, column = divmod(number, COLUMNS)
        x, y = MARGIN + column * (width + GAP), top + row * (height + CAPTION_HEIGHT + GAP)
        picture = PillowImage.fromarray(tile.picture)
        sheet.paste(picture.resize((width, height), PillowImage.Resampling.LANCZOS), (x, y))
        draw.rectangle((x, y, x + width - 1, y + height - 1), outline=FRAME)
        _label(draw, tile.when, x, y, width)
        _write(draw, (x, y + height + CAPTION_HEIGHT / 2), tile.text, CAPTION, INK, width)
    data = io.BytesIO()
    sheet.save(data, "PNG", optimize=True)
    return data.getvalue()


def _label(draw: Any, text: str, x: int, y: int, width: int) -> None:
    """In the upper left corner, on the colour of the paper."""
    shown, font = fitted(text, width - GAP, STEP)
    draw.rectangle((x, y, x + font.getlength(shown) + GAP, y + LABEL_HEIGHT), fill=PAPER, outline=FRAME)
    _write(draw, (x + GAP / 2, y + LABEL_HEIGHT / 2), text, STEP, FAINT, width - GAP)


def _write(draw: Any, at: tuple[float, float], text: str, size: float, colour: tuple[int, ...], width: int) -> None:
    """A line no wider than this, whose middle is at this height."""
    shown, font = fitted(text, width, size)
    draw.text(at, shown, fill=colour, font=font, anchor="lm")

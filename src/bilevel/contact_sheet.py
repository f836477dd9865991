"""One episode in a dozen pictures: a PNG with a headline, and below it a grid of pictures, each with its caption."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bilevel.video import Image, fitted, package

PICTURES = 12
COLUMNS = 4
WIDTH = 1400  # pixels, as is all that follows
MARGIN, GAP = 28, 16
HEADLINE, DETAILS = 34, 18  # heights of letters
CAPTION, STEP = 19, 15
CAPTION_HEIGHT = 34

PAPER, INK, FAINT, FRAME = (255, 255, 255), (24, 27, 33), (108, 114, 124), (208, 212, 218)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Tile:
    """A picture with what is written below it: on the left what is done, on the right, smaller, when."""

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
    package("PIL.ImageFont", "contact sheets")
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
        _caption(draw, tile, x, y + height + CAPTION_HEIGHT / 2, width)
    data = io.BytesIO()
    sheet.save(data, "PNG", optimize=True)
    return data.getvalue()


def _caption(draw: Any, tile: Tile, x: int, y: float, width: int) -> None:
    taken = _write(draw, (x + width, y), tile.when, STEP, FAINT, width // 2, anchor="rm")
    _write(draw, (x, y), tile.text, CAPTION, INK, width - round(taken) - GAP)


def _write(
    draw: Any, at: tuple[float, float], text: str, size: float, colour: Any, width: int, anchor: str = "lm"
) -> float:
    """A line no wider than this; how wide it became."""
    shown, font = fitted(text, width, size)
    draw.text(at, shown, fill=colour, font=font, anchor=anchor)
    return float(font.getlength(shown))

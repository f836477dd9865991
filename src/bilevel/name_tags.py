"""Names over the things in a picture, so that one can see which block block6 is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # (height, width, 3), the top row first
Places = Mapping[str, tuple[float, float]]  # for each name, the parts of the width and the height, from the top left

LETTERS, ON_A_SHEET = 1 / 42, 1 / 24  # height of letters, as a part of the picture's; on a sheet, it is made smaller
SMALLEST = 11.0  # pixels
DARK, INK, LINE = (24, 27, 33, 215), (245, 246, 248, 255), (24, 27, 33)
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))  # the best first
DISTANCES = (0.4, 1.6, 2.9)  # from a thing to its tag, in heights of a tag


class Box(NamedTuple):
    """Where a tag is, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that two have in common, in pixels."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


class NameTags:
    """Writes names into the pictures of one film. No tag covers another where there is room.

    A tag stays on its side of a thing for as long as nothing is in its way there, lest it jump about in a film.
    """

    def __init__(self, letters: float = LETTERS) -> None:
        """Letters are so high, as a part of the picture."""
        self._letters = letters
        self._sides: dict[str, int] = {}  # which of the possible boxes a tag had last

    def draw(self, picture: Image, places: Places) -> Image:
        """Return the picture with a tag for each place in it."""
        from PIL import Image as PillowImage
        from PIL import ImageDraw

        height, width, _ = picture.shape
        size = max(SMALLEST, self._letters * height)
        inside = {name: place for name, place in places.items() if all(0 <= part < 1 for part in place)}
        anchors = {name: (across * width, down * height) for name, (across, down) in inside.items()}
        canvas = PillowImage.fromarray(picture)
        pen = ImageDraw.Draw(canvas)
        boxes = self._arranged(anchors, size, Box(0, 0, width, height))
        for name, box in boxes.items():
            x, y = anchors[name]
            nearest = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
            pen.line([(x, y), nearest], fill=LINE, width=max(1, round(size / 10)))
        for name, box in boxes.items():
            tag = _tag(name, size)
            canvas.paste(tag, (round(box.left), round(box.top)), tag)
        return np.asarray(canvas, np.uint8)

    def _arranged(self, anchors: Mapping[str, tuple[float, float]], size: float, frame: Box) -> dict[str, Box]:
        """Find a box for each tag, one after the other from the front to the back: the first that covers least."""
        placed: dict[str, Box] = {}
        for name in sorted(anchors, key=lambda name: (-round(anchors[name][1] / size), name)):
            boxes = list(_boxes(anchors[name], _tag(name, size).size))
            others = [place for other, place in anchors.items() if other != name]
            costs: dict[int, tuple[float, float]] = {}
            for side in sorted(range(len(boxes)), key=lambda side: side != self._sides.get(name, 0)):
                costs[side] = _cost(boxes[side], placed, others, size, frame)
                if costs[side] == (0, 0):
                    break
            side = self._sides[name] = min(costs, key=costs.__getitem__)
            placed[name] = boxes[side]
        return placed


def _boxes(anchor: tuple[float, float], size: tuple[int, int]) -> Iterator[Box]:
    """The boxes that a tag of this size may have around its thing, the best first."""
    (x, y), (width, height) = anchor, size
    for distance in DISTANCES:
        for right, down in DIRECTIONS:
            left = x - width / 2 + right * (width / 2 + distance * height)
            top = y - height / 2 + down * (height / 2 + distance * height)
            yield Box(left, top, left + width, top + height)


def _cost(
    box: Box, placed: Mapping[str, Box], others: list[tuple[float, float]], size: float, frame: Box
) -> tuple[float, float]:
    """What a box covers: first of other tags or outside of the picture, then of other things."""
    area = (box.right - box.left) * (box.bottom - box.top)
    covered = sum(box.overlap(other) for other in placed.values()) + area - box.overlap(frame)
    near = sum(box.overlap(Box(x - size / 2, y - size / 2, x + size / 2, y + size / 2)) for x, y in others)
    return round(covered), round(near)


@lru_cache(maxsize=256)
def _tag(name: str, size: float) -> Any:
    """A name on a dark ground."""
    from PIL import Image as PillowImage
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size)
    margin = size / 3
    width, height = round(font.getlength(name) + 2 * margin), round(1.45 * size)
    tag = PillowImage.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(tag)
    pen.rounded_rectangle((0, 0, width - 1, height - 1), radius=size / 3, fill=DARK)
    pen.text((width / 2, height / 2), name, fill=INK, font=font, anchor="mm")
    return tag

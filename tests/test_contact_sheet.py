"""Contact sheets: which pictures are shown, where they are, and what is written below them."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PillowImage

from bilevel.video import COLUMNS, PAPER, WIDTH, Image, Tile, contact_sheet, thinned
from bilevel.video import DARK as INK

COLOURS = [(200, 30, 40), (30, 60, 190), (40, 160, 60), (220, 190, 30), (130, 50, 160)]


def plain(colour: tuple[int, int, int]) -> Image:
    return np.full((60, 80, 3), colour, np.uint8)


def pixels(png: bytes) -> NDArray[np.uint8]:
    return np.asarray(PillowImage.open(io.BytesIO(png), formats=["PNG"]).convert("RGB"))


def sheet(*colours: tuple[int, int, int], text: str = "pick(block1)") -> NDArray[np.uint8]:
    tiles = [Tile(plain(colour), f"step {number}", text) for number, colour in enumerate(colours)]
    return pixels(contact_sheet("blocks, 1 object", "the expert", tiles))


def box(image: NDArray[np.uint8], colour: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what has a colour."""
    rows, columns = np.nonzero((image == colour).all(axis=2))
    return int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max())


@pytest.mark.parametrize(
    ("number", "most", "kept"),
    [
        (0, 3, []),
        (2, 3, [0, 1]),
        (3, 3, [0, 1, 2]),
        (5, 3, [0, 2, 4]),
        (100, 4, [0, 33, 66, 99]),
        (21, 12, [0, 2, 4, 5, 7, 9, 11, 13, 15, 16, 18, 20]),
    ],
)
def test_thinning_is_even_and_keeps_both_ends(number: int, most: int, kept: list[int]) -> None:
    assert thinned(range(number), most) == kept


def test_pictures_lie_in_a_grid_in_their_order() -> None:
    image = sheet(*COLOURS)
    boxes = [box(image, colour) for colour in COLOURS]
    assert image.shape[1] == WIDTH
    assert len({(right - left, bottom - top) for left, top, right, bottom in boxes}) == 1
    first_row = boxes[:COLUMNS]
    assert len({top for _, top, _, _ in first_row}) == 1
    assert all(one[2] < other[0] for one, other in pairwise(first_row))
    assert boxes[COLUMNS][0] == boxes[0][0]
    assert boxes[COLUMNS][1] > boxes[0][3]


def test_captions_stand_below_their_pictures_and_stay_within_them() -> None:
    left, _, right, bottom = box(sheet(COLOURS[0]), COLOURS[0])
    for text in ("pick(block1)", "place(block1, place1) " * 5):
        below = sheet(COLOURS[0], text=text)[bottom + 3 :]
        written = np.flatnonzero((below == INK).all(axis=2).any(axis=0))
        assert left <= written.min() < left + 10
        assert written.max() <= right
        assert (below[:, right + 3 :] == PAPER).all()


def test_when_it_was_is_written_into_the_corner_of_its_picture() -> None:
    image = sheet(COLOURS[0])
    left, top, right, bottom = box(image, COLOURS[0])
    rows, columns = np.nonzero((image[top : bottom + 1, left : right + 1] != COLOURS[0]).any(axis=2))
    assert len(rows) > 20
    assert rows.max() < (bottom - top) / 4
    assert columns.max() < (right - left) / 3


def test_a_headline_stands_above_and_is_no_wider_than_the_sheet() -> None:
    png = contact_sheet("a long headline " * 40, "details", [Tile(plain(COLOURS[0]), "step 0", "pick(block1)")])
    image = pixels(png)
    top = box(image, COLOURS[0])[1]
    written = (image[: top - 3] != PAPER).any(axis=2)
    assert written.any()
    assert not written[:, -20:].any()


def test_no_pictures_at_all_are_a_headline() -> None:
    assert sheet().shape[1] == WIDTH

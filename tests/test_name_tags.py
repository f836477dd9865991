"""Names over the things in a picture: where they stand, and that they do not cover each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from bilevel.name_tags import Box, NameTags

GREY = np.full((480, 640, 3), 128, np.uint8)


class Noting(NameTags):
    """Notes where tags are."""

    boxes: dict[str, Box]

    def _arranged(self, *arguments: object) -> dict[str, Box]:
        self.boxes = super()._arranged(*arguments)  # type: ignore[arg-type]
        return self.boxes


def boxes(places: dict[str, tuple[float, float]], tags: Noting | None = None) -> dict[str, Box]:
    tags = tags or Noting()
    tags.draw(GREY, places)
    return tags.boxes


def test_a_tag_is_drawn_beside_its_thing_and_the_picture_is_left_alone() -> None:
    picture = NameTags().draw(GREY, {"block1": (0.5, 0.5)})
    rows, columns = np.nonzero((picture != GREY).any(axis=2))
    assert (GREY == 128).all()
    assert 200 < rows.mean() < 245
    assert 300 < columns.mean() < 340
    assert len(rows) > 300


def test_tags_do_not_cover_each_other_where_there_is_room() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        crowd = {f"block{number}": tuple(rng.uniform(0.3, 0.7, 2)) for number in range(15)}
        found = boxes(crowd)
        assert len(found) == 15
        assert all(one.overlap(other) == 0 for one, other in combinations(found.values(), 2))


def test_tags_stay_in_the_picture() -> None:
    corners = {"a-long-name": (0.0, 0.0), "another": (0.999, 0.0), "third": (0.0, 0.999), "fourth": (0.999, 0.999)}
    for box in boxes(corners).values():
        assert min(box.left, box.top, 640 - box.right, 480 - box.bottom) >= -1


def test_what_is_not_in_the_picture_has_no_tag() -> None:
    assert set(boxes({"left": (-0.1, 0.5), "nowhere": (np.nan, np.nan), "here": (0.5, 0.5)})) == {"here"}
    assert np.array_equal(NameTags().draw(GREY, {}), GREY)


def test_a_tag_stays_on_its_side_while_a_thing_moves() -> None:
    tags = Noting()
    together = boxes({"one": (0.5, 0.5), "two": (0.5, 0.52)}, tags)
    side = together["one"].top > 240
    apart = boxes({"one": (0.5, 0.5), "two": (0.9, 0.9)}, tags)
    assert (apart["one"].top > 240) == side
    assert apart["one"] == together["one"]

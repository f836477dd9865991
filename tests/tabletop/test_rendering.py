"""Pictures: what they show, that they change nothing, and what is said where none can be drawn.

Where OpenGL is missing, it must be said, and that is all that can be tested of pictures: `drawn` does so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tabletop import opengl
from bilevel.tabletop.rendering import QUALITIES, Image
from bilevel.tabletop.worlds.blocks import Blocks

PURE_GREEN = (0.0, 1.0, 0.0)


@cache
def can_draw() -> bool:
    return any(map(opengl.works, opengl.BACKENDS))


def drawn(world: Blocks) -> Image:
    """A picture; an empty one where it was rightly said that none can be drawn."""
    if can_draw():
        picture: Image = world.render()
        return picture
    with pytest.raises(BadInput, match="apt-get install libegl1"):
        world.render()
    return np.empty((0, 0, 3), np.uint8)


@pytest.fixture
def world() -> Iterator[Blocks]:
    made = Blocks(objects=2, render_mode="rgb_array")
    made.reset(seed=0)
    yield made
    made.close()


# What they show


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("size", [None, (96, 64)])
def test_a_picture_has_the_size_of_its_quality_or_that_asked_for(quality: str, size: tuple[int, int] | None) -> None:
    world = Blocks(objects=1, render_mode="rgb_array", quality=quality, picture_size=size)
    world.reset(seed=0)
    width, height = size or (QUALITIES[quality].width, QUALITIES[quality].height)
    picture = drawn(world)
    world.close()
    assert picture.dtype == np.uint8
    assert picture.shape == ((height, width, 3) if can_draw() else (0, 0, 3))


def seen_at(world: Blocks, x: float, y: float) -> tuple[float, float]:
    """The row and the column around which a block is seen."""
    world.simulation.paint("block1", PURE_GREEN)
    world.simulation.put(0, (x, y, 0.02))
    world.simulation.settle()
    red, green, blue = np.moveaxis(drawn(world).astype(int), 2, 0)
    rows, columns = np.nonzero((green > 100) & (red < 40) & (blue < 40))
    assert len(rows) > 100 or not can_draw()
    return float(np.mean(rows)), float(np.mean(columns))


def test_things_are_located_where_they_are_seen(world: Blocks) -> None:
    for x, y in ((0.2, 0.4), (-0.25, 0.6), (0.0, 0.45)):
        row, column = seen_at(world, x, y)
        if can_draw():
            quality = QUALITIES[world.quality]
            ((across, down),) = world.locate(world.simulation.blocks()[:1])
            assert abs(across * quality.width - column) < 6
            assert abs(down * quality.height - row) < 6


def test_what_is_located_is_found_again_at_its_height(world: Blocks) -> None:
    points = np.array([[0.2, 0.4, 0.02], [-0.3, 0.7, 0.15], [0.0, 0.5, 0.0]])
    if len(drawn(world)):
        assert world._canvas is not None
        assert np.allclose(world._canvas.unproject(world.locate(points), points[:, 2]), points, atol=1e-6)


def test_the_arm_is_grey_or_as_red_as_metaworlds() -> None:
    """What was trained on MetaWorld knows a red arm; no block of this one is red."""
    shares = []
    for quality in ("fast", "metaworld"):
        world = Blocks(objects=1, render_mode="rgb_array", quality=quality, camera="corner", picture_size=(96, 96))
        world.reset(seed=0)
        for name in ("block1", "place1"):
            world.simulation.paint(name, PURE_GREEN)
        red, green, blue = np.moveaxis(drawn(world).astype(int), 2, 0)
        shares.append(np.sum((red > 1.5 * green + 10) & (red > 1.5 * blue + 10)) / max(1, red.size))
        world.close()
    assert shares[0] < 0.01 < 0.03 < shares[1] or not can_draw()


# What they leave alone


def test_drawing_changes_nothing(world: Blocks) -> None:
    other = Blocks(objects=2)
    other.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        control = rng.uniform(-1, 1, 4).astype(np.float32)
        world.step(control)
        drawn(world)
        other.step(control)
    saved, expected = world.save(), other.save()
    assert saved.keys() == expected.keys()
    assert all(np.array_equal(saved[key], expected[key]) for key in saved)


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"render_mode": "ascii"}, "unknown render mode 'ascii'; the known one: rgb_array"),
        ({"quality": "best"}, "unknown picture quality 'best'; known qualities: fast, smooth, good"),
        ({"picture_size": (8, 480)}, "a picture has 16 to 4096 pixels across and down, not 8 and 480"),
    ],
)
def test_unknown_choices_are_refused_when_the_world_is_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Blocks(**arguments)

"""Whatever is drawn, things lie within reach and so far apart that open fingers fit between them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bilevel.tabletop.layout import APART, WORK_AREA, clear_of, draw, grid, stack

seeds = st.integers(0, 2**32)
points = st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(0.2, 0.8)), max_size=8).map(lambda p: stack(p))  # type: ignore[arg-type]


@given(seeds, st.integers(1, 55))
def test_places_are_within_reach_and_apart(seed: int, count: int) -> None:
    places = draw(np.random.default_rng(seed), count, grid())
    assert places.shape == (count, 2)
    assert (places > WORK_AREA[0]).all()
    assert (places < WORK_AREA[1]).all()
    x, y = np.abs(places[:, None] - places[None]).transpose(2, 0, 1)
    assert ((x >= APART[0]) | (y >= APART[1]) | np.eye(count, dtype=bool)).all()


@given(points)
def test_exactly_what_nothing_is_near_is_clear(obstacles: np.typing.NDArray[np.float64]) -> None:
    free = clear_of(grid(), obstacles)
    for place in grid():
        blocked = any(
            abs(place - obstacle)[0] < APART[0] and abs(place - obstacle)[1] < APART[1] for obstacle in obstacles
        )
        assert blocked != (free == place).all(axis=1).any()

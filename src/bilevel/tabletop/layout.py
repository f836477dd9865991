"""Where things may lie: a jittered grid whose places are all within reach and far enough apart for open fingers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COLUMNS = np.linspace(-0.4, 0.4, 11)  # metres; 8 cm apart
ROWS = np.linspace(0.31, 0.69, 5)  # 9.5 cm apart, as the fingers open along y; the arm reaches no further out
JITTER = (0.008, 0.006)  # in x and in y
APART = (0.06, 0.07)  # what lies at least so far apart in x or in y does not touch, nor is it touched by the fingers

WORK_AREA = np.array([[-0.46, 0.28], [0.46, 0.74]], np.float32)  # lowest and highest x and y of what can be grasped


def grid(columns: Floats = COLUMNS, rows: Floats = ROWS) -> Floats:
    """(places, 2): every place of a grid."""
    return np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)


def jittered(places: Floats, rng: np.random.Generator, jitter: tuple[float, float] = JITTER) -> Floats:
    """Return the places, each moved a little at random."""
    return places + rng.uniform(-1, 1, places.shape) * jitter


def draw(rng: np.random.Generator, count: int, places: Floats) -> Floats:
    """(count, 2): so many of the places at random, each a little off."""
    return jittered(rng.permutation(places)[:count], rng)


def clear_of(
    places: Floats, centres: Floats, half_widths: float | Floats = 0.0, apart: tuple[float, float] = APART
) -> Floats:
    """Those places at which nothing is in the way; obstacles have a centre and may be wide along x."""
    if len(centres) == 0:
        return places
    x_apart = np.abs(places[:, None, 0] - centres[None, :, 0]) - half_widths >= apart[0]
    y_apart = np.abs(places[:, None, 1] - centres[None, :, 1]) >= apart[1]
    return places[(x_apart | y_apart).all(axis=1)]


def stack(*groups: Floats | Sequence[Floats]) -> Floats:
    """The places of several groups as one array; empty groups are welcome."""
    return np.concatenate([np.asarray(group, float).reshape(-1, 2) for group in groups])


def spots_aside(places: Floats, obstacles: Floats, half_widths: float | Floats = 0.0) -> Floats:
    """Those places at which no obstacle is, in a random order that only depends on where the obstacles are.

    So it need not be saved; and a network that has seen few blocks has seen the first free spot everywhere.
    """
    rng = np.random.default_rng(np.frombuffer(obstacles.astype(np.float32).tobytes(), np.uint32))
    return rng.permutation(clear_of(places, obstacles, half_widths))

"""Trays: strips painted on the table, with a row of spots along x. What is seen of a tray is its next free spot."""

from __future__ import annotations

import numpy as np

from bilevel.tabletop import furniture as scene
from bilevel.tabletop.layout import Floats
from bilevel.tabletop.measurements import holds, remembered, stands
from bilevel.tabletop.observation import Array

SPOT_TAKEN = 0.035  # metres, in x and in y: a spot is taken by a block as near as this
HALF_WIDTH = 0.03


def free_spots(first_spots: Floats, spots: int, pitch: float, blocks: Array, agent: Array) -> Floats:
    """(trays, 3): for each tray the first of its spots on which nothing stands."""
    standing = blocks[stands(blocks, holds(agent, blocks)), :2]
    return _free(first_spots, np.arange(spots, dtype=float) * pitch, standing)


@remembered
def _free(first_spots: Floats, along: Floats, standing: Array) -> Floats:
    """(trays, 3): the first free spot of each tray; spots lie `along` x, (spots,), from the first."""
    x, y = first_spots[:, :1] + along, first_spots[:, 1]  # (trays, spots), (trays,)
    beside = np.abs(standing[:, 0] - x[..., None]) < SPOT_TAKEN  # (trays, spots, standing)
    in_row = np.abs(standing[:, 1] - y[:, None, None]) < SPOT_TAKEN  # (trays, 1, standing)
    free = ~(beside & in_row).any(axis=2)
    first = x[np.arange(len(x)), free.argmax(axis=1)]
    return np.stack([first, y, np.full(len(y), scene.SPOT)], axis=1)

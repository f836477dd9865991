"""Trays: strips painted on the table, with a row of spots along x. What is seen of a tray is its next free spot."""

from __future__ import annotations

import numpy as np

from bilevel.environments import scene
from bilevel.environments.layout import Floats
from bilevel.environments.measurements import holds, stands
from bilevel.environments.observation import Array, Bools

SPOT_TAKEN = 0.035  # metres, in x and in y: a spot is taken by a block as near as this
HALF_WIDTH = 0.03


def free_spots(first_spots: Floats, spots: int, pitch: float, blocks: Array, agent: Array) -> Floats:
    """(trays, 3): for each tray the first of its spots on which nothing stands."""
    all_spots = _spots(first_spots, spots, pitch)
    free = ~_taken(all_spots, blocks, stands(blocks, holds(agent, blocks)))
    return np.asarray(all_spots[np.arange(len(first_spots)), free.argmax(axis=1)])


def _spots(first_spots: Floats, spots: int, pitch: float) -> Floats:
    """(trays, spots, 3): all spots of each tray."""
    result = np.full((len(first_spots), spots, 3), scene.SPOT)
    result[:, :, :2] = first_spots[:, None]
    result[:, :, 0] += pitch * np.arange(spots)
    return result


def _taken(spots: Floats, blocks: Array, standing: Bools) -> Bools:
    """(trays, spots): on which spots something stands."""
    offset = np.abs(blocks[:, :2] - spots[:, :, None, :2])  # (trays, spots, blocks, 2)
    return np.asarray(((offset < SPOT_TAKEN).all(axis=3) & standing).any(axis=2))

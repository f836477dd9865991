"""What is seen of a tray is the first of its spots on which nothing stands."""

from __future__ import annotations

import numpy as np

from bilevel.tabletop.measurements import holds, stands
from bilevel.tabletop.trays import free_spots
from bilevel.tasks.scene import Array

TRAYS = np.array([[0.0, 0.4], [0.1, 0.6]])
PITCH = 0.05
OPEN_HAND = np.array([0.0, 0.5, 0.2, 1.0], np.float32)


def free(*blocks: tuple[float, float, float], agent: Array = OPEN_HAND, spots: int = 3) -> list[list[float]]:
    where = np.array(blocks, np.float32).reshape(-1, 3)
    found = free_spots(TRAYS, np.arange(spots, dtype=float) * PITCH, where[stands(where, holds(agent, where)), :2])
    return [[round(float(x), 3), round(float(y), 3)] for x, y, _ in found]


def test_an_empty_tray_is_seen_at_its_first_spot() -> None:
    assert free() == TRAYS.tolist()


def test_spots_are_taken_one_after_the_other() -> None:
    assert free((0.01, 0.4, 0.02)) == [[0.05, 0.4], [0.1, 0.6]]
    assert free((0.0, 0.4, 0.02), (0.055, 0.41, 0.02)) == [[0.1, 0.4], [0.1, 0.6]]
    assert free((0.05, 0.4, 0.02)) == TRAYS.tolist()


def test_a_block_between_two_spots_takes_both() -> None:
    assert free((0.025, 0.4, 0.02)) == [[0.1, 0.4], [0.1, 0.6]]


def test_a_full_tray_is_seen_at_its_first_spot() -> None:
    assert free((0.0, 0.4, 0.02), (0.05, 0.4, 0.02), spots=2) == TRAYS.tolist()


def test_blocks_in_the_air_or_in_hand_take_no_spot() -> None:
    assert free((0.0, 0.4, 0.05)) == TRAYS.tolist()
    holding = np.array([0.0, 0.4, 0.04, 0.47], np.float32)
    assert free((0.0, 0.4, 0.02), agent=holding) == TRAYS.tolist()
    assert free((0.0, 0.4, 0.02), agent=np.array([0.0, 0.4, 0.04, 0.9], np.float32)) == [[0.05, 0.4], [0.1, 0.6]]

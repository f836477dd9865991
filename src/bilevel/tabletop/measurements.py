"""Relations between things on the table, read off what is seen. All of them work on many things at once.

Their limits are chosen so that the relations that one action changes change at the same step: a block that is held is
nowhere else, and it is no longer held exactly when the fingers have let go of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bilevel.tabletop.furniture import BOX, SPOT
from bilevel.tabletop.layout import clear_of
from bilevel.tabletop.observation import SPAN, Bools
from bilevel.tasks.scene import Array

GRASP_HEIGHT = 0.02  # the hand's centre is so far above that of a block it holds
PRESSED = 0.012  # travel of a button

_GRASP_POINT = np.array([0.0, 0.0, GRASP_HEIGHT], np.float32)

Indices = NDArray[np.int64]

_MEMORY = 16  # answers
_Relation = TypeVar("_Relation", bound=Callable[..., NDArray[Any]])


# Where relations begin to hold; lengths are in metres.
GRIP = 0.58  # fingers closer than this hold what is between them; around a block they stop at 0.46 to 0.49
# How far off the grasp point a held block may be: along x, across the fingers, it swings while it is carried, and they
# hold it until half a block and half a finger, 2 and 1.5 cm, are between the two.
REACH = np.array([0.035, 0.03, 0.035], np.float32)
LOW = 0.035  # the centre of a block that stands on the table is at 0.02
NEAR = 0.03  # from the middle of a place, in xy
TRAY_MARGIN = 0.024  # how far from a tray's middle line, and beyond the centre of its outermost spot
IN_BOX = np.array([BOX[0], BOX[1], 0.06], np.float32)  # how far from the middle of the box a block in it may be
LID_SHUT, LID_OPEN = 0.006, 0.078  # travel of a lid that has arrived at either end


def remembered(relation: _Relation) -> _Relation:
    """Keep a function's last few answers to the same arrays; it must be a function of these alone.

    The world and its labels ask the same of each observation, and much of what is seen stays as it is for many steps.
    """
    answers: dict[tuple[object, ...], NDArray[Any]] = {}

    @wraps(relation)
    def answer(*arrays: NDArray[Any]) -> NDArray[Any]:
        key = tuple([array.tobytes() for array in arrays])
        known = answers.get(key)
        if known is None:
            if len(answers) >= _MEMORY:
                answers.clear()
            known = answers[key] = relation(*arrays)
            known.setflags(write=False)  # it is shared
        return known

    return cast(_Relation, answer)


@remembered
def holds(agent: Array, blocks: Array) -> Bools:
    """(blocks,): which block is between closed fingers; the nearest one, if several are."""
    result = np.zeros(len(blocks), bool)
    if agent[3] < GRIP:
        offset = np.abs(blocks + (_GRASP_POINT - agent[:3]))
        caged = np.flatnonzero((offset < REACH).all(axis=1))
        if len(caged) > 1:
            caged = caged[offset[caged].sum(axis=1).argmin()]
        result[caged] = True
    return result


def near(first: Array, second: Array) -> Bools:
    """Which points, (..., 3), are near each other in xy."""
    x, y = first[..., 0] - second[..., 0], first[..., 1] - second[..., 1]
    result: Bools = x * x + y * y < NEAR * NEAR
    return result


def stands_on(blocks: Array, standing: Bools, places: Array) -> Bools:
    """(blocks, places): which of the standing blocks is on which place."""
    return np.logical_and(standing[:, None], near(blocks[:, None], places[None]))


def stands_on_own_tray(blocks: Array, held: Bools, trays: Array, own: Bools) -> Bools:
    """(blocks, trays): which blocks stand on a tray of their own; `own`, of the same shape, says which trays are.

    `trays` holds all their features.
    """
    standing = stands(blocks, held)
    return _on_own_tray(standing, blocks[standing, :2], trays[:, 1], trays[:, SPAN], own)


@remembered
def _on_own_tray(standing: Bools, where: Array, y: Array, ends: Array, own: Bools) -> Bools:
    """The same from `where` standing blocks are, (standing, 2), which is all that counts; these rarely move."""
    (start, end), margin = ends.T, TRAY_MARGIN
    lowest, highest = np.stack([start, y], axis=1) - margin, np.stack([end, y], axis=1) + margin
    result = np.zeros_like(own)
    result[standing] = ((where[:, None] > lowest) & (where[:, None] < highest)).all(axis=2) & own[standing]
    return result


def stands(blocks: Array, held: Bools) -> Bools:
    """(blocks,): which blocks stand on the table."""
    result: Bools = (blocks[:, 2] < LOW) & ~held
    return result


def inside(blocks: Array, held: Bools, box: Array) -> Bools:
    """(blocks,): which blocks are in a box that stands here."""
    result: Bools = (np.abs(blocks - box) < IN_BOX).all(axis=1) & ~held
    return result


def same_colour(first: Array, second: Array) -> Bools:
    """(first, second): which pairs have the same colour."""
    result: Bools = np.abs(first[:, None] - second[None]).sum(axis=2) < 0.02
    return result


@remembered
def colour_index(things: Array, colours: Array) -> Indices:
    """(things,): for each thing the colour that it has, -1 if it is none of these."""
    same = same_colour(things, colours)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def is_open(travel: float, filled: bool) -> bool:
    """Whether a lid counts as open: one that is to be reached through must be wide open, any other not quite shut.

    So there is no stretch of its way on which opening or closing it has already had its effect, or neither.
    """
    return travel > (LID_OPEN if filled else LID_SHUT)


def spot_aside(spots: NDArray[np.float64], blocks: Array, agent: Array) -> NDArray[np.float64]:
    """(3,): the first of the spots, (spots, 2), at which there is room for the block in hand, or any other."""
    return _free_spot(spots, blocks[~holds(agent, blocks), :2].astype(float))


@remembered
def _free_spot(spots: NDArray[np.float64], lying: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,): the first of the spots at which nothing lies; where something lies at all of them, the roomiest."""
    free = clear_of(spots, lying)
    if not len(free):
        distances = np.linalg.norm(spots[:, None] - lying[None], axis=2)
        free = spots[[distances.min(axis=1).argmax()]]
    return np.append(free[0], SPOT)

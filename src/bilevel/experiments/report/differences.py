"""Why some results differ from the paper's: what is known about it, in a sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bilevel.experiments.report.scores import Cell
from bilevel.experiments.reproduction.settings import OURS

WORTH_A_WORD = 0.15

_CLONED = (
    "Other worlds, and another expert. The paper finds its failures mostly in the low level; our experts press on at a "
    "goal instead of fading out, and a network that copies them does not stop short of it."
)
_GRASPS = (
    "It is as good as its network and its planner. Here the network, which is BISON's, grasps and places reliably, and "
    "the planner answers in a fraction of a second: each surprise costs one more plan, not the episode."
)
_TELEPORTS = (
    "It fails as soon as a block teleports. How often that happens is a choice of ours, on average once in 2,000 steps "
    "for a block at its goal, and quick skills leave less time for it."
)
_KNOWN_OUTCOMES = (
    "All that can happen in Colour is in the domain, so a strong-cyclic policy is ready for it; what remains is the "
    "network's doing, and ours is reliable."
)
_HOPE = "The plan hopes for one of the colours that may come up, and with few blocks that hope is sometimes right."
_TOLD_MORE = (
    "A stronger rival than the paper's: it is told which of several like objects is first by name, its global node "
    "remembers, and it takes maxima over nodes instead of sums, so it loses less with more objects."
)
_ONE_AT_A_TIME = (
    "A stronger rival than the paper's, for which Gacha is easy: one block is dealt with at a time, and what to do "
    "next depends on a few facts, however many objects there are."
)
_SEES_ALL = (
    "A stronger rival than the paper's: it sees whole observations, colours and the order of names included, which is "
    "enough for a few objects."
)

# What is known where ours is higher, by method and world.
HIGHER: Mapping[tuple[str, str], str] = {
    **{("bison", world): _CLONED for world in ("blocks", "factory", "colour", "gacha")},
    ("det-plan", "blocks"): _TELEPORTS,
    ("det-plan", "colour"): _HOPE,
    ("det-replan", "blocks"): _GRASPS,
    ("det-replan", "factory"): _GRASPS,
    ("det-replan", "colour"): _GRASPS,
    ("ndt-plan", "blocks"): _TELEPORTS,
    ("ndt-plan", "colour"): _KNOWN_OUTCOMES,
    ("ndt-replan", "blocks"): _GRASPS,
    ("ndt-replan", "factory"): _GRASPS,
    ("ndt-replan", "colour"): _GRASPS,
    **{("pddl-nn", world): _TOLD_MORE for world in ("blocks", "factory", "colour")},
    ("pddl-nn", "gacha"): _ONE_AT_A_TIME,
    **{("pure-nn", world): _SEES_ALL for world in ("blocks", "factory", "colour", "gacha")},
}
# And more precisely of some tasks.
OF_TASKS: Mapping[tuple[str, str], str] = {
    ("ndt-plan", "colour-noisy"): (
        "A block that leaves its tray is not in the domain, and ends it. How often that happens is a choice of ours, "
        "and with few blocks it often does not."
    ),
}
_PRACTISED = " Here it has practised, too, which the paper's has not."
_UNKNOWN = "Higher than the paper's, and we know no reason for it."
_LOWER = (
    "Lower than the paper's. The worlds and their noise are ours; why it is lower here we do not know, and the causes "
    "of failure are below."
)
_LOWER_QUICK = "Lower than the paper's, as was to be expected: this is the small version, learned from less."


@dataclass(frozen=True)
class Difference:
    """Why a method differs on some tasks."""

    cells: Sequence[Cell]
    why: str


def differences(rows: Sequence[Sequence[Cell]], quick: bool) -> dict[str, list[Difference]]:
    """Return by method all cells that differ by more than what is worth a word, those with the same reason together."""
    found = {}
    for row in rows:
        by_reason: dict[str, list[Cell]] = {}
        for cell in row:
            if cell.task and differs(cell):
                by_reason.setdefault(reason(cell, cell.task, quick), []).append(cell)
        if by_reason:
            found[row[0].entrant.title] = [Difference(cells, why) for why, cells in by_reason.items()]
    return found


def differs(cell: Cell) -> bool:
    """Whether the rate is further from the paper's than what is worth a word."""
    if cell.score is None or cell.paper is None:
        return False
    return round(abs(cell.rate - cell.paper), 6) > WORTH_A_WORD


def reason(cell: Cell, task: str, quick: bool) -> str:
    """Return why this cell differs, as far as we know."""
    if cell.rate < (cell.paper or 0):
        return _LOWER_QUICK if quick else _LOWER
    method, world = cell.entrant.method, task.removesuffix("-noisy")
    known = OF_TASKS.get((method, task)) or HIGHER.get((method, world), _UNKNOWN)
    return known + (_PRACTISED if cell.entrant.recipe == OURS else "")

"""Why some results differ from the paper's: what is known about it, in a sentence each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from bilevel.experiments.report.scores import Cell
from bilevel.experiments.reproduction.settings import OURS

WORTH_A_WORD = 0.15

_REFINED = " Here DAgger has refined it, too, which the paper does not do."
_UNKNOWN = "Higher than the paper's, and we know no reason for it."
_LOWER = (
    "Lower than the paper's. The worlds and their noise are ours; why it is lower here we do not know, and the causes "
    "of failure are below."
)
_LOWER_QUICK = "Lower than the paper's, as was to be expected: this is the small version, learned from less."


def _known() -> Mapping[tuple[str, str], str]:
    """Return what is known where ours is higher, by method and by world or, more precisely, by task."""
    text = (files("bilevel.experiments.report") / "assets" / "differences.json").read_text(encoding="utf-8")
    return {
        (method, world): why
        for method, reasons in json.loads(text).items()
        for worlds, why in reasons.items()
        for world in worlds.split(", ")
    }


HIGHER = _known()


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
            found[row[0].variant.title] = [Difference(cells, why) for why, cells in by_reason.items()]
    return found


def differs(cell: Cell) -> bool:
    """Whether the rate is further from the paper's than what is worth a word."""
    return bool(cell.score) and cell.paper is not None and round(abs(cell.rate - cell.paper), 6) > WORTH_A_WORD


def reason(cell: Cell, task: str, quick: bool) -> str:
    """Return why this cell differs, as far as we know."""
    if cell.rate < (cell.paper or 0):
        return _LOWER_QUICK if quick else _LOWER
    method, world = cell.variant.method, task.removesuffix("-noisy")
    known = HIGHER.get((method, task)) or HIGHER.get((method, world), _UNKNOWN)
    return known + (_REFINED if cell.variant.preset == OURS else "")

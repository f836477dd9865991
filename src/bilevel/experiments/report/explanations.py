"""Where results differ from the paper's, and which experiments that change one thing explain it.

A difference is named where it is large and the paper's rate is outside our interval. It is explained only by two
results that differ in one thing, the second of which is nearer to the paper, by a difference whose interval leaves out
0. `explanations.json` lists such experiments; their numbers are looked up, not written down. All else is unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bilevel.experiments.intervals import Interval
from bilevel.experiments.report.hard_results import HardResults
from bilevel.experiments.report.hard_results import score as points_score
from bilevel.experiments.report.scores import Cell, Results, Score, score
from bilevel.experiments.report.wording import asset, interval, rate
from bilevel.json_files import decode

LARGE = 0.15  # a smaller difference from the paper is not named
UNEXPLAINED = "Unexplained: no experiment that changes one thing shows why."
EXPLANATIONS = "explanations.json"


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a result is found: a row of the table, maybe under a condition.

    That is an axis of the hard suite and a value, such as `teleports 0.001`, or the `learning rate` of another table.
    """

    row: str | None = None  # that of the cell itself, unless it is said
    condition: str = ""


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may explain differences of some rows on some tasks, and the two results that would show it."""

    rows: Sequence[str]
    tasks: Sequence[str]
    claim: str  # what was changed, as the subject of a sentence
    changed: Place  # the result with this one thing changed
    usual: Place = Place()  # the result without


Lookup = Callable[[str, str, str], Score | None]  # from a row, a task and a condition to what was measured


def known_explanations() -> list[Explanation]:
    """Return the experiments that are looked for."""
    return decode(asset(EXPLANATIONS), list[Explanation], EXPLANATIONS)


def in_table(results: Results) -> Lookup:
    """Return what finds the rows of a table, which have no condition."""

    def look_up(row: str, task: str, condition: str) -> Score | None:
        return score([one for one in results.rows(task=task) if one.variant == row]) if not condition else None

    return look_up


def at_learning_rate(results: Results) -> Lookup:
    """Return what finds the rows of a table that was measured at another learning rate, which is their condition."""
    look_up, known = in_table(results), f"learning rate {results.findings.about.experiment.learning_rate:g}"
    return lambda row, task, condition: look_up(row, task, "") if condition == known else None


def in_curves(results: HardResults) -> Lookup:
    """Return what finds the points of the hard suite, whose condition is the name of an axis and a value along it."""
    known = {
        (variant.name, place.task, f"{axis.name} {value:g}"): points_score(variant, points)
        for axis in results.axes
        for place, curves in results.curves(axis).items()
        for variant, by_value in curves.items()
        for value, points in by_value.items()
    }
    return lambda row, task, condition: known.get((row, task, condition))


def first_of(*lookups: Lookup) -> Lookup:
    """Return what asks one after the other, until one of them knows."""

    def look_up(row: str, task: str, condition: str) -> Score | None:
        return next((found for one in lookups if (found := one(row, task, condition))), None)

    return look_up


def differences(
    results: Results, look_up: Lookup | None = None, explanations: Sequence[Explanation] | None = None
) -> dict[str, dict[str, list[Cell]]]:
    """Return by method, then by what explains it, all cells that differ from the paper."""
    look_up = look_up or in_table(results)
    tried = known_explanations() if explanations is None else explanations
    found: dict[str, dict[str, list[Cell]]] = {}
    for cell in (cell for row in results.cells for cell in row if differs(cell)):
        found.setdefault(cell.variant.title, {}).setdefault(_explained(cell, look_up, tried), []).append(cell)
    return found


def differs(cell: Cell) -> bool:
    """Whether a rate on a task is further from the paper's than what is worth a word, and the interval says so, too."""
    if cell.task is None or cell.score is None or cell.paper is None:
        return False
    low, high = cell.score.interval
    return round(abs(cell.rate - cell.paper), 6) > LARGE and not low <= cell.paper <= high


def _explained(cell: Cell, look_up: Lookup, explanations: Sequence[Explanation]) -> str:
    """Return what explains a difference; and where nothing does, what was tried."""
    assert cell.task is not None
    shown: list[str] = []
    tried: list[str] = []
    for one in explanations:
        if cell.variant.name not in one.rows or cell.task not in one.tasks:
            continue
        usual, changed = (
            look_up(place.row or cell.variant.name, cell.task, place.condition) for place in (one.usual, one.changed)
        )
        if usual and changed:
            gain = changed.less(usual)
            told = f"{one.claim}: {_shift(usual, changed, gain)}."
            (shown if _is_nearer(usual, changed, gain, cell) else tried).append(told)
    if shown:
        return " ".join(shown)
    return " ".join([UNEXPLAINED, *(f"Tried, and no nearer to the paper: {told}" for told in tried)])


def _shift(usual: Score, changed: Score, gain: Interval) -> str:
    low, high = gain
    return (
        f"{rate(changed.rate)} ({interval(changed.interval)}) instead of {rate(usual.rate)}, a difference of "
        f"{changed.rate - usual.rate:+.2f} ({low:+.2f} to {high:+.2f})"
    )


def _is_nearer(usual: Score, changed: Score, gain: Interval, cell: Cell) -> bool:
    """Whether a change leads from our rate towards the paper's, as its interval has it, and not as far beyond."""
    assert cell.paper is not None
    low, high = gain
    leads_there = high < 0 if cell.rate > cell.paper else low > 0
    return leads_there and abs(changed.rate - cell.paper) < abs(usual.rate - cell.paper)

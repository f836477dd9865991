"""The outcome in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from bilevel.experiments.report.scores import REFERENCE, Cell, cells, tasks_in
from bilevel.experiments.report.wording import interval, listed, per_cent, plural, rate
from bilevel.experiments.reproduction.rows import Findings
from bilevel.experiments.reproduction.settings import BISON, PAPER, Entrant
from bilevel.tabletop.tasks import TASKS


@dataclass(frozen=True)
class Number:
    """A large number with what it is."""

    value: str
    text: str


def outcome(findings: Findings) -> str:
    """One sentence: how BISON did, and who came next."""
    totals = _totals(findings)
    if not totals:
        return "No method has been run on all tasks that were begun: there is no total yet."
    bison = [cell for cell in totals if cell.entrant.method == BISON]
    rivals = [cell for cell in totals if cell.entrant.method != BISON and cell.entrant.name != REFERENCE]
    sentences = [_bison(findings, _best(bison))] if bison else []
    if rivals:
        best = _best(rivals)
        names = listed([in_text(cell.entrant) for cell in rivals if _rate(cell) == _rate(best)])
        rate = per_cent(_rate(best))
        sentences.append(
            f"the best of its rivals, {names}, {rate} of as many"
            if bison
            else f"{names} solves {rate} of all episodes, the most of those that were run"
        )
    told = "; ".join(sentences) or "only the expert has been run"
    return f"{told[0].upper()}{told[1:]}."


def _bison(findings: Findings, cell: Cell) -> str:
    assert cell.score is not None
    where = f"the {_number(len(tasks_in(findings)))} tasks" if len(tasks_in(findings)) > 1 else tasks_in(findings)[0]
    return (
        f"{in_text(cell.entrant)} solves {cell.score.successes:,} of {cell.score.episodes:,} episodes of {where} "
        f"(95% interval {interval(cell.score.interval)})"
    )


def in_text(entrant: Entrant) -> str:
    """Its name within a sentence."""
    name, comma, how = entrant.title.partition(", ")
    return f"{name} {'in the' if entrant.recipe == PAPER else 'by'} {how}" if comma else name


def _number(number: int) -> str:
    names = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    return names[number] if number < len(names) else str(number)


def numbers(findings: Findings) -> list[Number]:
    """What to show large at the top."""
    totals = _totals(findings)
    bison = [cell for cell in totals if cell.entrant.method == BISON]
    rivals = [cell for cell in totals if cell.entrant.method != BISON and cell.entrant.name != REFERENCE]
    found = []
    if bison:
        best = _best(bison)
        found.append(Number(rate(_rate(best)), f"success of {in_text(best.entrant)}"))
        if len(tasks_in(findings)) == len(TASKS) and best.paper is not None:
            found.append(Number(rate(best.paper), "BISON in the paper"))
    if rivals:
        best = _best(rivals)
        found.append(Number(rate(_rate(best)), f"the best rival, {in_text(best.entrant)}"))
    episodes = sum(row.episodes for row in findings.rows)
    found.append(Number(f"{episodes:,}", f"episodes of {plural(len(tasks_in(findings)), 'task')}"))
    return found


def _totals(findings: Findings) -> list[Cell]:
    return [row[-1] for row in cells(findings) if row[-1].score] if findings.rows else []


def _best(found: list[Cell]) -> Cell:
    """The first of those with the highest rate."""
    return max(found, key=_rate)


def _rate(cell: Cell) -> float:
    return cell.score.rate if cell.score else 0.0

"""The outcome in a few words and a few large numbers."""

from __future__ import annotations

from bilevel.experiments.paper import TASKS
from bilevel.experiments.report.scores import REFERENCE, Cell, Results
from bilevel.experiments.report.wording import interval, listed, per_cent, plural, rate
from bilevel.experiments.reproduction.settings import PAPER, Variant
from bilevel.policies.policy_folder import BISON

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def outcome(results: Results) -> str:
    """Return one sentence: how BISON did, and who came next."""
    bison, rivals = _totals(results)
    sentences = [_bison(results, bison)] if bison else []
    if rivals:
        best = max(cell.rate for cell in rivals)
        names = listed([in_text(cell.variant) for cell in rivals if cell.rate == best])
        sentences.append(
            f"the best of its rivals, {names}, {per_cent(best)} of as many"
            if bison
            else f"{names} solves {per_cent(best)} of all episodes, the most of those that were run"
        )
    if not sentences and not any(row[-1].score for row in results.cells):
        return "No method has been run on all tasks that were begun: there is no total yet."
    told = "; ".join(sentences) or "only the expert has been run"
    return f"{told[0].upper()}{told[1:]}."


def _totals(results: Results) -> tuple[Cell | None, list[Cell]]:
    """Return the better total of BISON, if it has one, and those of its rivals."""
    totals = [row[-1] for row in results.cells if row[-1].score]
    bison = max((cell for cell in totals if cell.variant.method == BISON), key=lambda cell: cell.rate, default=None)
    return bison, [cell for cell in totals if cell.variant.method != BISON and cell.variant.name != REFERENCE]


def _bison(results: Results, cell: Cell) -> str:
    assert cell.score is not None
    tasks = results.tasks
    number = NUMBERS[len(tasks)] if len(tasks) < len(NUMBERS) else len(tasks)
    return (
        f"{in_text(cell.variant)} solves {cell.score.successes:,} of {cell.score.episodes:,} episodes of "
        f"{f'the {number} tasks' if len(tasks) > 1 else tasks[0]} (95% interval {interval(cell.score.interval)})"
    )


def in_text(variant: Variant) -> str:
    """Return the name of a method as it is written within a sentence."""
    name, comma, how = variant.title.partition(", ")
    return f"{name} {'in the' if variant.preset == PAPER else 'by'} {how}" if comma else name


def numbers(results: Results) -> list[tuple[str, str]]:
    """Return what to show large at the top, with what it is."""
    bison, rivals = _totals(results)
    tasks, found = results.tasks, []
    if bison:
        found.append((rate(bison.rate), f"success of {in_text(bison.variant)}"))
        if tasks == list(TASKS) and bison.paper is not None:
            found.append((rate(bison.paper), "BISON in the paper"))
    if rivals:
        best = max(rivals, key=lambda cell: cell.rate)
        found.append((rate(best.rate), f"the best rival, {in_text(best.variant)}"))
    episodes = sum(row.episodes for row in results.findings.rows)
    return [*found, (f"{episodes:,}", f"episodes of {plural(len(tasks), 'task')}")]

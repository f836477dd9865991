"""What findings come to, in words: numbers as people read them, what intervals are, and the outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib.resources import files

from bilevel.experiments.methods import METHODS, is_published
from bilevel.experiments.paper import TASKS
from bilevel.experiments.report.scores import Cell, Results
from bilevel.experiments.reproduction.findings import Findings
from bilevel.experiments.reproduction.recipes import PAPER
from bilevel.experiments.reproduction.variants import Variant
from bilevel.methods.methods import EXPERT
from bilevel.policies.folder import BISON
from bilevel.rules.explanation.wording import listed

NOTHING = "–"
SOLVERS = {"rules": "Rules (BISON)", "lama": "LAMA", "search": "built-in search"}


def rate(value: float) -> str:
    """Return 0.97; only where all succeed it is 1.00, and only where none does 0.00."""
    text = f"{value:.2f}"
    if text == "1.00" and value < 1:
        return ">0.99"
    return "<0.01" if text == "0.00" and value > 0 else text


def interval(bounds: tuple[float, float]) -> str:
    """Return 0.57–0.68, or with three digits where two would be the same."""
    low, high = bounds
    digits = 3 if low < high and f"{low:.2f}" == f"{high:.2f}" else 2
    return f"{low:.{digits}f}–{high:.{digits}f}"


def per_cent(value: float) -> str:
    """Return 75% or 36.5%."""
    return f"{100 * value:.1f}".removesuffix(".0") + "%"


def seconds(value: float) -> str:
    """Return 40 ms, 3.2 s, 12 min or 3.4 h."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def microseconds(value: float) -> str:
    """Return 110 µs, 1.5 ms or 2.5 s."""
    return f"{value:.0f} µs" if value < 999.5 else seconds(value / 1e6)


def mebibytes(value: float) -> str:
    """Return 400 MiB or 1.2 GiB."""
    return f"{value:.0f} MiB" if value < 1023.5 else f"{value / 1024:,.3g} GiB"


def spread(values: Collection[int], noun: str) -> str:
    """Return `26,842 samples`, or `26,842 to 30,000 samples` where they differ."""
    low, high = min(values), max(values)
    return plural(low, noun) if low == high else f"{low:,} to {plural(high, noun)}"


@dataclass(frozen=True)
class Cost:
    """One of the things that a method costs: a column of a table, and the axis of a panel."""

    name: str  # in `Costs.measured`
    column: str
    title: str
    show: Callable[[float], str]
    largest: bool  # whether it is about the largest number of objects, as is then the success rate


COSTS = (
    Cost("training_seconds", "training", "training time", seconds, False),
    Cost("training_mebibytes", "memory in training", "peak memory in training", mebibytes, False),
    Cost("policy_microseconds", "a step", "inference time per step", microseconds, True),
    Cost("peak_mebibytes", "memory", "peak memory in inference", mebibytes, True),
)


def ranges(numbers: Iterable[int]) -> str:
    """Return 1–10, or 1, 3 and 6: runs of three numbers and more are told by their ends."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return listed([text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else map(str, run))])


def plural(number: int, noun: str) -> str:
    """Return `1 task` or `1,000 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def asset(name: str) -> str:
    """Return the text of a file that belongs to the report."""
    return (files("bilevel.experiments.report") / "assets" / name).read_text(encoding="utf-8")


# What intervals are, and how things are set off

OF_METHODS = (
    "Intervals (95%) are those of the method: a beta-binomial model with the training seed as random effect, so they "
    "tell what networks from other seeds would come to."
)
OF_POLICIES = "Intervals (95%, Wilson) are those of the policies that were run, not of what another seed would give."
NOT_LEARNED = "That of a policy which no seed changes, such as the expert, is Wilson's."
SET_OFF = (
    "Set off are the best rate of each column and all that cannot be told from it (the 95% interval of the difference "
    "holds 0), the expert and rows in other worlds aside; nothing where the best cannot be told from none at all."
)
WHOSE = "Worlds, experts and how often things teleport are ours; the paper's figures are of other worlds."
COINCIDENCE = (
    "Where curves coincide, they are drawn in turns as dashes of each, and their markers side by side; all are where "
    "their values are."
)


def interval_note(results: Results) -> str:
    """Return what the intervals of these results are."""
    scores = [cell.score for row in results.cells for cell in row if cell.score]
    if not any(len(score.policies) > 1 for score in scores):
        return OF_POLICIES
    return f"{OF_METHODS} {NOT_LEARNED}" if any(len(score.policies) == 1 for score in scores) else OF_METHODS


# The outcome


def scope(results: Results) -> str:
    """Return what was run: `8 tasks, 1–10 objects, 10 episodes of each size with each of 3 seeds`."""
    each, seeds = {size.episodes for row in results.findings.rows for size in row.sizes}, len(results.seeds)
    return (
        f"{plural(len(results.tasks), 'task')}, {ranges(results.sizes)} objects, "
        f"{ranges(each)} episode{'' if each == {1} else 's'} of each size with "
        f"{f'each of {seeds} seeds' if seeds > 1 else 'one seed'}"
    )


def completeness(findings: Findings) -> str:
    """Return whether all that was asked for is there, in a sentence."""
    if not findings.about.asked:
        return "Whether that is all that was asked for is not recorded."
    missing = findings.missing()
    return f"Not complete, missing: {' '.join(missing)}" if missing else "Complete: all that was asked for is there."


def absence(cell: Cell) -> str:
    """Return what stands where there is no score."""
    return "not run" if is_published(METHODS[cell.variant.method]) else NOTHING


def outcome(results: Results) -> str:
    """Return one sentence: how BISON did, and who came next."""
    bison, rivals = _totals(results)
    sentences = []
    if bison and bison.score:
        tasks = f"the {len(results.tasks)} tasks" if len(results.tasks) > 1 else results.tasks[0]
        sentences.append(
            f"{in_text(bison.variant)} solves {bison.score.successes:,} of {bison.score.episodes:,} episodes of "
            f"{tasks} (95% interval {interval(bison.score.interval)})"
        )
    if rivals:
        best = max(cell.rate for cell in rivals)
        names = listed([in_text(cell.variant) for cell in rivals if cell.rate == best])
        of_those, many = ("its rivals", "as many") if bison else ("those that were run", "all episodes")
        sentences.append(f"the best of {of_those}, {names}, {per_cent(best)} of {many}")
    if not sentences and not any(row[-1].score for row in results.cells):
        return "No method has been run on all tasks that were begun: there is no total yet."
    told = "; ".join(sentences) or "only the expert has been run"
    return f"{told[0].upper()}{told[1:]}."


def numbers(results: Results) -> list[tuple[str, str]]:
    """Return what to show large at the top, with what it is."""
    bison, rivals = _totals(results)
    found = []
    if bison:
        found.append((rate(bison.rate), f"success of {in_text(bison.variant)}"))
        if results.tasks == list(TASKS) and bison.paper is not None:
            found.append((rate(bison.paper), "BISON in the paper"))
    if rivals:
        best = max(rivals, key=lambda cell: cell.rate)
        found.append((rate(best.rate), f"the best rival, {in_text(best.variant)}"))
    episodes = sum(row.episodes for row in results.findings.rows)
    return [*found, (f"{episodes:,}", f"episodes of {plural(len(results.tasks), 'task')}")]


def _totals(results: Results) -> tuple[Cell | None, list[Cell]]:
    """Return the better total of BISON, if it has one, and those of its rivals."""
    totals = [row[-1] for row in results.cells if row[-1].score]
    bison = max((cell for cell in totals if cell.variant.method == BISON), key=lambda cell: cell.rate, default=None)
    return bison, [cell for cell in totals if cell.variant.method != BISON and cell.variant.name != EXPERT]


def in_text(variant: Variant) -> str:
    """Return the name of a method as it is written within a sentence."""
    name, comma, how = variant.title.partition(", ")
    return f"{name} {'in the' if variant.preset == PAPER else 'by'} {how}" if comma else name

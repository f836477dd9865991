"""The tables: what findings come to, in numbers; as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

import msgspec

from bilevel.experiments.methods import METHODS
from bilevel.experiments.report.scores import Cell, Costs, Results, Score
from bilevel.experiments.report.wording import (
    COSTS,
    NOTHING,
    SET_OFF,
    SOLVERS,
    WHOSE,
    absence,
    interval,
    interval_note,
    per_cent,
    rate,
    scope,
    seconds,
)
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.recipes import OURS
from bilevel.policies.episode import REASONS

TOTAL = "total"

Record = dict[str, str | int | float | None]


@dataclass(frozen=True)
class Text:
    """What stands in a cell: something, maybe set off; what belongs to it; and, apart from both, something else."""

    main: str
    more: str = ""
    aside: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """For people: a header and lines of texts. For programs: records of plain values, which CSV has."""

    name: str  # of its files
    title: str
    caption: str
    header: Sequence[str]
    lines: Sequence[Sequence[Text | str]]
    records: Sequence[Record]


def tables(results: Results) -> list[Table]:
    """Return all tables that there is something to put in."""
    makers = (main_table, size_table, cost_table, cause_table, scaling_table)
    return [table for table in (make(results) for make in makers) if table.records]


# Success


def main_table(results: Results) -> Table:
    """Return the success rates of all methods on all tasks, with the paper's."""
    caption = f"{scope(results)}. In italics what the paper reports. {WHOSE} {interval_note(results)} {SET_OFF}"
    lines: list[list[Text | str]] = [[row[0].variant.title, *map(_text, row)] for row in results.cells]
    records: list[Record] = [
        {"method": cell.variant.name, "task": cell.task or TOTAL, **_score_record(cell.score), "paper": cell.paper}
        for row in results.cells
        for cell in row
    ]
    return Table("success", "Success rates", caption, ["method", *results.tasks, TOTAL], lines, records)


def _text(cell: Cell) -> Text:
    aside = "" if cell.paper is None else rate(cell.paper)
    if cell.score is None:
        return Text(absence(cell), aside=aside)
    return Text(rate(cell.rate), f"({interval(cell.score.interval)})", aside, strong=cell.is_best)


def _score_record(score: Score | None) -> Record:
    """Return all about a score; nothing but `None` where there is none."""
    names = ("successes", "episodes", "rate", "low", "high", "lowest_seed", "highest_seed")
    values = (score.successes, score.episodes, score.rate, *score.interval, *score.seed_range) if score else [None] * 7
    return dict(zip(names, values, strict=True))


def size_table(results: Results) -> Table:
    """Return the successes with each number of objects."""
    sizes, lines = results.sizes, []
    records: list[Record] = []
    for task in results.tasks:
        for variant in results.variants:
            if scores := results.by_size(variant, task):
                counts = {size: f"{score.successes}/{score.episodes}" for size, score in scores.items()}
                lines.append([f"{task}, {variant.title}", *(counts.get(size, NOTHING) for size in sizes)])
            for size, score in scores.items():
                records.append({"method": variant.name, "task": task, "objects": size, **_score_record(score)})
    caption = f"{scope(results)}: successes of as many episodes."
    header = ["task, method", *(f"n = {size}" for size in sizes)]
    return Table("success-by-objects", "Success by number of objects", caption, header, lines, records)


# Costs


def cost_table(results: Results) -> Table:
    """Return what each method takes: medians over tasks and seeds."""
    totals = results.costs()
    lines = []
    sizes = any(found.measured["parameters"] for found in totals)  # which older results do not tell
    for found in totals:
        measured: list[tuple[float | None, Callable[[float], str]]]
        measured = [(found.measured["parameters"], "{:,.0f}".format)] if sizes else []
        measured += [(found.measured[cost.name], cost.show) for cost in COSTS]
        shown = (NOTHING if value is None else show(value) for value, show in measured)
        lines.append([found.variant.title, rate(found.score.rate), *shown])
    records = [_cost_record(found, task) for task in (None, *results.tasks) for found in results.costs(task)]
    caption = (
        f"Medians over tasks and seeds; steps and memory with {max(results.sizes, default=0)} objects, labels and "
        "planning included. Methods that plan run on the network of BISON in the paper's setting."
    )
    shared = [f"{found.variant.title}{found.trained_how}" for found in totals if max(found.networks, default=1) > 1]
    if any(METHODS[found.variant.method].planners and found.variant.preset == OURS for found in totals):
        caption += " Where a title says so, it is that of our preset."
    if shared:
        caption += f" Times of training are shared: {'; '.join(shared)}."
    header = ["method", "success", *(["parameters"] if sizes else []), *(cost.column for cost in COSTS)]
    return Table("costs", "Time and memory", caption, header, lines, records)


def _cost_record(found: Costs, task: str | None) -> Record:
    return {
        "method": found.variant.name,
        "task": task or TOTAL,
        "rate": found.score.rate,
        "objects": found.objects,
        "rate_at_objects": found.largest.rate if found.largest else None,
        **found.measured,
        "trained_on": " and ".join(found.devices) or None,
        "trained_side_by_side": " or ".join(map(str, found.networks)) or None,
    }


# Causes of failure


def cause_table(results: Results) -> Table:
    """Return how many episodes failed for each reason."""
    totals = {variant: results.outcomes(variant) for variant in results.variants}
    reasons = [reason for reason in REASONS if any(found[reason] for found in totals.values())]
    lines = []
    for variant, found in totals.items():
        successes, episodes = found["success"], found.total()
        share = f" ({per_cent(successes / episodes)})" if episodes else ""
        counts = (f"{found[reason]:,}" if found[reason] else NOTHING for reason in reasons)
        lines.append([variant.title, f"{successes:,}/{episodes:,}{share}", *counts])
    records: list[Record] = []
    for variant in totals:
        for task in results.tasks:
            if found := results.outcomes(variant, task):
                counted: Record = {"episodes": found.total(), "successes": found["success"]}
                by_reason = {reason: found[reason] for reason in REASONS}
                records.append({"method": variant.name, "task": task, **counted, **by_reason})
    caption = f"{scope(results)}, all tasks together; each failure has one cause."
    return Table("causes", "Causes of failure", caption, ["method", "successes", *reasons], lines, records)


# Large problems


def scaling_table(results: Results) -> Table:
    """Return how long rules and planners take as problems grow."""
    sizes = sorted({one.objects for one in results.findings.scaling})
    lines = [
        [f"{task}, {SOLVERS[solver]}", *(_solving(by_size.get(size, ())) for size in sizes)]
        for (task, solver), by_size in results.large_problems.items()
    ]
    limit = results.findings.about.experiment.lama_seconds
    caption = (
        "CPU time to solve problems of symbols alone, by number of objects, on one core. A planner is out of time "
        f"after {limit:g} s by the wall clock, and has no model where it cannot express what may happen."
    )
    header = ["task, solver", *(f"{size:,}" for size in sizes)]
    records = [_scaling_record(one) for one in results.findings.scaling]
    return Table("solving-time", "Solving time", caption, header, lines, records)


def _solving(found: Sequence[Scaling]) -> str:
    if not found:
        return "not run"
    failures = [one.failure for one in found if one.failure]
    return failures[0] if failures else seconds(median(one.seconds for one in found))


def _scaling_record(one: Scaling) -> Record:
    values = {
        name: value
        for name, value in msgspec.structs.asdict(one).items()
        if name not in ("versions", "machine", "reason")
    }
    return {**values, "solved": int(one.solved), "timed_out": int(one.timed_out), "failure": one.failure}


# Formats


def as_csv(table: Table) -> str:
    """Return the records, with all digits."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table.records[0]) if table.records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.records)
    return text.getvalue()


def as_markdown(table: Table) -> str:
    """Return what the table is about, and the table below that."""
    return f"{filled(f'**{_in_markdown(table.title)}.** {_in_markdown(table.caption)}')}\n\n{markdown_grid(table)}\n"


def markdown_grid(table: Table) -> str:
    """Return the table alone, for a page that says itself what it is about."""
    lines = [[_cell(cell, _in_markdown, "**%s**", "%s", "*%s*") for cell in line] for line in table.lines]
    return markdown([*map(_in_markdown, table.header)], lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; the first column is text and the others are numbers."""
    rule = "|---|" + "---:|" * (len(header) - 1)
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join((first, rule, *others))


def filled(text: str) -> str:
    """Return a paragraph in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def as_latex(table: Table) -> str:
    """Return a `table` for a document that uses the packages booktabs and graphicx."""
    styles = r"\textbf{%s}", r"{\scriptsize %s}", r"\textit{%s}"
    body = "\n".join(" & ".join(_cell(cell, _in_latex, *styles) for cell in line) + r" \\" for line in table.lines)
    return rf"""% needs \usepackage{{booktabs, graphicx}}
\begin{{table}}
\centering
\caption{{{_in_latex(f"{table.title}. {table.caption}")}}}
\label{{tab:{table.name}}}
\resizebox{{\textwidth}}{{!}}{{%
\begin{{tabular}}{{l{"r" * (len(table.header) - 1)}}}
\toprule
{" & ".join(map(_in_latex, table.header))} \\
\midrule
{body}
\bottomrule
\end{{tabular}}}}
\end{{table}}
"""


def as_html(table: Table) -> str:
    """Return the table for a page."""
    styles = "<b>%s</b>", "<small>%s</small>", "<i>%s</i>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    lines = ([_cell(cell, escape, *styles) for cell in line] for line in table.lines)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>\n'
        for first, *rest in lines
    )
    return f'<table class="plainly"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'


def _cell(cell: Text | str, escape: Callable[[str], str], strong: str, more: str, aside: str) -> str:
    """Return a cell with its parts as these styles have them."""
    if isinstance(cell, str):
        return escape(cell)
    parts = ((cell.main, strong if cell.strong else "%s"), (cell.more, more), (cell.aside, aside))
    return " ".join(style % escape(text) for text, style in parts if text)


def _in_markdown(text: str) -> str:
    return " ".join(text.translate({ord(character): f"\\{character}" for character in "\\`*_<|"}).split())


_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "µ": r"\textmu{}", "×": r"$\times$",
    "<": r"\textless{}", ">": r"\textgreater{}", "\n": " ",
})  # fmt: skip


def _in_latex(text: str) -> str:
    return text.translate(_LATEX)


FORMATS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "md": as_markdown, "tex": as_latex}

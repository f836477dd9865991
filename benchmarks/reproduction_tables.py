"""What the tables about the whole experiment say: from the lines of its findings to Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from result_tables import NOTHING, Render, Row, below

from bilevel.experiments.hard.curves import read_curves
from bilevel.experiments.report.explanations import at_learning_rate, differences, first_of, in_curves, in_table
from bilevel.experiments.report.hard_results import HardResults
from bilevel.experiments.report.scores import Results, is_in_paper
from bilevel.experiments.report.tables import Table, Text, filled, main_table, markdown_grid
from bilevel.experiments.report.wording import WHOSE, completeness, interval, rate, scope
from bilevel.experiments.reproduction.findings import Findings, parse_findings, read_findings

RESULTS = Path(__file__).parents[1] / "results"
SLOWER, HARD = RESULTS / "reproduction-0.001.jsonl", RESULTS / "hard-0.001.jsonl"


def found(rows: Sequence[Row], file: str) -> Findings:
    """Return the findings of an experiment."""
    return parse_findings((json.dumps(row) for row in rows), file)


def of_report(make: Callable[[Results], Table]) -> Render:
    """Return what renders a table of the report, with where it comes from."""

    def render(rows: Sequence[Row], file: str) -> str:
        findings = found(rows, file)
        table, about = make(Results(findings)), findings.about
        machines = " and ".join(f"{one['cores']} cores ({one['cpu']})" for one in about.machines)
        made = f"{completeness(findings)} Made by `{about.command}` on machines with {machines}"
        made += f": [`results/{file}`](results/{file})."
        return f"{filled(f'**{table.title}.** {table.caption} {made}')}\n\n{markdown_grid(table)}"

    return render


def short_table(results: Results) -> Table:
    """Return the main table of the report with rates alone, for a page with little room."""
    table = main_table(results)
    lines = [[replace(cell, more="") if isinstance(cell, Text) else cell for cell in line] for line in table.lines]
    return replace(table, caption=f"{scope(results)}; in italics what the paper reports. {WHOSE}", lines=lines)


FURTHER = (
    "bison-paper", "bison-recorded", "bison", "bison-paper-fixed-trays", "bison-fixed-trays", "expert-fixed-trays",
)  # fmt: skip


def further_table(results: Results) -> Table:
    """Return the rows that were measured at the paper's learning rate alone, beside those to hold them against."""
    rows = [row for row in results.findings.rows if row.variant in FURTHER]
    table = main_table(Results(msgspec.structs.replace(results.findings, rows=rows)))
    return replace(
        table, title=f"Further rows, at a learning rate of {results.findings.about.experiment.learning_rate:g}"
    )


def summary_table(results: Results) -> Table:
    """Return each method's success in each world, still and noisy together, and what a step of it takes."""
    worlds = list(dict.fromkeys(task.removesuffix("-noisy") for task in results.tasks))
    costs = {found.variant: found.measured["policy_microseconds"] for found in results.costs()}
    lines: list[list[Text | str]] = []
    shown = [(row[0].variant, row) for row in results.cells if row[0].score and is_in_paper(row[0].variant)]
    for variant, row in shown:
        scores = [[c.score for c in row if c.task and c.score and c.task.startswith(world)] for world in worlds]
        rates = [sum(s.successes for s in found) / sum(s.episodes for s in found) for found in scores]
        step = costs[variant]
        lines.append([variant.title, *map(rate, rates), NOTHING if step is None else f"{step:.0f} µs"])
    caption = (
        f"{scope(results)}, still and noisy together; a step with {max(results.sizes)} objects. Worlds, experts and "
        "how often things teleport are ours, not the paper's, so these are no rates to be held against the paper's."
    )
    header = ["method", *map(str.capitalize, worlds), "a step"]
    return Table("summary", "Success rates", caption, header, lines, [])


def difference_list(rows: Sequence[Row], file: str) -> str:
    """Return a sentence for whatever differs from the paper, with the experiment that explains it, if there is one."""
    lines = []
    results = Results(found(rows, file))
    curves, slower = in_curves(HardResults(read_curves(HARD))), at_learning_rate(Results(read_findings(SLOWER)))
    for title, reasons in differences(results, first_of(in_table(results), slower, curves)).items():
        for why, cells in reasons.items():
            where = ", ".join(f"{cell.task} {cell.rate:.2f} (*{cell.paper:.2f}*)" for cell in cells)
            lines.append(f"- **{title}**, {where}: {why}")
    return "\n".join(filled(line).replace("\n", "\n  ") for line in lines)


def learning_rate_table(rows: Sequence[Row], file: str) -> str:
    """Return what each method solves at another learning rate, beside what it solves at that of the table."""
    other, table = Results(found(rows, file)), Results(read_findings(RESULTS / "reproduction.jsonl"))
    at_other, at_table = ({row[-1].variant: row[-1].score for row in results.cells} for results in (other, table))
    rates = [results.findings.about.experiment.learning_rate for results in (other, table)]
    lines = []
    for variant, before in at_other.items():
        now = at_table.get(variant)
        if before and now and variant.recipe:
            low, high = now.less(before)
            counts = [f"{one.successes}/{one.episodes} ({interval(one.interval)})" for one in (before, now)]
            lines.append([variant.title, *counts, f"{now.rate - before.rate:+.2f} ({low:+.2f} to {high:+.2f})"])
    text = (
        f"Successes on all tasks after as many updates at learning rates of {rates[0]:g} and {rates[1]:g}, and the "
        "difference, with 95% intervals over training seeds. "
        f"Made by `{other.findings.about.command}`: [`results/{file}`](results/{file})."
    )
    return below(text, ["method", *(f"{rate:g}" for rate in rates), "difference"], lines)


def speed_table(rows: Sequence[Row], file: str) -> str:
    """Return where the time of the BISON rows goes, a line for each part of the work."""
    total = sum(row["minutes"] for row in rows)
    lines = [[row["what"], f"{row['minutes']:.1f}", f"{100 * row['minutes'] / total:.0f}%", row["how"]] for row in rows]
    text = (
        "**The rows of BISON, our preset**, from nothing, in version 0.1: 8 tasks, 24 networks, 2,400 episodes. "
        f"Minutes on two cores, {total:.0f} in all: [`results/{file}`](results/{file})."
    )
    return below(text, ["what", "minutes", "part", "how it was measured"], lines)

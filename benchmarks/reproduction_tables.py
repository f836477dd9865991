"""Tables about the whole experiment: those of its report, and why some numbers differ from the paper's."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from markdown_tables import Row, below, markdown

from bilevel.experiments.report.differences import differences
from bilevel.experiments.report.scores import cells
from bilevel.experiments.report.table_formats import Table, markdown_grid
from bilevel.experiments.report.tables import (
    cause_table,
    cost_table,
    main_table,
    scaling_table,
    short_table,
    size_table,
)
from bilevel.experiments.reproduction.rows import Findings, parse_findings


def found(rows: Sequence[Row], file: str) -> Findings:
    return parse_findings((json.dumps(row) for row in rows), file)


def made_by(findings: Findings, file: str) -> str:
    machines = " and ".join(f"{one['cores']} cores ({one['cpu']})" for one in findings.about.machines)
    return f"Made by `{findings.about.command}` on machines with {machines}: [`results/{file}`](results/{file})."


def shown(make: Callable[[Findings], Table]) -> Callable[[Sequence[Row], str], str]:
    """A table of the report, with where it comes from."""

    def render(rows: Sequence[Row], file: str) -> str:
        findings = found(rows, file)
        table = make(findings)
        return below(f"**{table.title}.** {table.caption} {made_by(findings, file)}", markdown_grid(table))

    return render


reproduction_table = shown(short_table)
interval_table = shown(main_table)
reproduction_sizes = shown(size_table)
reproduction_costs = shown(cost_table)
reproduction_causes = shown(cause_table)
solving_table = shown(scaling_table)


def difference_list(rows: Sequence[Row], file: str) -> str:
    """A sentence for whatever differs from the paper by more than 0.15."""
    lines = []
    for title, reasons in differences(cells(found(rows, file)), quick=False).items():
        for reason in reasons:
            where = ", ".join(
                f"{cell.task} {cell.score.rate:.2f} (*{cell.paper:.2f}*)" for cell in reason.cells if cell.score
            )
            lines.append(f"- **{title}**, {where}: {reason.why}")
    return "\n".join(below(line, "").rstrip().replace("\n", "\n  ") for line in lines)


def speed_table(rows: Sequence[Row], file: str) -> str:
    """Where the time of the BISON rows goes, a line for each part of the work."""
    total = sum(row["minutes"] for row in rows)
    lines = [[row["what"], f"{row['minutes']:.1f}", f"{100 * row['minutes'] / total:.0f}%", row["how"]] for row in rows]
    text = (
        "**The rows of BISON, our recipe**, from nothing: 8 tasks, 24 networks, 2,400 episodes. Minutes on two cores, "
        f"{total:.0f} in all: [`results/{file}`](results/{file})."
    )
    return below(text, markdown(["what", "minutes", "part", "how it was measured"], lines))

"""What the page of the hard suite says in numbers, each table below its figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

from result_tables import NOT_MEASURED, Render, Row

from bilevel.experiments.hard.axes import AXES, Measure
from bilevel.experiments.hard.curves import parse_curves
from bilevel.experiments.report.hard_figures import figure_name
from bilevel.experiments.report.hard_results import HardResults
from bilevel.experiments.report.hard_tables import axis_table, behind_table, needed_table, pooled_table
from bilevel.experiments.report.tables import Table, filled, markdown_grid

ELSEWHERE = {"teleports": "hard-0.001.jsonl"}  # files of axes that were not measured at the suite's learning rate
Make = Callable[[HardResults], Table]


def of_axis(name: str) -> Render:
    """Return what renders the figure of an axis, and its success rates for all tasks together."""
    return _renderer(partial(pooled_table, axis=AXES[name]), figure_name(AXES[name], "success"))


def of_time(name: str, measure: Measure) -> Render:
    """Return what renders the figure of a time along an axis, and the times on each task."""
    return _renderer(partial(axis_table, axis=AXES[name], measure=measure), figure_name(AXES[name], measure))


def demonstrations_needed(rows: Sequence[Row], file: str) -> str:
    """Return how many demonstrations each method needs on each task."""
    return _renderer(needed_table)(rows, file)


def falling_behind(rows: Sequence[Row], file: str) -> str:
    """Return from how many objects on methods are too slow."""
    return _renderer(behind_table)(rows, file)


def commands(rows: Sequence[Row], file: str) -> str:
    """Return which commands have made a file of curves, and where."""
    about = parse_curves([json.dumps(row) for row in rows], file).about
    machines = " and ".join(f"{one['cores']} cores ({one['cpu']})" for one in about.machines)
    lines = [filled(f"- `{command}`").replace("\n", "\n  ") for command in about.command.split("; ")]
    return "\n".join([f"[`results/{file}`](results/{file}) was made on machines with {machines}, by", "", *lines])


def _renderer(make: Make, figure: str | None = None) -> Render:
    """Return what renders a table, with the file that it comes from, below a figure if it has one."""

    def render(rows: Sequence[Row], file: str) -> str:
        curves = parse_curves([json.dumps(row) for row in rows], file)
        table = make(HardResults(curves))
        if not table.lines:
            return NOT_MEASURED
        made = f"From [`results/{file}`](results/{file})."
        above = f"![{table.title.partition(',')[0]}, by task](images/{figure}.png)\n\n" if figure else ""
        return f"{above}{filled(f'**{table.title}.** {table.caption} {made}')}\n\n{markdown_grid(table)}"

    return render

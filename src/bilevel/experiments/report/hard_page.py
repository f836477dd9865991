"""The page of the hard suite: a section for each axis, in one file, which loads nothing."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from markupsafe import Markup

from bilevel.experiments.hard.axes import Axis
from bilevel.experiments.hard.curves import Curves
from bilevel.experiments.report.charts import Figure
from bilevel.experiments.report.hard_figures import figure_name, hard_figures
from bilevel.experiments.report.hard_results import TIMES, HardResults
from bilevel.experiments.report.hard_tables import BEHIND, NEEDED, hard_tables, pooled_name
from bilevel.experiments.report.page import environment, shared_values
from bilevel.experiments.report.tables import Table, as_html

FURTHER = {"demonstrations": [NEEDED], "deciding": [BEHIND]}  # tables besides those of the curves


@dataclass(frozen=True)
class Part:
    """A figure of a section, with its caption and its table."""

    figure: Figure
    caption: str
    table: Table

    @property
    def grid(self) -> Markup:
        """The table, for the page."""
        return Markup(as_html(self.table))


@dataclass(frozen=True)
class Section:
    """An axis on the page."""

    axis: Axis
    parts: list[Part]
    further: list[Table]

    @property
    def grids(self) -> list[tuple[Table, Markup]]:
        """The further tables, for the page."""
        return [(table, Markup(as_html(table))) for table in self.further]


def hard_page_html(curves: Curves, files_folder: str | None = None, other_page: str | None = None) -> str:
    """Return the whole page; `other_page` is the name of the one about the paper's table, if that is beside it."""
    results = HardResults(curves)
    drawn, tables = hard_figures(results), hard_tables(results)
    sections = []
    for axis in results.axes:
        names = {figure_name(axis, measure): TIMES.get(measure) for measure in axis.measures}
        parts = [
            Part(drawn[name], time.about if time else "", tables[name]) for name, time in names.items() if name in drawn
        ]
        further = [tables[name] for name in (pooled_name(axis), *FURTHER.get(axis.name, ())) if name in tables]
        sections.append(Section(axis, parts, further))
    values = {
        **shared_values(),
        "about": curves.about,
        "experiment": msgspec.to_builtins(curves.about.experiment),
        "seeds": results.seeds,
        "results": results,
        "figures": drawn,
        "series": {series.key for figure in drawn.values() for series in figure.legend},
        "axes": sections,
        "sections": [section.axis.name for section in sections],
    }
    return environment().get_template("hard.html").render(values, files_folder=files_folder, other_page=other_page)

"""The figures of a report: curves along an axis, in panels as SVG for the page and in sheets as PDF and PNG."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import pandas as pd
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import MaxNLocator

from bilevel.experiments.results import SUCCESS, Results, measured, seconds
from bilevel.experiments.rows import AXES, NUMBER, OURS, PAPER_ROWS, ROWS, TITLES, Axis

COLUMNS, SIZE = 4, (3.1, 2.35)  # of panels, in inches
TICKS = 6  # along an axis, at most
STYLE: Any = matplotlib.rc_params_from_file(Path(__file__).with_name("templates") / "report.mplstyle", False, False)
METADATA: Mapping[str, Any] = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}  # no dates
MARKERS = {"o": "●○", "s": "■□", "^": "▲△", "D": "◆◇", "v": "▼▽", "*": "★☆"}  # full and empty, as letters
COLOURS = {  # of methods, after Okabe and Ito; published models share one
    "bison": "#0072b2",
    "expert": "#6b7280",
    "det-plan": "#e08a2e",
    "det-replan": "#c8500a",
    "ndt-plan": "#35b78f",
    "ndt-replan": "#00805c",
    "pddl-nn": "#a2447f",
    "pure-nn": "#cc79a7",
}
MEASURES = {SUCCESS: "success rate", "pause_seconds": "longest pause", "seconds": "time to solve"}


class Look(NamedTuple):
    """How a row is shown: its colour, its marker as a letter, and both as arguments of `Axes.plot`."""

    colour: str
    symbol: str
    style: Mapping[str, Any]


def look(name: str) -> Look:
    """Return the look of a row: the colour of its method, and a marker that no other row of that has.

    Marker and line are full where the policy is learned by our preset.
    """
    row = ROWS[name]
    alike = [other for other in ROWS.values() if (other.method, other.preset) == (row.method, row.preset)]
    marker, symbols = list(MARKERS.items())[alike[::-1].index(row)]
    colour, full = COLOURS.get(row.method, "#8a6d3b"), row.preset == OURS
    style = {"color": colour, "markerfacecolor": colour if full else "white", "linewidth": 1.3, "markersize": 4.0}
    line = "-" if full else (0, (3.5, 2))
    return Look(colour, symbols[not full], {**style, "marker": marker, "linestyle": line})


class Figure(NamedTuple):
    """A panel for each task, or for each number of objects, with a curve for each row along an axis."""

    name: str  # of its files
    axis: Axis
    measure: str
    frame: pd.DataFrame

    @property
    def rows(self) -> Sequence[str]:
        """The names of the rows that it shows."""
        return [str(row) for row in self.frame["row"].cat.categories if row in set(self.frame["row"])]

    @property
    def panels(self) -> Mapping[str, pd.DataFrame]:
        """The lines of each panel, by its title."""
        groups = self.frame.sort_values("task", kind="stable").groupby("where", sort=False)
        return {str(title): part for title, part in groups}


def figures(results: Results) -> Iterator[Figure]:
    """Yield all figures that there is something to show in."""
    frame = results.along(NUMBER)
    is_papers = frame["row"].isin(PAPER_ROWS)
    found = [
        Figure("success-by-objects", NUMBER, SUCCESS, frame[is_papers]),
        Figure("variants-by-objects", NUMBER, SUCCESS, frame[~is_papers]),
    ]
    for axis in AXES.values():
        for measure in axis.measures:
            name = f"hard-{axis.name}{'' if measure == SUCCESS else f'-{measure}'}".removesuffix("_seconds")
            found.append(Figure(name, axis, measure, results.along(axis)))
    yield from (figure for figure in found if len(figure.frame))


def draw(axes: Any, figure: Figure, part: pd.DataFrame) -> None:
    """Draw a panel: for each row a line, and a band from the lowest to the highest of what was measured."""
    values = sorted(part["value"].unique())
    curves = measured(part, ["row", "value"], figure.measure).groupby("row", observed=True)
    for row, curve in list(curves)[::-1]:
        style = look(str(row)).style
        axes.fill_between(curve["value"], curve["low"], curve["high"], color=style["color"], alpha=0.05, linewidth=0)
        axes.plot(curve["value"], curve["middle"], **style)
    if figure.axis.is_log:
        axes.set_xscale("log")
    if figure.axis.is_log or len(values) <= 3:
        axes.set_xticks(values[:: -(-len(values) // TICKS)])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(TICKS - 1))
    axes.xaxis.set_major_formatter(lambda value, _: figure.axis.show(value))
    axes.set(xlabel=textwrap.fill(figure.axis.title, 40), ylabel=MEASURES[figure.measure])
    if figure.measure == SUCCESS:
        axes.set(ylim=(-0.06, 1.06), yticks=(0, 0.25, 0.5, 0.75, 1))
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.minorticks_off()
    axes.grid(True, axis="y")


def panel_source(figure: Figure, title: str) -> str:
    """Return a panel as the source of a picture on a page."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        sheet = Sheet(figsize=SIZE, layout="constrained")
        draw(sheet.add_subplot(), figure, figure.panels[title])
        return f"data:image/svg+xml;base64,{base64.b64encode(_saved(sheet, 'svg')).decode()}"


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return all panels of a figure with a legend as a file of this kind, `pdf` or `png`."""
    with matplotlib.rc_context(STYLE):
        panels = figure.panels
        columns = min(COLUMNS, len(panels))
        lines, entries = -(-len(panels) // columns), max(1, columns * 2 - 1)
        legend = 0.3 + 0.2 * -(-len(figure.rows) // entries)
        sheet = Sheet(figsize=(max(5.2, SIZE[0] * columns), SIZE[1] * lines + legend), layout="constrained")
        for number, (title, part) in enumerate(panels.items(), 1):
            axes = sheet.add_subplot(lines, columns, number)
            axes.set_title(title, loc="left")
            draw(axes, figure, part)
        handles = [sheet.axes[0].plot([], [], label=TITLES[row], **look(row).style)[0] for row in figure.rows]
        sheet.legend(handles=handles, loc="outside upper center", ncols=entries, frameon=False)
        return _saved(sheet, suffix)


def _saved(sheet: Sheet, suffix: str) -> bytes:
    content = io.BytesIO()
    sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
    return content.getvalue()

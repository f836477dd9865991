"""The figures of a report: panels for the page as SVG, and sheets of panels as PDF and PNG, all drawn by matplotlib."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import pandas as pd
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bilevel.experiments.axes import AXES, NUMBER, Axis
from bilevel.experiments.results import Results
from bilevel.experiments.rows import PAPER_ROWS, TITLES
from bilevel.experiments.tables import COSTS, MEASURES, Measure, axis_name, costs, places, scores, seconds

COLUMNS, SIZE = 4, (3.1, 2.35)  # of panels, in inches
GREY, GROUND = "#b4bac4", "#ffffff"
STYLE: Any = matplotlib.rc_params_from_file(Path(__file__).with_name("templates") / "report.mplstyle", False, False)
METADATA: Mapping[str, dict[str, Any]] = {  # without these, files would say when they were made
    "pdf": {"CreationDate": None, "Creator": "bilevel", "Producer": "bilevel"},
    "png": {"Software": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}
SYMBOLS = {"o": "●○", "s": "■□", "^": "▲△", "v": "▼▽", "D": "◆◇", "d": "◆◇", "<": "◀◁", ">": "▶▷", "*": "★☆"}

# How episodes end: colours, and what it means.
CAUSES: Mapping[str, tuple[str, str]] = {
    "success": ("#cfe3d8", "all goals were achieved in time"),
    "no rule": ("#56b4e9", "the policy did not know what to do: no rule applied"),
    "no model": ("#8d99ae", "the planner cannot express what may happen, such as objects to come"),
    "no plan": ("#4c5a73", "the planner found no plan, or none in time"),
    "plan broken": ("#e69f00", "what happened is not in the plan, and it did not plan again"),
    "unseen": ("#44aa99", "an object that it needed was not seen"),
    "physics": ("#222222", "the simulation became unstable"),
    "terminated": ("#882255", "the environment ended the episode, for a reason of its own"),
    "label": ("#f0e442", "the labels flickered: changes of the symbolic state were undone at once"),
    "control": ("#b3de69", "its control was unsteady: things moved to and fro"),
    "stall": ("#cc79a7", "stuck: nothing that it did had an effect any more"),
    "drop": ("#d55e00", "it kept losing what it held or needed"),
    "collision": ("#8c2d04", "it kept upsetting things that it had nothing to do with"),
    "time": ("#0072b2", "it was still making progress when the steps were up"),
}


class Look(NamedTuple):
    """The colour and the marker of a row, and whether marker and line are full; hues are those of Okabe and Ito."""

    colour: str
    marker: str = "o"
    full: bool = True

    @property
    def symbol(self) -> str:
        """The marker as a letter, for the legend of a page."""
        return SYMBOLS.get(self.marker, "✚✛")[not self.full]

    @property
    def style(self) -> dict[str, Any]:
        """The same as arguments of `Axes.plot`."""
        line, face = ("-", self.colour) if self.full else ((0, (3.5, 2)), GROUND)
        shape = {"linestyle": line, "linewidth": 1.3, "marker": self.marker, "markersize": 4.0}
        return {"color": self.colour, "markerfacecolor": face, **shape}


LOOKS: Mapping[str, Look] = {
    "bison-printed": Look("#4a9bd1", "d", full=False),
    "bison-paper": Look("#4a9bd1", full=False),
    "bison-recorded": Look("#4a9bd1", "h", full=False),
    "bison-without-dagger": Look("#0072b2", "v", full=False),
    "bison": Look("#0072b2"),
    "expert": Look("#6b7280", "P", full=False),
    "expert-estimating": Look("#6b7280", "X", full=False),
    "det-plan": Look("#e08a2e", "^", full=False),
    "det-replan": Look("#c8500a", "^"),
    "det-replan-lama": Look("#c8500a", "d", full=False),
    "det-replan-search": Look("#8f3b06", "v"),
    "det-replan-dagger": Look("#8f3a07", ">"),
    "ndt-plan": Look("#35b78f", "s", full=False),
    "ndt-replan": Look("#00805c", "s"),
    "ndt-replan-dagger": Look("#005c42", "P"),
    "pddl-nn": Look("#a2447f", "D"),
    "pddl-nn-dagger": Look("#6f2b86", "*"),
    "pure-nn": Look("#cc79a7", "D", full=False),
    "pure-nn-dagger": Look("#9b72c9", "*", full=False),
}


def look(row: str) -> Look:
    """Return the look of a row; published models share one."""
    return LOOKS.get(row, Look("#8a6d3b", "v", full=False))


Draw = Callable[[Any], None]  # draws a panel on the axes of matplotlib


class Figure(NamedTuple):
    """Panels that go together under one name, which is that of the files, and the rows that they show."""

    name: str
    rows: Sequence[str]
    panels: Mapping[str, Draw]  # by their titles


def figures(results: Results) -> Iterator[Figure]:
    """Yield all figures that there is something to show in."""
    frame = places(results, NUMBER).sort_values("task")
    if len(frame):
        is_papers = frame["row"].isin(PAPER_ROWS)
        yield _curves("success-by-objects", frame[is_papers], NUMBER)
        yield _curves("variants-by-objects", frame[~is_papers], NUMBER)
        yield _cost_figure(results)
    for axis in AXES.values():
        for measure in axis.measures:
            yield _curves(axis_name(axis, measure), places(results, axis), axis, measure)


def _rows(frame: pd.DataFrame) -> list[str]:
    return [row for row in TITLES if row in set(frame["row"])]


def _curves(name: str, frame: pd.DataFrame, axis: Axis, measure: str = "success") -> Figure:
    """Return a panel for each place with a curve for each row along an axis."""
    time, values = MEASURES.get(measure), sorted(frame["value"].unique())

    def draw(axes: Any, part: pd.DataFrame) -> None:
        if time:
            draw_times(axes, part, time)
        else:
            draw_rates(axes, scores(part, ["row", "value"]))
        set_axis(axes.xaxis, axis.title, axis.show, values if axis.is_log or len(values) < 4 else (), axis.is_log)

    groups = frame.groupby("where", sort=False)
    return Figure(name, _rows(frame), {str(key): partial(draw, part=part) for key, part in groups})


def _cost_figure(results: Results) -> Figure:
    """Return a panel for each cost: a large mark for each row, the median over tasks, and a faint one for each."""
    total, by_task = (costs(results, by).reset_index() for by in (["row"], ["row", "task"]))
    total, by_task = (part[part["row"].isin(PAPER_ROWS)] for part in (total, by_task))

    def draw(axes: Any, column: str, show: Callable[[float], str]) -> None:
        for part, marks in ((by_task, {"alpha": 0.4}), (total, {"markersize": 8})):
            for one in part[part[column] > 0].to_dict("records"):
                axes.plot(one[column], one["rate"], **{**look(one["row"]).style, "linestyle": "", **marks})
        set_axis(axes.xaxis, "", show, log=True)
        set_rates(axes)

    there = {name: cost for name, cost in COSTS.items() if name != "parameters" and (total[name] > 0).any()}
    panels = {title.capitalize(): partial(draw, column=name, show=show) for name, (title, show) in there.items()}
    return Figure("success-against-costs", _rows(total), panels)


# Panels


def draw_rates(axes: Any, frame: pd.DataFrame) -> None:
    """Draw success rates with their intervals; the expert is a bound, behind the others."""
    for row, part in list(frame.groupby("row", observed=True))[::-1]:
        style = look(str(row)).style
        if row == "expert":
            axes.fill_between(part["value"], part["rate"], 1.06, color=GREY, alpha=0.3, linewidth=0)
            axes.plot(part["value"], part["rate"], **{**style, "marker": "", "linewidth": 1.0, "zorder": 1.5})
        else:
            axes.fill_between(part["value"], part["low"], part["high"], color=style["color"], alpha=0.07, linewidth=0)
            axes.plot(part["value"], part["rate"], **style)
    set_rates(axes)


def draw_times(axes: Any, frame: pd.DataFrame, time: Measure) -> None:
    """Draw a time of each row, the median over seeds, with its range, and a cross where no episode was solved."""
    for row, part in list(frame.groupby("row", observed=True))[::-1]:
        by_value = part.set_index("value")[time.column].astype(float).groupby(level=0)
        taken, style = by_value.median(), look(str(row)).style
        axes.fill_between(taken.index, by_value.min(), by_value.max(), color=style["color"], alpha=0.07, linewidth=0)
        axes.plot(taken.index, taken, **style)
        stopped = taken[part.groupby("value")["successes"].sum() == 0]
        axes.plot(stopped.index, stopped, color=style["color"], linestyle="", marker="x", markersize=8)
    set_axis(axes.yaxis, time.title, seconds, log=True)
    if time.limit:
        height, text = time.limit
        axes.axhline(height, color="#171a21", linewidth=1, linestyle=(0, (1, 2)))
        axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom")


def set_rates(axes: Any) -> None:
    """Let the height be a success rate."""
    set_axis(axes.yaxis, "success rate", "{:g}".format, (0, 0.25, 0.5, 0.75, 1))
    axes.set_ylim(-0.06, 1.06)


def set_axis(
    axis: Any, title: str, show: Callable[[float], str], ticks: Sequence[float] = (), log: bool = False
) -> None:
    """Set what an axis shows, how values are called, and which of them are, at most six."""
    if log:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    if ticks:
        axis.set_major_locator(FixedLocator(list(ticks), nbins=5))
    elif log:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0), numticks=5))
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
    axis.set_label_text(textwrap.fill(title, 40))
    axis.axes.grid(True, axis="y")


# Files


def panel_source(title: str, draw: Draw) -> str:
    """Return a panel as the source of a picture on a page."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        sheet = Sheet(figsize=SIZE, layout="constrained")
        draw(sheet.add_subplot())
        return f"data:image/svg+xml;base64,{base64.b64encode(_saved(sheet, 'svg')).decode()}"


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return all panels of a figure with a legend as a file of this kind, `pdf` or `png`."""
    with matplotlib.rc_context(STYLE):
        columns = min(COLUMNS, len(figure.panels))
        lines, entries = -(-len(figure.panels) // columns), max(1, columns * 2 - 1)
        legend = 0.3 + 0.2 * -(-len(figure.rows) // entries)
        sheet = Sheet(figsize=(max(5.2, SIZE[0] * columns), SIZE[1] * lines + legend), layout="constrained")
        for number, (title, draw) in enumerate(figure.panels.items(), 1):
            axes = sheet.add_subplot(lines, columns, number)
            axes.set_title(title, loc="left")
            draw(axes)
        handles = [sheet.axes[0].plot([], [], label=TITLES[row], **look(row).style)[0] for row in figure.rows]
        sheet.legend(handles=handles, loc="outside upper center", ncols=entries, frameon=False)
        return _saved(sheet, suffix)


def _saved(sheet: Sheet, suffix: str) -> bytes:
    content = io.BytesIO()
    sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
    return content.getvalue()

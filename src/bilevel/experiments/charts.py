"""The charts of a report, as matplotlib draws them: panels for the page as SVG, and sheets of panels as PDF and PNG."""

from __future__ import annotations

import base64
import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

COLUMNS, SIZE = 4, (3.1, 2.35)  # of panels, in inches
GREY, GROUND = "#b4bac4", "#ffffff"
STYLE: Any = matplotlib.rc_params_from_file(Path(__file__).with_name("templates") / "report.mplstyle", False, False)
METADATA: Mapping[str, dict[str, Any]] = {  # without these, files would say when they were made
    "pdf": {"CreationDate": None, "Creator": "bilevel", "Producer": "bilevel"},
    "png": {"Software": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}


class Look(NamedTuple):
    """The colour and the marker of a series, and whether marker and line are full; hues are those of Okabe and Ito."""

    colour: str
    marker: str = "o"
    full: bool = True

    @property
    def symbol(self) -> str:
        """The marker as a letter, for the legend of a page."""
        symbols = {"o": "●○", "s": "■□", "^": "▲△", "v": "▼▽", "D": "◆◇", "d": "◆◇", "<": "◀◁", ">": "▶▷", "*": "★☆"}
        return symbols.get(self.marker, "✚✛")[not self.full]


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
    "rules": Look("#0072b2"),
    "lama": Look("#c8500a", "^", full=False),
    "search": Look("#8f3b06", "s", full=False),
}


def look(key: str) -> Look:
    """Return the look of a series; that of a row in another world is that of the row, with another marker."""
    known = [name for name in LOOKS if key == name or key.startswith(f"{name}-")]
    if not known:
        return Look("#8a6d3b", "v", full=False)
    found = LOOKS[max(known, key=len)]
    return found if key in LOOKS else found._replace(marker="<")


class Series(NamedTuple):
    """Points that belong together, maybe with ranges, and those among them at which something gave up."""

    key: str
    title: str
    x: Sequence[float]
    y: Sequence[float]
    ranges: Sequence[tuple[float, float]] = ()
    gave_up: Sequence[bool] = ()


@dataclass(frozen=True)
class Axis:
    """What is shown along an axis, and how its values are called."""

    title: str
    show: Callable[[float], str] = "{:g}".format
    ticks: Sequence[float] = ()
    limits: tuple[float, float] | None = None
    log: bool = False


RATES = Axis("success rate", ticks=(0, 0.25, 0.5, 0.75, 1), limits=(-0.06, 1.06))


@dataclass(frozen=True)
class Panel:
    """A chart: curves, or points that are not joined, which may each have faint ones of the same look."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    joined: bool = True
    faint: Sequence[Series] = ()
    limit: tuple[float, str] | None = None  # a height that is too much, and what it is called


@dataclass(frozen=True)
class Figure:
    """Panels that go together under one name, which is that of the files."""

    name: str
    panels: Sequence[Panel]

    @property
    def legend(self) -> dict[str, str]:
        """The titles of the series."""
        return {one.key: one.title for panel in self.panels for one in panel.series}


def panel_source(panel: Panel) -> str:
    """Return a panel as the source of a picture on a page."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": panel.title}):
        sheet = Sheet(figsize=SIZE, layout="constrained")
        _draw(sheet.add_subplot(), panel)
        return f"data:image/svg+xml;base64,{base64.b64encode(_saved(sheet, 'svg')).decode()}"


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return all panels of a figure with a legend as a file of this kind, `pdf` or `png`."""
    with matplotlib.rc_context(STYLE):
        columns = min(COLUMNS, len(figure.panels))
        rows = -(-len(figure.panels) // columns)
        entries = max(1, columns * 2 - 1)
        legend = 0.3 + 0.2 * -(-len(figure.legend) // entries)
        sheet = Sheet(figsize=(max(5.2, SIZE[0] * columns), SIZE[1] * rows + legend), layout="constrained")
        for number, panel in enumerate(figure.panels, 1):
            axes = sheet.add_subplot(rows, columns, number)
            axes.set_title(panel.title, loc="left")
            _draw(axes, panel)
        handles = [sheet.axes[0].plot([], [], label=title, **_style(key))[0] for key, title in figure.legend.items()]
        sheet.legend(handles=handles, loc="outside upper center", ncols=entries, frameon=False)
        return _saved(sheet, suffix)


def bars_bytes(groups: Mapping[str, Mapping[str, Mapping[str, int]]], colours: Mapping[str, str], suffix: str) -> bytes:
    """Return bars of equal length, one for each row of each group, which show how episodes ended."""
    with matplotlib.rc_context(STYLE):
        columns, most = min(3, len(groups)), max(map(len, groups.values()))
        rows = -(-len(groups) // columns)
        sheet = Sheet(figsize=(4.2 * columns, (0.24 * most + 0.5) * rows + 0.6), layout="constrained")
        for number, (title, bars) in enumerate(groups.items(), 1):
            axes = sheet.add_subplot(rows, columns, number)
            axes.set_title(title, loc="left")
            begins = [0.0] * len(bars)
            for cause, colour in colours.items():
                shares = [counts.get(cause, 0) / sum(counts.values()) for counts in bars.values()]
                axes.barh(range(len(bars)), shares, left=begins, color=colour, edgecolor=GROUND, linewidth=0.5)
                begins = [begin + share for begin, share in zip(begins, shares, strict=True)]
            axes.set(yticks=range(len(bars)), yticklabels=list(bars), xlim=(0, 1), xticks=[0, 0.5, 1])
            axes.set_xticklabels(["0%", "50%", "100%"])
            axes.invert_yaxis()
        handles: Any = sheet.axes[0].containers
        sheet.legend(handles, list(colours), loc="outside upper center", ncols=6, frameon=False)
        return _saved(sheet, suffix)


def _saved(sheet: Sheet, suffix: str) -> bytes:
    content = io.BytesIO()
    sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
    return content.getvalue()


@cache
def _style(key: str) -> dict[str, Any]:
    found = look(key)
    return {
        "color": found.colour,
        "linestyle": "-" if found.full else (0, (3.5, 2)),
        "linewidth": 1.3,
        "marker": found.marker,
        "markerfacecolor": found.colour if found.full else GROUND,
        "markersize": 4.0,
    }


def _apart(axis: Axis) -> list[float]:
    """Return the ticks of an axis without those that are so near to the one before that their names would meet."""
    place: Callable[[float], float] = math.log if axis.log else float
    span, found = place(axis.ticks[-1]) - place(axis.ticks[0]), list(axis.ticks[:1])
    for tick in axis.ticks[1:]:
        if place(tick) - place(found[-1]) >= 0.14 * span:
            found.append(tick)
    return found


def _draw(axes: Any, panel: Panel) -> None:
    for axis, place in ((panel.x, axes.xaxis), (panel.y, axes.yaxis)):
        set_scale = axes.set_xscale if place is axes.xaxis else axes.set_yscale
        if axis.log:
            set_scale("log")
        if axis.ticks:
            place.set_major_locator(FixedLocator(_apart(axis)))
        place.set_minor_locator(NullLocator())
        place.set_major_formatter(FuncFormatter(lambda value, _, show=axis.show: show(value)))
        place.set_label_text(textwrap.fill(axis.title, 40))
    axes.grid(True, axis="y")
    for series in panel.faint:
        axes.plot(series.x, series.y, **{**_style(series.key), "linestyle": "", "alpha": 0.4})
    for series in reversed(panel.series):
        style = _style(series.key)
        if series.key == "expert" and panel.joined and panel.y is RATES:  # a bound, in nobody's way
            axes.fill_between(series.x, series.y, 1.06, color=GREY, alpha=0.3, linewidth=0)
            axes.plot(series.x, series.y, **{**style, "marker": "", "linewidth": 1.0, "zorder": 1.5})
            continue
        if series.ranges:
            axes.fill_between(
                series.x, *zip(*series.ranges, strict=True), color=style["color"], alpha=0.07, linewidth=0
            )
        axes.plot(series.x, series.y, **(style if panel.joined else {**style, "linestyle": "", "markersize": 8}))
        points = zip(series.x, series.y, strict=True)
        stopped = [point for point, ended in zip(points, series.gave_up, strict=False) if ended]
        if stopped:
            axes.plot(*zip(*stopped, strict=True), color=style["color"], linestyle="", marker="x", markersize=8)
    if panel.limit:
        axes.axhline(panel.limit[0], color="#171a21", linewidth=1, linestyle=(0, (1, 2)))
        axes.annotate(panel.limit[1], (1, panel.limit[0]), xycoords=("axes fraction", "data"), ha="right", va="bottom")
    for axis, set_limits, place in ((panel.x, axes.set_xlim, axes.xaxis), (panel.y, axes.set_ylim, axes.yaxis)):
        if axis.log and not axis.ticks:
            low, high = place.get_view_interval()
            wider = max(1.0, math.sqrt(10 * low / high))  # at least a decade, lest small differences look large
            set_limits(low / wider, high * wider)
            place.set_major_locator(LogLocator(subs=(1.0,) if high / low > 100 else (1.0, 3.0), numticks=5))
    if panel.y.limits:
        axes.set_ylim(*panel.y.limits)

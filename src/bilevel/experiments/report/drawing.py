"""Charts drawn by matplotlib: on paper as PDF and PNG, and on the page as SVG that takes its colours from the page.

The same charts give the same bytes every time.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure as Sheet
from matplotlib.transforms import ScaledTranslation

from bilevel.experiments.report.charts import Bar, Figure, Mark, Panel, Series
from bilevel.experiments.report.styles import CAUSES, SERIES

COLUMNS = {"small": 4, "wide": 2}
SIZES = {"small": (2.9, 2.2), "wide": (4.2, 3.0)}  # of a panel, in inches
ON_PAGE = {"small": (3.1, 2.3), "wide": (5.0, 3.3)}  # the same; a page is as wide as its reader's window
LANE = 1.0  # points between lines that coincide
REACH = 18.0  # points across a mark within which it is meant
INK, FRAME, GRID, GROUND = "#4a5160", "#b4bac4", "#e6e9ee", "#ffffff"
SETTINGS: Any = {
    "font.size": 8.5,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FRAME,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "pdf.fonttype": 42,  # text that can be searched
    "svg.fonttype": "none",  # the page's own letters
    "savefig.dpi": 160,
}
# Without these, files would say when they were made, and with what.
METADATA: Mapping[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": "bilevel", "Producer": "bilevel"},
    "png": {"Software": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}
# What colours are called on the page, where dark ones may stand for them.
ON_SCREEN = {INK: "muted", FRAME: "line", GRID: "grid", GROUND: "surface"}
ON_SCREEN |= {style.light: f"series-{key}" for key, style in SERIES.items()}


# On paper


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return the figure as a file of this kind, `pdf` or `png`."""
    with matplotlib.rc_context(SETTINGS):
        return _saved(_bars(figure.bars) if figure.bars else _panels(figure), suffix)


def _saved(sheet: Sheet, suffix: str) -> bytes:
    content = io.BytesIO()
    sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
    return content.getvalue()


def _grid(count: int, columns: int, size: tuple[float, float], legend: float) -> tuple[Sheet, list[Any]]:
    """Return a sheet with so many axes, and room for a legend."""
    columns = min(columns, count)
    rows = -(-count // columns)
    sheet = Sheet(figsize=(max(size[0] * columns, 5.2), size[1] * rows + legend), layout="constrained")
    places = list(sheet.subplots(rows, columns, squeeze=False).flat)
    for unused in places[count:]:
        unused.set_visible(False)
    return sheet, places[:count]


def _panels(figure: Figure) -> Sheet:
    sheet, places = _grid(len(figure.panels), COLUMNS[figure.size], SIZES[figure.size], 0.7)
    for axes, panel in zip(places, figure.panels, strict=True):
        axes.set_title(panel.title, loc="left")
        _draw(axes, panel)
    handles = [places[0].plot([], [], label=series.title, **_look(series.key))[0] for series in figure.legend]
    sheet.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5), frameon=False)
    return sheet


def _bars(groups: Mapping[str, Sequence[Bar]]) -> Sheet:
    sheet, places = _grid(len(groups), 3, (4.0, 0.24 * max(map(len, groups.values())) + 0.5), 0.6)
    present = {cause for bars in groups.values() for bar in bars for cause in bar.outcomes}
    causes = [cause for cause in CAUSES if cause in present]
    for axes, (title, bars) in zip(places, groups.items(), strict=True):
        axes.set_title(title, loc="left")
        begins = [0.0] * len(bars)
        for cause in causes:
            shares = [bar.outcomes.get(cause, 0) / bar.episodes for bar in bars]
            colour = CAUSES[cause].light
            axes.barh(range(len(bars)), shares, left=begins, color=colour, edgecolor="white", linewidth=0.5)
            begins = [begin + share for begin, share in zip(begins, shares, strict=True)]
        axes.set_yticks(range(len(bars)), [bar.title for bar in bars])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
        axes.tick_params(axis="y", length=0)
    handles = places[0].containers
    sheet.legend(handles=handles, labels=causes, loc="outside upper center", ncols=6, frameon=False)
    return sheet


# A panel, wherever it is


def _draw(axes: Any, panel: Panel) -> None:
    """Draw axes and series; each artist of a series says in its id of which one it is."""
    for axis, name in ((panel.x, "x"), (panel.y, "y")):
        axes.set(**{f"{name}scale": "log" if axis.log else "linear", f"{name}label": axis.title})
        axes.set(**{f"{name}lim": (axis.low, axis.high), f"{name}ticks": list(axis.ticks)})
        axes.set(**{f"{name}ticklabels": list(axis.ticks.values())})
    axes.minorticks_off()
    axes.grid(True, axis="y")
    lanes = len(panel.series) if panel.joined else 0
    for number, series in reversed(list(enumerate(panel.series))):
        shift = (number - (lanes - 1) / 2) * LANE if lanes > 2 else 0.0
        down = axes.transData + ScaledTranslation(0, -shift / 72, axes.figure.dpi_scale_trans)
        (_draw_line if panel.joined else _draw_points)(axes, series, {"transform": down, "gid": f"series {series.key}"})


def _look(key: str) -> dict[str, Any]:
    """Return a line and a marker as `styles` has them."""
    style = SERIES[key]
    return {
        "color": style.light,
        "linestyle": "-" if style.full else (0, (3.5, 2)),
        "linewidth": 1.3,
        "marker": style.marker,
        "markerfacecolor": style.light if style.full else GROUND,
        "markeredgewidth": 1.0,
        "markersize": 4.0,
    }


def _draw_line(axes: Any, series: Series, options: dict[str, Any]) -> None:
    marks, look = series.marks, _look(series.key)
    ranged = [(mark.x, *mark.range) for mark in marks if mark.range]
    if any(low < high for _, low, high in ranged):
        axes.fill_between(*zip(*ranged, strict=True), color=look["color"], alpha=0.13, linewidth=0, **options)
    cross = {"color": look["color"], "linestyle": "", "marker": "x", "markersize": 7, "markeredgewidth": 1.8}
    _plot(axes, marks, {**options, **look, "marker": ""})
    _plot(axes, [mark for mark in marks if not mark.gave_up], {**options, **look, "linestyle": ""})
    _plot(axes, [mark for mark in marks if mark.gave_up], {**options, **cross})


def _draw_points(axes: Any, series: Series, options: dict[str, Any]) -> None:
    look = {**options, **_look(series.key), "linestyle": ""}
    _plot(axes, [mark for mark in series.marks if mark.faint], {**look, "alpha": 0.4})
    _plot(axes, [mark for mark in series.marks if not mark.faint], {**look, "markersize": 8.0, "zorder": 3})


def _plot(axes: Any, marks: Sequence[Mark], look: dict[str, Any]) -> None:
    """Draw marks that are whole even at the edge, without making room there for that."""
    if marks:
        (drawn,) = axes.plot([mark.x for mark in marks], [mark.y for mark in marks], clip_on=False, **look)
        drawn.set_in_layout(False)


# On the page


def panel_svg(panel: Panel, size: str) -> str:
    """Return the panel for a page, with places that can be pointed at or focused, each of which has a title."""
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": panel.title + panel.y.title}):
        sheet = Sheet(figsize=ON_PAGE[size], layout="constrained", frameon=False)
        axes = sheet.add_subplot(frameon=True, facecolor="none")
        _draw(axes, panel)
        tips = (_draw_strips if panel.joined else _draw_reach)(axes, panel)
        root = _svg(sheet, f"chart {size}")
    _make_hits(root, tips)
    shown = f"{panel.y.title} against {panel.x.title} of {', '.join(series.title for series in panel.series)}"
    root[0].attrib |= {"role": "img", "aria-label": f"{panel.title}: {shown}"}
    root.attrib |= {"role": "group", "aria-label": f"{panel.title}; arrow keys go from value to value"}
    return _markup(root)


def swatch(key: str) -> str:
    """Return what a series looks like, for legends to refer to as `swatch-KEY`."""
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": key}):
        sheet = Sheet(figsize=(28 / 72, 14 / 72), frameon=False)
        axes = sheet.add_axes((0, 0, 1, 1), xlim=(0, 28), ylim=(-7, 7))
        axes.set_axis_off()
        axes.plot([1, 14, 27], [0, 0, 0], markevery=[1], **{**_look(key), "linewidth": 1.9, "markersize": 7.0})
        root = _svg(sheet, "swatch")
    root.set("id", f"swatch-{key}")
    return _markup(root)


def _draw_strips(axes: Any, panel: Panel) -> list[str]:
    """Draw a strip, which the page hides, for each value along the axis, and return what all series say there."""
    values = sorted({mark.x for series in panel.series for mark in series.marks})
    middle = [(a * b) ** 0.5 if panel.x.log else (a + b) / 2 for a, b in pairwise(values)]
    tips = []
    for number, (value, edges) in enumerate(zip(values, pairwise([panel.x.low, *middle, panel.x.high]), strict=True)):
        axes.axvspan(*edges, gid=f"hit {number}")
        lines = [f"{series.title}\t{mark.tip}" for series in panel.series for mark in series.marks if mark.x == value]
        tips.append("\n".join([f"{panel.title}, {value:,.0f} object{'' if value == 1 else 's'}", *lines]))
    return tips


def _draw_reach(axes: Any, panel: Panel) -> list[str]:
    """Draw a circle, which the page hides, around each mark, the large ones above, and return what the marks say."""
    marks = sorted((mark for series in panel.series for mark in series.marks), key=lambda mark: not mark.faint)
    for number, mark in enumerate(marks):
        size = REACH / 2 if mark.faint else REACH
        axes.plot(mark.x, mark.y, "o", color=INK, markersize=size, gid=f"hit {number}", zorder=9)
    return [mark.tip for mark in marks]


def _svg(sheet: Sheet, kind: str) -> ElementTree.Element:
    """Return the sheet as plain SVG, in which series are classes and nothing else has a name."""
    root = ElementTree.fromstring(_saved(sheet, "svg"))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.attrib = {name: _rounded(value) if name in "dxy" else value for name, value in element.attrib.items()}
        element.attrib.pop("clip-path", None)
        if element.tag == "g":
            name, _, key = element.attrib.pop("id", "").partition(" ")
            element.attrib |= {"class": name, f"data-{name}": key} if key else {}
    root.attrib = {"class": kind, "viewBox": root.attrib["viewBox"]}
    for defs in root.findall("defs"):  # styles that would hold for the whole page, and where things are clipped
        root.remove(defs)
    return root


def _rounded(numbers: str) -> str:
    """Return coordinates to a tenth of a point, which is less than can be seen."""
    return re.sub(r"(\.\d)\d+", r"\1", numbers)


def _make_hits(root: ElementTree.Element, tips: Sequence[str]) -> None:
    """Move what can be pointed at out of the picture; the last, above all others, is the one that Tab leads to."""
    hits = ElementTree.Element("g", {"class": "hits"})
    for parent in list(root.iter("g")):
        for element in parent.findall("g[@class='hit']"):
            parent.remove(element)
            number = int(element.attrib.pop("data-hit"))
            element.attrib |= {"role": "img", "tabindex": "0" if number == len(tips) - 1 else "-1"}
            for shape in element.iter():
                shape.attrib.pop("style", None)
            element.insert(0, ElementTree.Element("title"))
            element[0].text = tips[number]
            hits.append(element)
    root.append(hits)


def _markup(root: ElementTree.Element) -> str:
    text = ElementTree.tostring(root, encoding="unicode")
    text = re.sub(r"\s*\n\s*", "\n", text)
    return re.sub("|".join(ON_SCREEN), lambda found: f"var(--{ON_SCREEN[found[0]]})", text)

"""Charts drawn by matplotlib: on paper as PDF and PNG, and on the page as SVG that takes its colours from the page.

The same charts give the same bytes every time.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure as Sheet
from matplotlib.transforms import ScaledTranslation

from bilevel.experiments.report.charts import Figure, Mark, Panel, Series
from bilevel.experiments.report.coincidence import Run, band_runs, line_runs, side_by_side
from bilevel.experiments.report.looks import CAUSES, SERIES
from bilevel.experiments.reproduction.variants import Variant

COLUMNS = {"small": 4, "wide": 2}
SIZES = {"small": (2.9, 2.2), "wide": (4.2, 3.0)}  # of a panel, in inches
ON_PAGE = {"small": (3.1, 2.3), "wide": (5.0, 3.3)}  # the same; a page is as wide as its reader's window
TITLE = 38  # letters of an axis' title in a line; a small panel has no room for more
BESIDE = 3.6  # points between markers that coincide, where there is room
BAND = 0.13  # how much of its colour a band has
CROWDED = 0.9  # of the way to the next value, which is all that markers which coincide may take
DASH = 3.0  # of each line of those that coincide, in widths of a line
NARROWEST = 5.2  # inches, of a sheet
ENTRY, LETTER, LINE = 0.6, 0.062, 0.2  # inches, of a legend: a mark and a gap, a letter, and a line
REACH = 9.0  # points from a mark within which it is meant
INK, FRAME, GRID, GROUND = "#4a5160", "#b4bac4", "#e6e9ee", "#ffffff"
SETTINGS: Any = matplotlib.rc_params_from_file(Path(__file__).with_name("assets") / "report.mplstyle", False, False)
# Without these, files would say when they were made, and with what.
METADATA: Mapping[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": "bilevel", "Producer": "bilevel"},
    "png": {"Software": None},
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
}
# What colours are called on the page, where dark ones may stand for them.
ON_SCREEN = {INK: "muted", FRAME: "line", GRID: "grid", GROUND: "surface"}
ON_SCREEN |= {style.light: f"series-{key}" for key, style in SERIES.items()}

Place = tuple[str, dict[str, float], str]  # an element of SVG, where it is, and what is said there


# On paper


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """Return the figure as a file of this kind, `pdf` or `png`."""
    with matplotlib.rc_context(SETTINGS):
        return _saved(_bars(figure.bars) if figure.bars else panel_sheet(figure), suffix)


def _saved(sheet: Sheet, suffix: str) -> bytes:
    content = io.BytesIO()
    sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
    return content.getvalue()


def _grid(count: int, columns: int, size: tuple[float, float], legend: float) -> tuple[Sheet, list[Any]]:
    """Return a sheet with so many axes, and room for a legend."""
    columns = min(columns, count)
    rows = -(-count // columns)
    sheet = Sheet(figsize=(max(size[0] * columns, NARROWEST), size[1] * rows + legend), layout="constrained")
    return sheet, [sheet.add_subplot(rows, columns, number + 1) for number in range(count)]


def panel_sheet(figure: Figure) -> Sheet:
    """Return a sheet with all panels of a figure, and a legend above them."""
    titles = [series.title for series in figure.legend]
    across = min(len(figure.panels), COLUMNS[figure.size]) * SIZES[figure.size][0]
    columns = max(1, min(5, len(titles), int(max(across, NARROWEST) / (ENTRY + LETTER * max(map(len, titles))))))
    legend = 0.3 + LINE * -(-len(titles) // columns)
    sheet, places = _grid(len(figure.panels), COLUMNS[figure.size], SIZES[figure.size], legend)
    for axes, panel in zip(places, figure.panels, strict=True):
        axes.set_title(panel.title, loc="left")
        _draw(axes, panel)
    handles = [places[0].plot([], [], label=series.title, **_look(series.key))[0] for series in figure.legend]
    sheet.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)
    return sheet


def _bars(groups: Mapping[str, Mapping[Variant, Counter[str]]]) -> Sheet:
    sheet, places = _grid(len(groups), 3, (4.0, 0.24 * max(map(len, groups.values())) + 0.5), 0.6)
    causes = [cause for cause in CAUSES if any(counts[cause] for bars in groups.values() for counts in bars.values())]
    for axes, (title, bars) in zip(places, groups.items(), strict=True):
        axes.set_title(title, loc="left")
        begins = [0.0] * len(bars)
        for cause in causes:
            shares = [counts[cause] / counts.total() for counts in bars.values()]
            colour = CAUSES[cause].light
            axes.barh(range(len(bars)), shares, left=begins, color=colour, edgecolor="white", linewidth=0.5)
            begins = [begin + share for begin, share in zip(begins, shares, strict=True)]
        axes.set_yticks(range(len(bars)), [variant.title for variant in bars])
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
        axes.set(**{f"{name}scale": "log" if axis.log else "linear", f"{name}label": textwrap.fill(axis.title, TITLE)})
        axes.set(**{f"{name}lim": (axis.low, axis.high), f"{name}ticks": list(axis.ticks)})
        axes.set(**{f"{name}ticklabels": list(axis.ticks.values())})
    axes.minorticks_off()
    axes.grid(True, axis="y")
    for series in reversed(panel.series):
        if panel.joined:
            _draw_line(axes, panel, series)
        else:
            _draw_points(axes, series)


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


def _draw_line(axes: Any, panel: Panel, series: Series) -> None:
    """Draw a curve where its values are.

    Where it coincides with others, each is drawn as dashes in turn, and their markers side by side.
    """
    look, named = _look(series.key), _named(series)
    if series.is_ceiling:
        _draw_ceiling(axes, panel, series)
        return
    for run in band_runs(panel, series):
        ranges = [(mark.x, *(mark.range or (mark.y, mark.y))) for mark in run.marks]
        if any(low < high for _, low, high in ranges):
            light = {"color": look["color"], "alpha": BAND / run.number, "linewidth": 0}
            axes.fill_between(*zip(*ranges, strict=True), **light, **named)
    for run in line_runs(panel, series):
        _plot(axes, run.marks, {**named, **look, "marker": "", **_in_turn(run)})
    cross = {"color": look["color"], "linestyle": "", "marker": "x", "markersize": 7, "markeredgewidth": 1.8}
    for shift, shifted in _shifted(axes, panel, series).items():
        aside = {**named, "transform": axes.transData + ScaledTranslation(shift / 72, 0, axes.figure.dpi_scale_trans)}
        _plot(axes, [mark for mark in shifted if not mark.gave_up], {**aside, **look, "linestyle": ""})
        _plot(axes, [mark for mark in shifted if mark.gave_up], {**aside, **cross})


def _draw_ceiling(axes: Any, panel: Panel, series: Series) -> None:
    """Draw the bound as the lower edge of an area, which is in nobody's way."""
    places, heights = [mark.x for mark in series.marks], [mark.y for mark in series.marks]
    axes.fill_between(places, heights, panel.y.high, color=FRAME, alpha=0.3, linewidth=0, **_named(series))
    _plot(axes, series.marks, {**_named(series), **_look(series.key), "marker": "", "linewidth": 1.0, "zorder": 1.5})


def _named(series: Series) -> dict[str, Any]:
    return {"gid": f"series {series.key}"}


def _in_turn(run: Run) -> dict[str, Any]:
    """Return the dashes of one line among several that coincide; a line by itself keeps its own."""
    if run.number == 1:
        return {}
    return {"linestyle": (DASH * run.place, (DASH, DASH * (run.number - 1))), "dash_capstyle": "butt"}


def _shifted(axes: Any, panel: Panel, series: Series) -> dict[float, list[Mark]]:
    """Return the marks by how many points they are drawn to the right, each beside those at the same place."""
    values = sorted({mark.x for one in panel.series for mark in one.marks})
    pixels = axes.transData.transform([(value, panel.y.high) for value in values])[:, 0]
    room = min((b - a for a, b in pairwise(pixels)), default=math.inf) * 72 / axes.figure.dpi  # points
    found: dict[float, list[Mark]] = {}
    for mark, place, number in side_by_side(panel, series):
        shift = (place - (number - 1) / 2) * min(BESIDE, CROWDED * room / number)
        found.setdefault(shift, []).append(mark)
    return found


def _draw_points(axes: Any, series: Series) -> None:
    look = {**_named(series), **_look(series.key), "linestyle": ""}
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
        sheet = Sheet(figsize=ON_PAGE[size], dpi=72, layout="constrained", frameon=False)  # a pixel is a point of SVG
        axes = sheet.add_subplot(frameon=True, facecolor="none")
        _draw(axes, panel)
        root = _svg(sheet, f"chart {size}")
    shown = f"{panel.y.title} against {panel.x.title} of {', '.join(series.title for series in panel.series)}"
    root[0].attrib |= {"role": "img", "aria-label": f"{panel.title}: {shown}"}
    root.attrib |= {"role": "group", "aria-label": f"{panel.title}; arrow keys go from value to value"}
    hits = ElementTree.SubElement(root, "g", {"class": "hits", "transform": f"matrix(1 0 0 -1 0 {sheet.bbox.height})"})
    for kind, place, tip in (_strips if panel.joined else _circles)(axes, panel):
        numbers = {name: f"{number:.1f}" for name, number in place.items()}
        hit = ElementTree.SubElement(hits, kind, {"class": "hit", "role": "img", "tabindex": "-1", **numbers})
        ElementTree.SubElement(hit, "title").text = tip
    hits[-1].set("tabindex", "0")  # the last is above all others
    return _markup(root)


def _strips(axes: Any, panel: Panel) -> Iterator[Place]:
    """Yield a strip for each value along the axis, with what all series say there."""
    values = sorted({mark.x for series in panel.series for mark in series.marks})
    middle = [(a * b) ** 0.5 if panel.x.log else (a + b) / 2 for a, b in pairwise(values)]
    corners = axes.transData.transform([(x, panel.y.low) for x in (panel.x.low, *middle, panel.x.high)])
    for value, ((left, bottom), (right, _)) in zip(values, pairwise(corners), strict=True):
        lines = [f"{series.title}\t{mark.tip}" for series in panel.series for mark in series.marks if mark.x == value]
        tip = "\n".join([f"{panel.title}, {panel.x.name(value)}", *lines])
        yield "rect", {"x": left, "y": bottom, "width": right - left, "height": axes.bbox.height}, tip


def _circles(axes: Any, panel: Panel) -> Iterator[Place]:
    """Yield a circle around each mark, the large ones above."""
    marks = [mark for series in panel.series for mark in series.marks]
    for mark in sorted(marks, key=lambda mark: not mark.faint):
        x, y = axes.transData.transform((mark.x, mark.y))
        yield "circle", {"cx": x, "cy": y, "r": REACH / 2 if mark.faint else REACH}, mark.tip


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


def _svg(sheet: Sheet, kind: str) -> ElementTree.Element:
    """Return the sheet as plain SVG, in which series are classes and nothing else has a name."""
    root = ElementTree.fromstring(_saved(sheet, "svg"))
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        for name in element.attrib.keys() & {"d", "x", "y"}:  # a tenth of a point is less than can be seen
            element.set(name, re.sub(r"(\.\d)\d+", r"\1", element.attrib[name]))
        element.attrib.pop("clip-path", None)
        if element.tag == "g":
            name, _, key = element.attrib.pop("id", "").partition(" ")
            element.attrib |= {"class": name, f"data-{name}": key} if key else {}
    root.attrib = {"class": kind, "viewBox": root.attrib["viewBox"]}
    for defs in root.findall("defs"):  # styles that would hold for the whole page, and where things are clipped
        root.remove(defs)
    return root


def _markup(root: ElementTree.Element) -> str:
    text = ElementTree.tostring(root, encoding="unicode")
    text = re.sub(r"\s*\n\s*", "\n", text)
    return re.sub("|".join(ON_SCREEN), lambda found: f"var(--{ON_SCREEN[found[0]]})", text)

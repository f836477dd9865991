"""The figures on paper: the same charts as on the page, as PDF and PNG, the same bytes every time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Sheet
from matplotlib.transforms import ScaledTranslation

from bilevel.experiments.report.charts import Figure, Mark, Panel, Series, Stack
from bilevel.experiments.report.styles import CAUSES, SERIES

COLUMNS = {"small": 4, "wide": 2}
SIZES = {"small": (2.9, 2.2), "wide": (4.2, 3.0)}  # of a panel, in inches
LANE = 1.0  # points between lines that coincide
MARKERS = {"circle": "o", "plus": "+", "up": "^", "down": "v", "square": "s", "diamond": "D", "star": "*"}
SETTINGS: Any = {
    "font.size": 8.5,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#b4bac4",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "xtick.color": "#4a5160",
    "ytick.color": "#4a5160",
    "pdf.fonttype": 42,  # text that can be searched
    "savefig.dpi": 160,
}
# Without these, files would say when they were made, and with what.
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": "bilevel", "Producer": "bilevel"},
    "png": {"Software": None},
}


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """The figure as a file of this kind."""
    with matplotlib.rc_context(SETTINGS):
        sheet = _panels(figure.panels, figure.legend) if figure.panels else _stacks(figure.stacks)
        content = io.BytesIO()
        sheet.savefig(content, format=suffix, metadata=METADATA[suffix])
        return content.getvalue()


def _sheet(count: int, columns: int, size: tuple[float, float], legend: float) -> tuple[Sheet, list[Any]]:
    """A sheet with so many places for panels, and room for a legend."""
    columns = min(columns, count)
    rows = -(-count // columns)
    sheet = Sheet(figsize=(max(size[0] * columns, 5.2), size[1] * rows + legend), layout="constrained")
    places = list(sheet.subplots(rows, columns, squeeze=False).flat)
    for unused in places[count:]:
        unused.set_visible(False)
    return sheet, places[:count]


def _panels(panels: Sequence[Panel], legend: Sequence[Series]) -> Sheet:
    kind = panels[0].kind
    sheet, places = _sheet(len(panels), COLUMNS[kind], SIZES[kind], 0.7)
    for place, panel in zip(places, panels, strict=True):
        _panel(sheet, place, panel)
    handles = [places[0].plot([], [], label=series.title, **_look(series.key))[0] for series in legend]
    sheet.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5), frameon=False)
    return sheet


def _panel(sheet: Sheet, place: Any, panel: Panel) -> None:
    place.set_title(panel.title, loc="left")
    for axis, name in ((panel.x, "x"), (panel.y, "y")):
        if axis.log:
            place.set(**{f"{name}scale": "log"})
        place.set(**{f"{name}lim": (axis.low, axis.high), f"{name}label": axis.title})
        place.set(**{f"{name}ticks": [value for value, _ in axis.ticks]})
        place.set(**{f"{name}ticklabels": [text for _, text in axis.ticks]})
    place.minorticks_off()
    place.grid(True, axis="y", color="#e6e9ee", linewidth=0.6)
    place.set_axisbelow(True)
    lanes = len(panel.series) if panel.joined else 0
    for number, series in reversed(list(enumerate(panel.series))):
        shift = (number - (lanes - 1) / 2) * LANE if lanes > 2 else 0.0
        down = place.transData + ScaledTranslation(0, -shift / 72, sheet.dpi_scale_trans)
        (_lines if panel.joined else _points)(place, series, down)


def _look(key: str) -> dict[str, Any]:
    """A line and a marker as `styles` has them."""
    style = SERIES[key]
    face = style.light if style.full else "white"
    line = "-" if style.full else (0, (3.5, 2))
    look = {"color": style.light, "marker": MARKERS[style.marker], "markerfacecolor": face, "linestyle": line}
    return {**look, "linewidth": 1.3, "markersize": 4.0, "markeredgewidth": 1.0}


def _lines(place: Any, series: Series, transform: Any) -> None:
    marks, look = series.marks, _look(series.key)
    ranged = [(mark.x, mark.low, mark.high) for mark in marks if mark.low is not None and mark.high is not None]
    if any(low < high for _, low, high in ranged):
        xs, lows, highs = zip(*ranged, strict=True)
        place.fill_between(xs, lows, highs, color=look["color"], alpha=0.13, linewidth=0, transform=transform)
    crosses = {"color": look["color"], "linestyle": "", "marker": "x", "markersize": 7, "markeredgewidth": 1.8}
    _draw(place, marks, transform, {**look, "marker": None})
    _draw(place, [mark for mark in marks if not mark.gave_up], transform, {**look, "linestyle": ""})
    _draw(place, [mark for mark in marks if mark.gave_up], transform, crosses)


def _draw(place: Any, marks: Sequence[Mark], transform: Any, look: dict[str, Any]) -> None:
    """Whole even at the edge, without making room there for that."""
    drawn = place.plot([mark.x for mark in marks], [mark.y for mark in marks], transform=transform, **look)
    drawn[0].set(clip_on=False, in_layout=False)


def _points(place: Any, series: Series, transform: Any) -> None:
    for mark in series.marks:
        look = {**_look(series.key), "linestyle": ""}
        look |= {"markersize": 4.0, "alpha": 0.4} if mark.faint else {"markersize": 8.0, "zorder": 3}
        _draw(place, [mark], transform, look)


def _stacks(stacks: Sequence[Stack]) -> Sheet:
    """All tasks together in the first place, then each of them."""
    height = 0.24 * max(len(stack.bars) for stack in stacks) + 0.5
    sheet, places = _sheet(len(stacks), 3, (4.0, height), 0.6)
    present = {part.cause for stack in stacks for bar in stack.bars for part in bar.parts}
    handles: dict[str, Any] = {}
    for place, stack in zip(places, stacks, strict=True):
        place.set_title(stack.title, loc="left")
        names = [bar.title for bar in stack.bars]
        begins = [0.0] * len(names)
        for cause in (cause for cause in CAUSES if cause in present):
            shares = [
                sum(part.episodes for part in bar.parts if part.cause == cause) / bar.episodes for bar in stack.bars
            ]
            colour = CAUSES[cause].light
            drawn = place.barh(range(len(names)), shares, left=begins, color=colour, edgecolor="white", linewidth=0.5)
            handles.setdefault(cause, drawn)
            begins = [begin + share for begin, share in zip(begins, shares, strict=True)]
        place.set_yticks(range(len(names)), names)
        place.invert_yaxis()
        place.set_xlim(0, 1)
        place.set_xticks([0, 0.5, 1], ["0%", "50%", "100%"])
        place.tick_params(axis="y", length=0)
    sheet.legend(
        handles=list(handles.values()), labels=list(handles), loc="outside upper center", ncols=6, frameon=False
    )
    return sheet

"""Charts as inline SVG: colours come from the page, and what a mark says is shown when it is pointed at or focused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from bilevel.experiments.report.charts import Axis, Bar, Mark, Panel, Series
from bilevel.experiments.report.scores import Cell
from bilevel.experiments.report.styles import SERIES, slug
from bilevel.experiments.report.wording import rate

LANE = 1.4  # pixels between lines that coincide
REACH = 9.0  # pixels around a mark within which it is meant


@dataclass(frozen=True)
class Frame:
    """Where the plot is within the picture, in pixels."""

    width: float
    height: float
    left: float
    right: float = 10.0
    top: float = 20.0
    bottom: float = 40.0

    def x(self, axis: Axis, value: float) -> float:
        return self.left + axis.place(value) * (self.width - self.left - self.right)

    def y(self, axis: Axis, value: float) -> float:
        return self.height - self.bottom - axis.place(value) * (self.height - self.top - self.bottom)


FRAMES = {"small": Frame(320, 228, 38), "wide": Frame(520, 330, 56, top=24, bottom=48)}


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; `class_` is `class`, and `stroke_width` is `stroke-width`. `content` is not escaped."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    text = "".join(f' {key}="{_attribute(value)}"' for key, value in named.items())
    return f"<{name}{text}>{content}</{name}>"


def _attribute(value: object) -> str:
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return escape(text).replace("\n", "&#10;").replace("\t", "&#9;")


# Markers


def marker(key: str, x: float, y: float, size: float = 3.4) -> str:
    """The mark of a series."""
    style = SERIES[key]
    kind = "full" if style.full else "hollow"
    return tag("path", d=MARKERS[style.marker](x, y, size), class_=f"mark {kind}")


def _polygon(x: float, y: float, size: float, corners: Sequence[float], inner: float | None = None) -> str:
    """A path through corners at these angles, in degrees from the top."""
    radii = (size, inner or size)
    points = [
        (x + radii[n % 2] * math.sin(math.radians(a)), y - radii[n % 2] * math.cos(math.radians(a)))
        for n, a in enumerate(corners)
    ]
    return "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points) + "Z"


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0Z"


def _plus(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}h{2 * r:.1f}M{x:.1f} {y - r:.1f}v{2 * r:.1f}"


def cross(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}M{x - r:.1f} {y + r:.1f}l{2 * r:.1f} {-2 * r:.1f}"


MARKERS: Mapping[str, Callable[[float, float, float], str]] = {
    "circle": _circle,
    "plus": lambda x, y, r: _plus(x, y, 1.2 * r),
    "up": lambda x, y, r: _polygon(x, y, 1.25 * r, (0, 120, 240)),
    "down": lambda x, y, r: _polygon(x, y, 1.25 * r, (180, 300, 60)),
    "square": lambda x, y, r: _polygon(x, y, 1.3 * r, (45, 135, 225, 315)),
    "diamond": lambda x, y, r: _polygon(x, y, 1.3 * r, (0, 90, 180, 270)),
    "star": lambda x, y, r: _polygon(x, y, 1.5 * r, range(0, 360, 36), 0.65 * r),
}


# Panels


def panel_svg(panel: Panel) -> str:
    """A whole panel."""
    frame = FRAMES[panel.kind]
    drawn = [_axes(frame, panel)]
    for faint in (True, False):  # what is faint lies below
        drawn += [_series(frame, panel, number, faint) for number in reversed(range(len(panel.series)))]
    picture = tag("g", "".join(drawn), role="img", aria_label=description(panel))
    hits = _columns(frame, panel) if panel.joined else _points(frame, panel)
    return tag(
        "svg",
        picture + tag("g", hits, class_="hits"),
        class_=f"chart {panel.kind}",
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        role="group",
        aria_label=f"{panel.title}; arrow keys go from value to value",
    )


def description(panel: Panel) -> str:
    """What the picture shows, for somebody who cannot see it."""
    told = []
    for series in panel.series:
        marks = [mark for mark in series.marks if not mark.faint]
        ends = [marks[0], marks[-1]] if len(marks) > 1 else marks
        told.append(f"{series.title}: {' to '.join(mark.tip.replace(chr(10), ', ') for mark in ends)}")
    return f"{panel.title}: {panel.y.title} against {panel.x.title}. {'; '.join(told)}.".replace("\t", " ")


def _axes(frame: Frame, panel: Panel) -> str:
    left, right, bottom = frame.left, frame.width - frame.right, frame.height - frame.bottom
    parts = []
    for value, text in panel.y.ticks:
        y = frame.y(panel.y, value)
        parts.append(tag("path", d=f"M{left:.1f} {y:.1f}H{right:.1f}", class_="grid"))
        parts.append(tag("text", escape(text), x=left - 6, y=y + 3.8, class_="tick", text_anchor="end"))
    for value, text in panel.x.ticks:
        x = frame.x(panel.x, value)
        parts.append(tag("path", d=f"M{x:.1f} {bottom:.1f}v4", class_="axis"))
        parts.append(tag("text", escape(text), x=x, y=bottom + 17, class_="tick", text_anchor="middle"))
    parts.append(tag("path", d=f"M{left:.1f} {bottom:.1f}H{right:.1f}", class_="axis"))
    parts.append(tag("text", escape(panel.y.title), x=4, y=12, class_="name"))
    middle = (left + right) / 2
    parts.append(tag("text", escape(panel.x.title), x=middle, y=frame.height - 6, class_="name", text_anchor="middle"))
    return "".join(parts)


def _series(frame: Frame, panel: Panel, number: int, faint: bool) -> str:
    """Its faint marks, or the others with the line."""
    series = panel.series[number]
    marks = [mark for mark in series.marks if mark.faint == faint]
    if not marks:
        return ""
    lanes = len(panel.series) if panel.joined else 0
    shift = (number - (lanes - 1) / 2) * LANE if lanes > 2 else 0.0
    places = [(frame.x(panel.x, mark.x), frame.y(panel.y, mark.y) + shift) for mark in marks]
    parts = []
    if panel.joined:
        parts.append(_band(frame, panel, series, shift))
        dash = "" if SERIES[series.key].full else " dashed"
        parts.append(tag("path", d=_path(places), class_=f"line{dash}"))
    parts += [_mark(series.key, mark, place, panel.joined) for mark, place in zip(marks, places, strict=True)]
    return tag("g", "".join(parts), class_="series", data_series=series.key, style=f"color:var(--series-{series.key})")


def _band(frame: Frame, panel: Panel, series: Series, shift: float) -> str:
    ranged = [(mark.x, mark.low, mark.high) for mark in series.marks if mark.low is not None and mark.high is not None]
    if not any(low < high for _, low, high in ranged):
        return ""
    there = [(frame.x(panel.x, x), frame.y(panel.y, high) + shift) for x, _, high in ranged]
    back = [(frame.x(panel.x, x), frame.y(panel.y, low) + shift) for x, low, _ in reversed(ranged)]
    return tag("path", d=f"{_path([*there, *back])}Z", class_="band")


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _mark(key: str, mark: Mark, place: tuple[float, float], joined: bool) -> str:
    if mark.gave_up:
        return tag("path", d=cross(*place, 5.0), class_="cross")
    if joined:
        return marker(key, *place, 2.9)
    return tag("g", marker(key, *place, 3.0 if mark.faint else 6.5), class_="faint" if mark.faint else None)


# What is shown when something is pointed at


def _columns(frame: Frame, panel: Panel) -> str:
    """A strip for each value along the axis: all series have one."""
    values = sorted({mark.x for series in panel.series for mark in series.marks})
    centres = [frame.x(panel.x, value) for value in values]
    edges = [frame.left, *((a + b) / 2 for a, b in pairwise(centres)), frame.width - frame.right]
    strips = []
    for number, value in enumerate(values):
        lines = [f"{series.title}\t{mark.tip}" for series in panel.series for mark in series.marks if mark.x == value]
        tip = "\n".join([f"{panel.title}, {value:,.0f} object{'' if value == 1 else 's'}", *lines])
        x, width = edges[number], edges[number + 1] - edges[number]
        height = frame.height - frame.top - frame.bottom
        strip = tag("rect", x=x, y=frame.top, width=width, height=height, class_="strip")
        line = tag("path", d=f"M{centres[number]:.1f} {frame.top}v{height}", class_="guide")
        strips.append(hit(strip + line, tip, first=number == 0))
    return "".join(strips)


def _points(frame: Frame, panel: Panel) -> str:
    """Large marks are met first by the keyboard, and lie above faint ones."""
    found = [(mark, series.key) for series in panel.series for mark in series.marks]
    ordered = sorted(found, key=lambda one: not one[0].faint)
    hits = []
    for number, (mark, key) in enumerate(ordered):
        x, y = frame.x(panel.x, mark.x), frame.y(panel.y, mark.y)
        reach = tag("circle", cx=x, cy=y, r=5.0 if mark.faint else REACH, class_="point")
        hits.append(hit(reach, mark.tip, first=number == len(ordered) - 1, series=key))
    return "".join(hits)


def hit(content: str, tip: str, first: bool, series: str | None = None) -> str:
    """What can be pointed at or focused; the first of a chart is the one that Tab leads to."""
    said = tip.replace("\n", "; ").replace("\t", " ")
    return tag(
        "g",
        tag("title", escape(said)) + content,
        class_="hit",
        tabindex=0 if first else -1,
        role="img",
        aria_label=said,
        data_tip=tip,
        data_series=series,
    )


# Small ones


def swatch(key: str) -> str:
    """What a series looks like, for a legend."""
    dash = "" if SERIES[key].full else " dashed"
    content = tag("path", d="M1 7H27", class_=f"line{dash}") + marker(key, 14, 7, 3.6)
    return tag(
        "svg", content, class_="swatch", viewBox="0 0 28 14", aria_hidden="true", style=f"color:var(--series-{key})"
    )


def micro_svg(cell: Cell) -> str:
    """A cell's rate as a bar with its interval, and a stroke where the paper's is."""
    parts = [tag("rect", x=0, y=3, width=100, height=4, class_="track")]
    if cell.score:
        low, high = cell.score.interval
        parts.append(tag("rect", x=0, y=3, width=100 * cell.score.rate, height=4, class_="bar"))
        parts.append(tag("path", d=f"M{100 * low:.1f} 5H{100 * high:.1f}", class_="whisker"))
    if cell.paper is not None:
        parts.append(tag("path", d=f"M{min(max(100 * cell.paper, 0.7), 99.3):.1f} 0V10", class_="paper-tick"))
    return tag("svg", "".join(parts), class_="micro", viewBox="0 0 100 10", aria_hidden="true")


def bar_svg(bar: Bar, first: bool) -> str:
    """A bar in parts, as wide as there is room."""
    parts, begin = [], 0.0
    for number, part in enumerate(bar.parts):
        width = 1000 * part.episodes / bar.episodes
        style = f"fill:var(--cause-{slug(part.cause)})"
        box = tag("rect", x=begin, y=0, width=width, height=20, style=style, class_="part")
        parts.append(hit(box, part.tip, first=first and number == 0))
        begin += width
    label = f"{bar.title}: {rate(bar.successes / bar.episodes)} of {bar.episodes:,} episodes succeed"
    return tag(
        "svg",
        "".join(parts),
        class_="stack",
        viewBox="0 0 1000 20",
        preserveAspectRatio="none",
        role="group",
        aria_label=label,
    )

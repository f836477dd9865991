"""Drawings of policy graphs: SVG that any browser shows, in light and dark, and DOT for those who have Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from bilevel.planning.layered_layout import Link, Point, Route, Size, lay_out
from bilevel.planning.strong_cyclic import PolicyGraph
from bilevel.symbolic.domain import Facts

MOST_STATES = 80  # in one drawing; more cannot be read

MARGIN = 24.0  # pixels, as are all sizes
LETTER, SMALL_LETTER = 7.9, 6.7  # widths, on average, in a font of 13 and of 11 pixels
BOX_HEIGHT, LINE = 32.0, 15.0
PADDING = 12.0
CAPTION_HEIGHT = 52.0
LOOP = 24.0  # how far a loop sticks out
LONGEST_ACTION, LONGEST_FACT = 40, 28  # letters
MOST_FACTS = 2  # on a label

STYLE = """
  text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2129 }
  .small { font-size: 11px } .faint { fill: #6a7280 } .title { font-size: 15px; font-weight: 600 }
  .paper { fill: #ffffff } .veil { fill: #ffffff; opacity: .88 }
  .box { fill: #f2f4f8; stroke: #98a1b0; stroke-width: 1.2 }
  .start .box { fill: #e1edfd; stroke: #3878c7; stroke-width: 2 }
  .goal .box { fill: #dff3e3; stroke: #2f8f46; stroke-width: 2 }
  .stuck .box { fill: #fde4e1; stroke: #c8402f; stroke-width: 2 }
  .link { fill: none; stroke: #7d8697; stroke-width: 1.3 } .tip { fill: #7d8697 }
  .back .link { stroke: #b9741a; stroke-dasharray: 5 3 } .back .tip { fill: #b9741a } .back text { fill: #8f560c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7ec } .faint { fill: #98a1b0 } .paper { fill: #14171c } .veil { fill: #14171c }
    .box { fill: #232831; stroke: #667082 }
    .start .box { fill: #17304f; stroke: #5b9bea } .goal .box { fill: #16381f; stroke: #4fb368 }
    .stuck .box { fill: #4a1d18; stroke: #e36a5a }
    .link { stroke: #8b94a5 } .tip { fill: #8b94a5 }
    .back .link { stroke: #e0a04a } .back .tip { fill: #e0a04a } .back text { fill: #e8b468 }
  }
"""


@dataclass(frozen=True)
class _Box:
    """What stands in a node of the drawing: a state, or an ellipsis for those that are left out."""

    kind: str  # a class of the style
    number: str
    text: str
    tooltip: str
    loop: tuple[str, ...] | None = None  # the label of an outcome that changes nothing

    @property
    def width(self) -> float:
        number = (len(self.number) + 1) * SMALL_LETTER if self.number else 0.0
        return 2 * PADDING + number + len(self.text) * LETTER

    @property
    def size(self) -> Size:
        """With room for a loop, on both sides so that the box stays in the middle."""
        beside = 0.0 if self.loop is None else LOOP + 6 + _label_size(self.loop).width
        return Size(self.width + 2 * beside, BOX_HEIGHT)


class _Arrow(NamedTuple):
    """An outcome that leads to another state."""

    link: Link
    label: tuple[str, ...]
    tooltip: str


def draw_policy(graph: PolicyGraph, headline: str, most_states: int = MOST_STATES) -> str:
    """The graph as SVG: states from the initial one downwards, an arrow per outcome, cycles as dashed arrows.

    Pointing at a state shows the facts that differ from the initial state, at an arrow what changes.
    """
    shown = min(most_states, len(graph.nodes))
    boxes, arrows = _parts(graph, shown)
    layout = lay_out([box.size for box in boxes], [arrow.link for arrow in arrows])
    cycles = any(box.loop is not None for box in boxes) or any(route.upwards for route in layout.routes)
    details = _details(graph, shown, cycles)
    width = max(layout.size.width, 1.1 * LETTER * len(headline), SMALL_LETTER * len(details)) + 2 * MARGIN
    height = layout.size.height + CAPTION_HEIGHT + 2 * MARGIN
    left, top = (width - layout.size.width) / 2, MARGIN + CAPTION_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="title" x="{MARGIN:g}" y="{MARGIN + 14:g}">{escape(headline)}</text>',
        f'<text class="small faint" x="{MARGIN:g}" y="{MARGIN + 34:g}">{escape(details)}</text>',
        f'<g transform="translate({left:.1f} {top:.1f})">',
        *(_drawn_arrow(arrow, route) for arrow, route in zip(arrows, layout.routes, strict=True)),
        *(_drawn_box(box, centre) for box, centre in zip(boxes, layout.centres, strict=True)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _parts(graph: PolicyGraph, shown: int) -> tuple[list[_Box], list[_Arrow]]:
    """What is drawn of the first states."""
    boxes = [_box(graph, number) for number in range(shown)]
    arrows = []
    for source, target in _edges(graph, shown):
        if target < 0:  # one of those left out
            arrows.append(_Arrow(Link(source, len(boxes)), (), "not drawn"))
            boxes.append(_Box("more", "", "…", "states that are not drawn"))
        elif source != target:
            label = _shortened(graph.distinction(source, target))
            change = _change(graph.states[source], graph.states[target])
            arrows.append(_Arrow(Link(source, target, _label_size(label)), label, change))
    return boxes, arrows


def _edges(graph: PolicyGraph, shown: int) -> Iterator[tuple[int, int]]:
    """Sources and targets; -1 once for each state from which some are left out."""
    for source, node in enumerate(graph.nodes[:shown]):
        drawn = [(source, target if target < shown else -1) for target in node.outcomes]
        yield from dict.fromkeys(drawn)


def _box(graph: PolicyGraph, number: int) -> _Box:
    node = graph.nodes[number]
    stuck = not node.is_goal and not node.outcomes
    kind = "stuck" if stuck else "goal" if node.is_goal else "start" if number == 0 else "state"
    text = "goal" if node.is_goal else str(node.action) if node.action else "no action"
    text = text if len(text) <= LONGEST_ACTION else f"{text[:LONGEST_ACTION]}…"
    if stuck and node.action:
        text += " cannot be done"
    difference = _change(graph.states[0], graph.states[number]) or "as at first"
    loop = _shortened(graph.distinction(number, number)) if number in node.outcomes else None
    return _Box(kind, str(number), text, f"{node.action or text}\n{difference}", loop)


def _details(graph: PolicyGraph, shown: int, cycles: bool) -> str:
    count = len(graph.nodes)
    if shown < count or not graph.complete:
        return f"the first {shown} of {'' if graph.complete else 'at least '}{max(count, len(graph.states))} states"
    dashed = ", dashed: back to an earlier one" if cycles else ""
    return f"{count} state{'' if count == 1 else 's'}; blue: the first, green: the goal{dashed}"


def _change(before: Facts, after: Facts) -> str:
    """A line for each fact that comes or goes."""
    return "\n".join([*(f"+ {fact}" for fact in sorted(after - before)), *(f"− {f}" for f in sorted(before - after))])


def _shortened(facts: Sequence[str]) -> tuple[str, ...]:
    lines = [fact if len(fact) <= LONGEST_FACT else f"{fact[:LONGEST_FACT]}…" for fact in facts]
    return (
        (*lines[: MOST_FACTS - 1], f"and {len(lines) - MOST_FACTS + 1} more")
        if len(lines) > MOST_FACTS
        else tuple(lines)
    )


def _label_size(lines: Sequence[str]) -> Size:
    return Size(max(map(len, lines)) * SMALL_LETTER + 6, LINE * len(lines) + 2) if lines else Size()


def _drawn_box(box: _Box, centre: Point) -> str:
    left, top = centre.x - box.width / 2, centre.y - BOX_HEIGHT / 2
    text = left + PADDING + ((len(box.number) + 1) * SMALL_LETTER if box.number else 0)
    lines = [
        f'<g class="{box.kind}"><title>{escape(box.tooltip)}</title>',
        *([] if box.loop is None else [_loop(left + box.width, centre.y, box.loop)]),
        f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{BOX_HEIGHT:g}" rx="7"/>',
        f'<text class="small faint" x="{left + PADDING - 2:.1f}" y="{centre.y + 4:.1f}">{box.number}</text>',
        f'<text x="{text:.1f}" y="{centre.y + 4.5:.1f}">{escape(box.text)}</text></g>',
    ]
    return "\n".join(lines)


def _loop(x: float, y: float, label: Sequence[str]) -> str:
    """From the right edge of a box back to it."""
    curve = f"M{x:.1f} {y + 8:.1f} c{LOOP + 8:g} 9 {LOOP + 8:g} -25 6 -17"
    text = _lines(label, Point(x + LOOP + 6, y), "start")
    return f'<g class="back"><path class="link" d="{curve}"/>{_tip(Point(x, y - 8.5), -1, 0)}{text}</g>'


def _drawn_arrow(arrow: _Arrow, route: Route) -> str:
    points = route.points
    curve = "M"
    for one, other in zip(points[::2], points[1::2], strict=True):  # straight through layers, curved between them
        middle = (one.y + other.y) / 2
        curve += f"{one.x:.1f} {one.y:.1f} C{one.x:.1f} {middle:.1f} {other.x:.1f} {middle:.1f}"
        curve += f" {other.x:.1f} {other.y:.1f} L"
    width, height = arrow.link.label
    parts = [
        f"<title>{escape(arrow.tooltip)}</title>",
        f'<path class="link" d="{curve.removesuffix(" L")}"/>',
        _tip(points[-1], 0, -1 if route.upwards else 1),
    ]
    if arrow.label:
        x, y = route.label.x - width / 2, route.label.y - height / 2
        parts.append(f'<rect class="veil" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>')
        parts.append(_lines(arrow.label, route.label, "middle"))
    return f'<g class="{"back" if route.upwards else "forth"}">{"".join(parts)}</g>'


def _tip(at: Point, right: int, down: int) -> str:
    """A triangle that ends here and points this way."""
    x, y = at
    side, back = (down * 4.5, right * 4.5), (x - right * 8, y - down * 8)
    corners = [(x, y), (back[0] + side[0], back[1] + side[1]), (back[0] - side[0], back[1] - side[1])]
    return f'<path class="tip" d="M{" L".join(f"{a:.1f} {b:.1f}" for a, b in corners)} Z"/>'


def _lines(lines: Sequence[str], centre: Point, anchor: str) -> str:
    top = centre.y - LINE * (len(lines) - 1) / 2 + 4
    return "".join(
        f'<text class="small" text-anchor="{anchor}" x="{centre.x:.1f}" y="{top + LINE * i:.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )


def policy_dot(graph: PolicyGraph, headline: str) -> str:
    """The whole graph in Graphviz's language."""
    lines = [
        f"digraph {_quoted(headline)} {{",
        f"  label={_quoted(headline)}; labelloc=t",
        '  node [shape=box, style="rounded,filled", fillcolor="#f2f4f8", fontname=monospace]',
        "  edge [fontname=monospace, fontsize=10]",
    ]
    for number, node in enumerate(graph.nodes):
        colour = "#dff3e3" if node.is_goal else "#e1edfd" if number == 0 else "#f2f4f8" if node.outcomes else "#fde4e1"
        text = "goal" if node.is_goal else str(node.action or "no action")
        tooltip = _change(graph.states[0], graph.states[number]) or "as at first"
        label = _quoted(f"{number} {text}")
        lines.append(f'  {number} [label={label}, fillcolor="{colour}", tooltip={_quoted(tooltip)}]')
        labels = {target: ", ".join(graph.distinction(number, target)) for target in node.outcomes}
        lines.extend(f"  {number} -> {target} [label={_quoted(label)}]" for target, label in labels.items())
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

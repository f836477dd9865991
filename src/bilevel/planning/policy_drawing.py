"""Drawings of policy graphs: SVG that any browser shows, in light and dark, and DOT for those who have Graphviz.

A state stands in the row of its distance from the first, so that an arrow leads one row down or, dashed, to a state
met before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from math import atan2, degrees
from typing import NamedTuple

from bilevel.planning.strong_cyclic import ActionGraph, action_in, distinction
from bilevel.symbolic.domain import Facts

MOST_STATES = 80  # in one drawing; more cannot be read

MARGIN, TOP = 24.0, 100.0  # pixels, as are all sizes
LETTER, SMALL_LETTER = 7.9, 6.7  # widths, on average, in a font of 13 and of 11 pixels
BOX_HEIGHT, ROW_HEIGHT, LINE = 32.0, 104.0, 15.0
PADDING, GAP = 12.0, 30.0
LOOP = 24.0  # how far a loop sticks out
LONGEST_ACTION, LONGEST_FACT = 40, 28  # letters
MOST_FACTS = 2  # on a label
MIDDLE, NEAR_HEAD = (1 / 8, 3 / 8, 3 / 8, 1 / 8), (1 / 64, 9 / 64, 27 / 64, 27 / 64)  # of a curve: weights of points

COLOURS = {"state": "#f2f4f8", "start": "#e1edfd", "goal": "#dff3e3", "stuck": "#fde4e1"}

Point = tuple[float, float]

STYLE = """
  text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2129 }
  .small { font-size: 11px } .faint { fill: #6a7280 } .title { font-size: 15px; font-weight: 600 }
  .paper { fill: #ffffff } .veil { stroke: #ffffff; stroke-width: 5; stroke-linejoin: round }
  .box { fill: #f2f4f8; stroke: #98a1b0; stroke-width: 1.2 }
  .start .box { fill: #e1edfd; stroke: #3878c7; stroke-width: 2 }
  .goal .box { fill: #dff3e3; stroke: #2f8f46; stroke-width: 2 }
  .stuck .box { fill: #fde4e1; stroke: #c8402f; stroke-width: 2 }
  .link { fill: none; stroke: #7d8697; stroke-width: 1.3 } .tip { fill: #7d8697 }
  .back .link { stroke: #b9741a; stroke-dasharray: 5 3 } .back .tip { fill: #b9741a } .back text { fill: #8f560c }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7ec } .faint { fill: #98a1b0 } .paper { fill: #14171c } .veil { stroke: #14171c }
    .box { fill: #232831; stroke: #667082 }
    .start .box { fill: #17304f; stroke: #5b9bea } .goal .box { fill: #16381f; stroke: #4fb368 }
    .stuck .box { fill: #4a1d18; stroke: #e36a5a }
    .link { stroke: #8b94a5 } .tip { fill: #8b94a5 }
    .back .link { stroke: #e0a04a } .back .tip { fill: #e0a04a } .back text { fill: #e8b468 }
  }
"""


@dataclass(eq=False)
class _Box:
    """A state, or an ellipsis for those that are left out below another one."""

    kind: str  # a class of the style
    number: str
    text: str
    tooltip: str
    width: float
    row: int
    above: list[_Box]
    room: float  # needed to both sides of the centre
    x: float = 0.0  # of the centre

    @property
    def y(self) -> float:
        return TOP + BOX_HEIGHT / 2 + self.row * ROW_HEIGHT


class _Arrow(NamedTuple):
    """An outcome."""

    source: _Box
    target: _Box
    label: Sequence[str]
    tooltip: str

    @property
    def kind(self) -> str:
        return "forth" if self.target.row > self.source.row else "back"


def draw_policy(graph: ActionGraph, headline: str, most_states: int = MOST_STATES) -> str:
    """The graph as SVG: states from the initial one downwards, an arrow per outcome.

    Pointing at a state shows the facts that differ from the initial state, at an arrow what changes.
    """
    shown = list(graph.choices)[:most_states]
    boxes, arrows = _parts(graph, shown)
    right = _place(boxes)
    details = _details(graph, len(shown), any(arrow.kind == "back" for arrow in arrows))
    width = max(right, 1.1 * LETTER * len(headline) + MARGIN, SMALL_LETTER * len(details) + MARGIN) + MARGIN
    height = max(box.y for box in boxes) + BOX_HEIGHT / 2 + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{STYLE}</style>",
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="title" x="{MARGIN:g}" y="{MARGIN + 14:g}">{escape(headline)}</text>',
        f'<text class="small faint" x="{MARGIN:g}" y="{MARGIN + 34:g}">{escape(details)}</text>',
        *map(_drawn_arrow, arrows),
        *filter(None, map(_drawn_label, arrows)),
        *map(_drawn_box, boxes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _parts(graph: ActionGraph, shown: Sequence[Facts]) -> tuple[list[_Box], list[_Arrow]]:
    """What is drawn of these states, with the room that they need."""
    box_of = {state: _box(graph, state, number) for number, state in enumerate(shown)}
    boxes, arrows = list(box_of.values()), []
    for here, box in box_of.items():
        outcomes = [after for choice in graph.choices[here] for after in choice.outcomes]
        for there in filter(box_of.__contains__, outcomes):
            target, label = box_of[there], _shortened(distinction(graph, here, there))
            arrows.append(_Arrow(box, target, label, _change(here, there)))
            if target is box:
                box.room += LOOP + _label_width(label)
            elif target.row > box.row:
                target.above.append(box)
                target.room = max(target.room, 0.6 * _label_width(label))
        if not box_of.keys() >= set(outcomes):
            boxes.append(_Box("more", "", "…", "states that are not drawn", 32.0, box.row + 1, [box], 16.0))
            arrows.append(_Arrow(box, boxes[-1], (), "not drawn"))
    return boxes, arrows


def _box(graph: ActionGraph, state: Facts, number: int) -> _Box:
    action, is_goal, stuck = action_in(graph, state), state in graph.goals, graph.stops(state)
    kind = "stuck" if stuck else "goal" if is_goal else "start" if number == 0 else "state"
    text = "goal" if is_goal else str(action or "no action")
    tooltip = f"{text}\n{_change(next(iter(graph.choices)), state) or 'as at first'}"
    text = text if len(text) <= LONGEST_ACTION else f"{text[:LONGEST_ACTION]}…"
    text += " cannot be done" * bool(stuck and action)
    width = 2 * PADDING + (len(str(number)) + 1) * SMALL_LETTER + len(text) * LETTER
    return _Box(kind, str(number), text, tooltip, width, len(graph.path(state)) - 1, [], width / 2)


def _place(boxes: Sequence[_Box]) -> float:
    """Put each box below the middle of those that lead to it, as near as the others in its row allow; the right end."""
    for row in range(max(box.row for box in boxes) + 1):
        members = [box for box in boxes if box.row == row]
        wanted = {box: sum(a.x for a in box.above) / len(box.above) if box.above else 0.0 for box in members}
        members.sort(key=lambda box: wanted[box])
        free = float("-inf")
        for box in members:
            box.x = max(wanted[box], free + box.room)
            free = box.x + box.room + GAP
        shift = sum(box.x - wanted[box] for box in members) / len(members)
        for box in members:
            box.x -= shift
    left = min(box.x - box.room for box in boxes)
    for box in boxes:
        box.x += MARGIN - left
    return max(box.x + box.room for box in boxes)


def _details(graph: ActionGraph, shown: int, cycles: bool) -> str:
    count = len(graph.choices)
    if shown < count or not graph.complete:
        return f"the first {shown} of {'' if graph.complete else 'at least '}{max(count, len(graph.parents))} states"
    dashed = ", dashed: to a state met before" if cycles else ""
    return f"{count} state{'' if count == 1 else 's'}; blue: the first, green: the goal{dashed}"


def _change(before: Facts, after: Facts) -> str:
    """A line for each fact that comes or goes."""
    return "\n".join([*(f"+ {fact}" for fact in sorted(after - before)), *(f"− {f}" for f in sorted(before - after))])


def _shortened(facts: Sequence[str]) -> tuple[str, ...]:
    lines = [fact if len(fact) <= LONGEST_FACT else f"{fact[:LONGEST_FACT]}…" for fact in facts]
    if len(lines) > MOST_FACTS:
        lines = [*lines[: MOST_FACTS - 1], f"and {len(lines) - MOST_FACTS + 1} more"]
    return tuple(lines)


def _label_width(lines: Sequence[str]) -> float:
    return max(map(len, lines), default=0) * SMALL_LETTER


def _drawn_box(box: _Box) -> str:
    left, top = box.x - box.width / 2, box.y - BOX_HEIGHT / 2
    text = box.x + box.width / 2 - PADDING - len(box.text) * LETTER
    return (
        f'<g class="{box.kind}"><title>{escape(box.tooltip)}</title>'
        f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{BOX_HEIGHT:g}" rx="7"/>'
        f'<text class="small faint" x="{left + PADDING - 2:.1f}" y="{box.y + 4:.1f}">{box.number}</text>'
        f'<text x="{text:.1f}" y="{box.y + 4.5:.1f}">{escape(box.text)}</text></g>'
    )


def _drawn_arrow(arrow: _Arrow) -> str:
    """A curve from box to box, and its head."""
    _, _, second, end = points = _curve(arrow.source, arrow.target)
    curve = "M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}".format(*chain.from_iterable(points))
    angle = degrees(atan2(end[1] - second[1], end[0] - second[0]))
    return (
        f'<g class="{arrow.kind}"><title>{escape(arrow.tooltip)}</title><path class="link" d="{curve}"/>'
        f'<path class="tip" d="M0 0 L-8 4.5 L-8 -4.5 Z" '
        f'transform="translate({end[0]:.1f} {end[1]:.1f}) rotate({angle:.0f})"/></g>'
    )


def _drawn_label(arrow: _Arrow) -> str:
    """The label on its arrow, near the head where it leads down, beside a loop."""
    points = _curve(arrow.source, arrow.target)
    weights = NEAR_HEAD if arrow.kind == "forth" else MIDDLE
    x, y = (sum(w * point[axis] for w, point in zip(weights, points, strict=True)) for axis in (0, 1))
    if arrow.target is arrow.source:
        x += 8 + _label_width(arrow.label) / 2
    y += 4 - LINE * (len(arrow.label) - 1) / 2
    texts = [
        f'<text class="small{veil}" text-anchor="middle" x="{x:.1f}" y="{y + LINE * index:.1f}">{escape(line)}</text>'
        for index, line in enumerate(arrow.label)
        for veil in (" veil", "")
    ]
    return f'<g class="{arrow.kind}">{"".join(texts)}</g>' if texts else ""


def _curve(source: _Box, target: _Box) -> tuple[Point, Point, Point, Point]:
    """The ends of a Bézier curve and, between them, its control points."""
    top, bottom, right = source.y - BOX_HEIGHT / 2, source.y + BOX_HEIGHT / 2, source.x + source.width / 2
    if target.row > source.row:  # down
        end = target.y - BOX_HEIGHT / 2
        middle = (bottom + end) / 2
        return (source.x, bottom), (source.x, middle), (target.x, middle), (target.x, end)
    if target is source:  # a loop on the right
        out = right + LOOP + 8
        return (right, source.y + 8), (out, source.y + 17), (out, source.y - 17), (right, source.y - 8)
    if target.row == source.row:  # sideways, over the row
        return (source.x, top), (source.x, top - 40), (target.x, top - 40), (target.x, top)
    end = target.x + target.width / 2  # up along the right sides
    out = max(right, end) + 24 + 10 * (source.row - target.row)
    return (right - 12, top), (out, top - 12), (out, target.y + 8), (end, target.y + 8)


def policy_dot(graph: ActionGraph, headline: str) -> str:
    """The whole graph in Graphviz's language."""
    lines = [
        f"digraph {_quoted(headline)} {{",
        f"  label={_quoted(headline)}; labelloc=t",
        '  node [shape=box, style="rounded,filled", fillcolor="#f2f4f8", fontname=monospace]',
        "  edge [fontname=monospace, fontsize=10]",
    ]
    numbers = {state: number for number, state in enumerate(graph.parents)}
    for state, choices in graph.choices.items():
        box = _box(graph, state, numbers[state])
        change = _quoted(_change(next(iter(graph.choices)), state) or "as at first")
        label = _quoted(f"{box.number} {'goal' if state in graph.goals else action_in(graph, state) or 'no action'}")
        lines.append(f'  {box.number} [label={label}, fillcolor="{COLOURS[box.kind]}", tooltip={change}]')
        for after in choices[0].outcomes if choices else ():
            label = _quoted(", ".join(distinction(graph, state, after)))
            lines.append(f"  {box.number} -> {numbers[after]} [label={label}]")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

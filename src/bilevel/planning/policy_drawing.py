"""Drawings of policy graphs: SVG that any browser shows, in light and dark, and DOT for those who have Graphviz.

A state stands in the row of its distance from the first, so that an arrow leads one row down or, dashed, to a state
met before. Within a row, states stand in the order in which they were met, so that few arrows cross.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from bilevel.planning.strong_cyclic import ActionGraph, action_in, distinction
from bilevel.symbolic.adl_actions import users_action
from bilevel.symbolic.domain import Facts

MOST_STATES = 80  # in one drawing; more cannot be read
LONGEST = 40  # letters of a label

MARGIN, TOP, LETTER, SMALL_LETTER = 24, 100, 7.9, 6.7  # pixels, as are all sizes; letters in fonts of 13 and 11 pixels
HEIGHT, ROW, GAP, LOOP = 32, 104, 30, 32  # of a box, from row to row, between boxes, of a loop
COLOURS = {"state": "#f2f4f8", "start": "#e1edfd", "goal": "#dff3e3", "stuck": "#fde4e1"}

STYLE = """
  text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1d2129; text-anchor: middle }
  .title { font-size: 15px; font-weight: 600; text-anchor: start }
  .faint { font-size: 11px; fill: #6a7280; text-anchor: start } .paper { fill: #ffffff }
  .label { font-size: 11px; paint-order: stroke; stroke: #ffffff; stroke-width: 7; stroke-linejoin: round }
  .box { fill: #f2f4f8; stroke: #98a1b0; stroke-width: 1.5 } .start .box { fill: #e1edfd; stroke: #3878c7 }
  .goal .box { fill: #dff3e3; stroke: #2f8f46 } .stuck .box { fill: #fde4e1; stroke: #c8402f }
  .link { fill: none; stroke: #7d8697; stroke-width: 1.3; marker-end: url(#down) } #down { fill: #7d8697 }
  .back .link { stroke: #b9741a; stroke-dasharray: 5 3; marker-end: url(#back) } #back, .back text { fill: #a06414 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7ec } .faint { fill: #98a1b0 } .paper { fill: #14171c } .label { stroke: #14171c }
    .box { fill: #232831; stroke: #667082 } .start .box { fill: #17304f; stroke: #5b9bea }
    .goal .box { fill: #16381f; stroke: #4fb368 } .stuck .box { fill: #4a1d18; stroke: #e36a5a }
    .back .link { stroke: #e0a04a } #back, .back text { fill: #e8b468 }
  }
"""
TIP = (
    '<marker id="{}" viewBox="0 0 8 9" refX="7.5" refY="4.5" markerWidth="8" markerHeight="9" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4.5 L0 9 Z"/></marker>'
)


class _Box(NamedTuple):
    """A state; `x` is where its middle is."""

    kind: str  # a class of the style
    text: str
    row: int
    x: float = 0.0

    @property
    def y(self) -> float:
        return TOP + HEIGHT / 2 + self.row * ROW

    @property
    def half(self) -> float:
        return 12 + len(self.text) * LETTER / 2


def draw_policy(graph: ActionGraph, headline: str, most_states: int = MOST_STATES) -> str:
    """The graph as SVG: states from the initial one downwards, an arrow per outcome.

    Pointing at a state shows the facts that differ from the initial state, at an arrow what changes.
    """
    boxes = {state: _box(graph, state, number) for number, state in enumerate([*graph.choices][:most_states])}
    outcomes = [(here, after) for here in boxes for choice in graph.choices[here] for after in choice.outcomes]
    labels = {(a, b): _label(graph, a, b) for a, b in outcomes if b in boxes}
    boxes = _placed(boxes, labels)
    start, count, more = next(iter(boxes)), len(graph.choices), "" if graph.complete else "at least "
    details = f"{count} state{'s' * (count != 1)}; blue: the first, green: the goal, dashed: to a state met before"
    if len(boxes) < count or not graph.complete:
        details = f"the first {len(boxes)} of {more}{max(count, len(graph.parents))} states"
    beside = LOOP + SMALL_LETTER * max([len(labels.get((state, state), "")) for state in boxes])
    right = max(box.x + box.half for box in boxes.values()) + beside
    width = max(right, SMALL_LETTER * len(details), 1.2 * LETTER * len(headline)) + 2 * MARGIN
    height = max(box.y for box in boxes.values()) + HEIGHT / 2 + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{STYLE}</style><defs>{TIP.format('down')}{TIP.format('back')}</defs>",
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text class="title" x="{MARGIN}" y="38">{escape(headline)}</text>',
        f'<text class="faint" x="{MARGIN}" y="58">{escape(details)}</text>',
        *(_arrow(boxes[a], boxes[b], label, _change(a, b)) for (a, b), label in labels.items()),
        *(_drawn(box, _change(start, state) or "as at first") for state, box in boxes.items()),
    ]
    return "\n".join([*lines, "</svg>\n"])


def _box(graph: ActionGraph, state: Facts, number: int) -> _Box:
    action, is_goal, stuck = action_in(graph, state), state in graph.goals, graph.stops(state)
    kind = "stuck" if stuck else "goal" if is_goal else "start" if number == 0 else "state"
    text = "goal" if is_goal else str(users_action(action)) if action else "no action"
    return _Box(kind, f"{number} {text}{' cannot be done' * bool(stuck and action)}", len(graph.path(state)) - 1)


def _label(graph: ActionGraph, here: Facts, there: Facts) -> str:
    text = ", ".join(distinction(graph, here, there))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _placed(boxes: Mapping[Facts, _Box], labels: Mapping[tuple[Facts, Facts], str]) -> dict[Facts, _Box]:
    """The boxes side by side in their rows, each row in the middle, with room for the labels of their arrows."""
    room = {state: box.half for state, box in boxes.items()}
    for (here, there), label in labels.items():
        beside = boxes[here].half + LOOP if here == there else 0
        room[there] = max(room[there], beside + len(label) * SMALL_LETTER * (1 if beside else 0.6))
    places: dict[Facts, float] = {}
    ends = [0.0] * len(boxes)  # of the rows, as far as they are filled
    for state, box in boxes.items():
        places[state] = ends[box.row] + room[state]
        ends[box.row] += 2 * room[state] + GAP
    return {
        state: box._replace(x=MARGIN + places[state] + (max(ends) - ends[box.row]) / 2) for state, box in boxes.items()
    }


def _change(before: Facts, after: Facts) -> str:
    """A line for each fact that comes or goes."""
    return "\n".join([*(f"+ {fact}" for fact in sorted(after - before)), *(f"− {f}" for f in sorted(before - after))])


def _drawn(box: _Box, tooltip: str) -> str:
    corner = f'x="{box.x - box.half:.1f}" y="{box.y - HEIGHT / 2:.1f}"'
    return (
        f'<g class="{box.kind}"><title>{escape(tooltip)}</title>'
        f'<rect class="box" {corner} width="{2 * box.half:.1f}" height="{HEIGHT}" rx="7"/>'
        f'<text x="{box.x:.1f}" y="{box.y + 4.5:.1f}">{escape(box.text)}</text></g>'
    )


def _arrow(source: _Box, target: _Box, label: str, tooltip: str) -> str:
    """A curve from box to box: down, over the row, or along the right sides, up or round to the same box."""
    kind = "down" if target.row > source.row else "back"
    x, y, end_x, end_y = source.x, source.y, target.x, target.y
    if kind == "down":
        y, end_y = y + HEIGHT / 2, end_y - HEIGHT / 2
        curve, place = f"{x} {(y + end_y) / 2} {end_x} {(y + end_y) / 2}", (0.2 * x + 0.8 * end_x, end_y - 22)
    elif target.row == source.row and target != source:
        y = end_y = y - HEIGHT / 2
        curve, place = f"{x} {y - 40} {end_x} {y - 40}", ((x + end_x) / 2, y - 26)
    else:
        x, y, end_x, end_y = x + source.half, y - 8, end_x + target.half, end_y + 8
        out = max(x, end_x) + LOOP + 10 * (source.row - target.row)
        curve, place = f"{out} {y - 9} {out} {end_y + 9}", (out - LOOP / 4, (y + end_y) / 2 + 4)
        if target == source:
            place = (x + LOOP + len(label) * SMALL_LETTER / 2, source.y + 4)
    return (
        f'<g class="{kind}"><title>{escape(tooltip)}</title>'
        f'<path class="link" d="M{x} {y} C{curve} {end_x} {end_y}"/>'
        f'<text class="label" x="{place[0]:.1f}" y="{place[1]:.1f}">{escape(label)}</text></g>'
    )


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
        number, box = numbers[state], _box(graph, state, numbers[state])
        change = _quoted(_change(next(iter(graph.choices)), state) or "as at first")
        lines.append(f'  {number} [label={_quoted(box.text)}, fillcolor="{COLOURS[box.kind]}", tooltip={change}]')
        for after in choices[0].outcomes if choices else ():
            label = _quoted(", ".join(distinction(graph, state, after)))
            lines.append(f"  {number} -> {numbers[after]} [label={label}]")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

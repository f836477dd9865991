"""A drawing as SVG that can be read on a phone and on a dark page: narrow, with large letters, on a ground of its own.

Things are put below each other: every method draws at the pen's height and moves the pen down.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 460  # of a drawing; a phone shows it at about 0.8 of that
MARGIN = 16
LINE = 21  # from one line of text to the next
MONO = 0.602  # width of a letter of the fixed font, as a part of its size
CODE_SIZE = 13

STYLE = """
  .ground { fill: #ffffff; stroke: #d5d9de; }
  text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #22272e; }
  .code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  .head { font-weight: 600; font-size: 15px; }
  .small, .small.code { font-size: 12px; }
  .faint { fill: #6b7480; }
  .strong { font-weight: 600; }
  .box { fill: #f3f5f7; stroke: #c3c9d1; }
  .first { fill: #dceafd; stroke: #4a86d8; }
  .second { fill: #fdebd0; stroke: #d6913a; }
  .third { fill: #dff3e2; stroke: #4e9f60; }
  .gone { fill: #fbe3e1; stroke: #cf6a60; }
  .line { stroke: #6b7480; stroke-width: 1.5; fill: none; }
  .tag { fill: #ffffff; stroke: #22272e; stroke-width: 0.75; opacity: 0.88; }
  .on-tag { fill: #22272e; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1c2128; stroke: #3b434d; }
    text { fill: #e4e8ed; }
    .faint { fill: #9aa5b1; }
    .box { fill: #2a313a; stroke: #4b5562; }
    .first { fill: #1d3a5f; stroke: #6ea3ea; }
    .second { fill: #553a14; stroke: #e0a862; }
    .third { fill: #1e4427; stroke: #77c288; }
    .gone { fill: #54241f; stroke: #e08a81; }
    .line { stroke: #9aa5b1; }
    .on-tag { fill: #22272e; }
  }
"""


class Chip(NamedTuple):
    """A short text in a box, such as a fact; `kind` is a class of the style."""

    text: str
    kind: str = "box"


class Drawing:
    """An SVG that grows downwards."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self.y = MARGIN

    def add(self, part: str) -> None:
        """Add a piece of SVG as it is; the pen stays where it is."""
        self._parts.append(part)

    def text(self, text: str, kind: str = "", x: float = MARGIN) -> None:
        """Write one line."""
        self.y += LINE
        self.put(x, self.y - 6, text, kind)

    def put(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Write a text at a place of its own."""
        kept = ' xml:space="preserve"' if "  " in text else ""
        self.add(f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}"{kept}>{escape(text)}</text>')

    def head(self, text: str) -> None:
        """Write what the next part is about."""
        self.space(8)
        self.text(text, "head")
        self.space(3)

    def space(self, height: float) -> None:
        self.y += round(height)

    def box(self, x: float, y: float, width: float, height: float, kind: str = "box") -> None:
        self.add(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" class="{kind}"/>')

    def arrow(self, points: Sequence[tuple[float, float]], both_ways: bool = False) -> None:
        """Draw a line through the points, with a head at its end, or at both."""
        line = " ".join(f"{x:g},{y:g}" for x, y in points)
        start = ' marker-start="url(#head)"' if both_ways else ""
        self.add(f'<polyline points="{line}" class="line" marker-end="url(#head)"{start}/>')

    def chips(self, chips: Sequence[Chip], x: float = MARGIN, right: float = WIDTH - MARGIN) -> None:
        """Draw boxes with texts in them, side by side, as many in a row as there is room for."""
        at, height = x, 24
        for chip in chips:
            width = letters(chip.text) + 14
            if at + width > right and at > x:
                at, self.y = x, self.y + height + 6
            self.box(at, self.y, width, height, chip.kind)
            self.put(at + 7, self.y + 16.5, chip.text, "code")
            at += width + 6
        self.y += height + 4

    def __str__(self) -> str:
        height = self.y + MARGIN
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img">'
        marker = (
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="#808a96"/></marker></defs>'
        )
        ground = f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="8" class="ground"/>'
        style = f"<style>{STYLE}</style>"
        body = "\n".join([head, f"<title>{escape(self._title)}</title>", style, marker, ground, *self._parts])
        return f"{body}\n</svg>\n"


def letters(text: str, size: float = CODE_SIZE) -> float:
    """Return how wide a text in the fixed font is."""
    return len(text) * MONO * size

"""Draws which parts of a program import which: what imports nothing at the bottom, an arrow for each import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

GREY, RED = "#8a94a0", "#c8321e"
COLUMN, ROW = 2.3, 1.2  # how far parts are apart
BOX = (1.8, 0.56)  # width and height
MARGIN = (1.2, 0.6)  # beside and above what is drawn
INCH = 0.85  # for each of these units, so that words fit into boxes


class Part(Protocol):
    modules: int
    lines: int
    imports: set[str]


Knots = Sequence[Sequence[str]]
Place = tuple[float, float]


def levels(parts: Mapping[str, Part], knots: Knots) -> dict[str, int]:
    """Return how high each part stands: above all that it imports, and beside those that it has a cycle with."""
    knot_of = {name: index for index, knot in enumerate(knots) for name in knot}
    found = dict.fromkeys(parts, 0)
    for _ in parts:  # at most so many rounds until nothing moves
        for name, part in parts.items():
            below = [o for o in part.imports if o in parts and not _together(knot_of, name, o)]
            found[name] = max([found[name], *(found[other] + 1 for other in below)])
        for knot in knots:
            highest = max((found[name] for name in knot if name in found), default=0)
            found |= dict.fromkeys((name for name in knot if name in found), highest)
    return found


def _together(knot_of: Mapping[str, int], first: str, second: str) -> bool:
    return first in knot_of and knot_of[first] == knot_of.get(second)


def places(parts: Mapping[str, Part], knots: Knots) -> dict[str, Place]:
    """Return where each part is drawn: those of a level side by side, each near what it imports."""
    level = levels(parts, knots)
    found: dict[str, Place] = {}
    for height in range(max(level.values()) + 1):
        names = [name for name in parts if level[name] == height]
        centre = {
            name: sum(x) / len(x) if (x := [found[o][0] for o in parts[name].imports if o in found]) else 0.0
            for name in names
        }
        names.sort(key=lambda name: (centre[name], name))
        shift = (len(names) - 1) / 2 + 0.4 * (height % 3 - 1)  # so that arrows pass between the boxes below
        found |= {name: (COLUMN * (index - shift), ROW * height) for index, name in enumerate(names)}
    return found


def draw_parts(panel: Any, parts: Mapping[str, Part], knots: Knots) -> None:
    where = places(parts, knots)
    knot_of = {name: index for index, knot in enumerate(knots) for name in knot}
    boxes = {name: draw_box(panel, place, name, parts[name], name in knot_of) for name, place in where.items()}
    for name, part in parts.items():
        for other in sorted(part.imports & set(parts)):
            in_cycle = _together(knot_of, name, other)
            by_another = any(other in parts[third].imports for third in part.imports & set(parts) if third != other)
            ends = {"posA": where[name], "posB": where[other], "patchA": boxes[name], "patchB": boxes[other]}
            draw_arrow(panel, ends, in_cycle, faint=by_another and not in_cycle)
    xs, ys = zip(*where.values(), strict=True)
    panel.set(xlim=(min(xs) - MARGIN[0], max(xs) + MARGIN[0]), ylim=(min(ys) - MARGIN[1], max(ys) + MARGIN[1]))
    panel.set_aspect("equal", anchor="N")
    panel.axis("off")


def draw_arrow(panel: Any, ends: dict[str, Any], in_cycle: bool, faint: bool) -> None:
    """Draw an import; one that is also implied by others is faint."""
    flat = ends["posA"][1] == ends["posB"][1]
    panel.add_patch(
        FancyArrowPatch(
            **ends,
            arrowstyle="-|>",
            mutation_scale=12,
            connectionstyle=f"arc3,rad={0.35 if flat else 0.06}",
            color=RED if in_cycle else GREY,
            linewidth=0.7 if faint else 1.5,
            alpha=0.35 if faint else 0.95,
            zorder=1 if faint else 2,
        )
    )


def draw_box(panel: Any, place: Place, name: str, part: Part, in_cycle: bool) -> FancyBboxPatch:
    (x, y), (width, height) = place, BOX
    edge = RED if in_cycle else "#3b4855"
    box = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, "round,pad=0.03", facecolor="white", edgecolor=edge, zorder=3
    )
    panel.add_patch(box)
    about = f"{part.modules} module{'s' * (part.modules > 1)}, {part.lines:,} lines"
    panel.text(x, y + 0.1, name, ha="center", va="center", fontsize=12, weight="bold", zorder=4)
    panel.text(x, y - 0.14, about, ha="center", va="center", fontsize=8.5, color="#4a5663", zorder=4)
    return box


def _extent(where: Mapping[str, Place]) -> Place:
    """Return how wide and how high a drawing is, its margins included."""
    xs, ys = zip(*where.values(), strict=True)
    return max(xs) - min(xs) + 2 * MARGIN[0], max(ys) - min(ys) + 2 * MARGIN[1]


def draw(houses: Mapping[str, tuple[Mapping[str, Part], Knots]], path: Path) -> None:
    """Draw several programs side by side, each below its title."""
    sizes = [_extent(places(parts, knots)) for parts, knots in houses.values()]
    figure, grid = plt.subplots(
        1,
        len(houses),
        figsize=(INCH * sum(width for width, _ in sizes), INCH * max(height for _, height in sizes) + 0.5),
        width_ratios=[width for width, _ in sizes],
        squeeze=False,
        layout="constrained",
    )
    for panel, (title, (parts, knots)) in zip(grid.flat, houses.items(), strict=True):
        draw_parts(panel, parts, knots)
        panel.set_title(title, fontsize=15)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)

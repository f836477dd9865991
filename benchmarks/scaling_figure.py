"""Solving time against number of objects, one panel per shape of problems and one with the rules alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from result_files import Row
from scaling_tables import middle, select, shapes_of, sizes_of, timed_out

TITLES = {
    "blocks": "Blocks",
    "pick-place": "Pick and place, with moves",
    "depot": "All goals at one depot",
    "last-goal": "Only the last goal workable",
    "trays": "n blocks × n trays, 10 colours",
    "colour": "Colour",
    "gacha": "Gacha",
}
STYLES: dict[str, dict[str, Any]] = {
    "rules": {"label": "rules", "color": "#0b6e4f", "marker": "o"},
    "sqlite": {"label": "the same rules in SQLite", "color": "#c8553d", "marker": "s", "linestyle": "--"},
    "lama": {"label": "LAMA", "color": "#3d5a98", "marker": "^", "linestyle": ":"},
}
COLUMNS = 4
SIZE_TICKS = {10: "10", 100: "100", 1_000: "1k", 10_000: "10k", 100_000: "100k", 1_000_000: "1M"}
SECOND_TICKS = {0.001: "1 ms", 0.01: "10 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 100: "100 s"}


def curve(records: Sequence[Row], method: str, shape: str) -> tuple[list[int], list[float]]:
    """The sizes that were solved and the median seconds."""
    cells = {size: select(records, method, shape, size) for size in sizes_of(records, method, shape)}
    solved = {size: middle(cell, "seconds") for size, cell in cells.items() if not timed_out(cell)}
    return list(solved), list(solved.values())


def out_of_time(records: Sequence[Row], method: str, shape: str) -> tuple[int, float] | None:
    """The size at which the method ran out of time, and the limit."""
    for size in sizes_of(records, method, shape):
        cell = select(records, method, shape, size)
        if timed_out(cell):
            return size, cell[0]["limit"]
    return None


def draw(records: Sequence[Row], path: Path) -> None:
    shapes = shapes_of(records)
    rows = -(-(len(shapes) + 1) // COLUMNS)
    figure, grid = plt.subplots(
        rows, COLUMNS, figsize=(13, 3.1 * rows + 0.6), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    panels = list(grid.flat)
    for panel, shape in zip(panels, shapes, strict=False):
        draw_shape(panel, records, shape)
    draw_all(panels[len(shapes)], records, shapes)
    for panel in panels[len(shapes) + 1 :]:
        panel.set_visible(False)
    for panel in panels:
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(list(SIZE_TICKS), SIZE_TICKS.values())
        panel.set_yticks(list(SECOND_TICKS), SECOND_TICKS.values())
        panel.minorticks_off()
        panel.grid(True, color="#e4e4e4", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    handles = [panels[0].plot([], [], markersize=5, **style)[0] for style in STYLES.values()]
    handles.append(panels[0].plot([], [], linestyle="", marker="x", color="#555555", label="out of time")[0])
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=11)
    figure.supxlabel("size of the problem (n)", fontsize=11)
    figure.supylabel("solving time", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_shape(panel: Any, records: Sequence[Row], shape: str) -> None:
    panel.set_title(TITLES[shape], fontsize=11)
    for method, style in STYLES.items():
        sizes, seconds = curve(records, method, shape)
        panel.plot(sizes, seconds, markersize=4, linewidth=1.6, **style)
        end = out_of_time(records, method, shape)
        if end:
            last = [(sizes[-1], seconds[-1])] if sizes else []
            xs, ys = zip(*last, end, strict=True)
            panel.plot(xs, ys, color=style["color"], linewidth=0.8, linestyle=style.get("linestyle", "-"), alpha=0.5)
            panel.plot(*end, marker="x", markersize=7, color=style["color"])


def draw_all(panel: Any, records: Sequence[Row], shapes: Sequence[str]) -> None:
    panel.set_title("Rules, all shapes", fontsize=11)
    for number, shape in enumerate(shapes):
        sizes, seconds = curve(records, "rules", shape)
        panel.plot(sizes, seconds, color=plt.get_cmap("tab10")(number), linewidth=1.4, label=shape)
    panel.legend(fontsize=7.5, frameon=False, loc="upper left")

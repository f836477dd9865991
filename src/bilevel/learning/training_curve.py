"""A picture of how a network was trained: its losses, the rounds of DAgger, and how often it succeeded in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Line = Mapping[str, Any]  # of training.jsonl: an epoch, or a round of DAgger

STYLE: Any = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e6e9ee",
}
LOSSES = {"training": "#8a93a3", "validation": "#1f5fbf"}
KEPT, SUCCESS, BORDER = "#b3261e", "#2e7d4f", "#4a5160"


def draw_training_curve(lines: Sequence[Line], best_epoch: int) -> bytes:
    """Return a picture, as PNG, of the lines of training.jsonl; `best_epoch` of the last round is the one kept.

    Epochs of all rounds follow each other to the right. Where there was DAgger, bars below show how many of the
    rollouts of a round succeeded, before the network was trained on them.
    """
    epochs = [line for line in lines if "training_loss" in line]
    rounds = [line for line in lines if "rollouts" in line]
    begin = {round_: place for place, round_ in reversed([*enumerate(line["round"] for line in epochs)])}
    with matplotlib.rc_context(STYLE):
        sheet = Figure(figsize=(6.4, 4.8 if rounds else 3.6), layout="constrained")
        upper, *lower = sheet.subplots(
            2 if rounds else 1, sharex=True, squeeze=False, height_ratios=[3, 1] if rounds else [1]
        )[:, 0]
        _draw_losses(upper, epochs, begin, best_epoch)
        for axes in lower:
            _draw_successes(axes, rounds, begin)
        sheet.axes[-1].set_xlabel("epoch")
        picture = BytesIO()
        sheet.savefig(picture, format="png", dpi=150)
    return picture.getvalue()


def _draw_losses(axes: Axes, epochs: Sequence[Line], begin: Mapping[int, int], best_epoch: int) -> None:
    for round_, found in groupby(epochs, lambda line: line["round"]):
        part = list(found)
        places = range(begin[round_] + 1, begin[round_] + len(part) + 1)
        for name, colour in LOSSES.items():
            losses = [line[f"{name}_loss"] for line in part]
            label = None if round_ else f"{name} loss"
            axes.plot(places, losses, color=colour, label=label, marker="." if len(epochs) < 50 else "")
        if round_:
            axes.axvline(begin[round_] + 0.5, color=BORDER, linewidth=0.8, linestyle=":")
            heights = axes.get_xaxis_transform()  # from 0 to 1
            axes.text(begin[round_] + 0.6, 0.98, f"DAgger, round {round_}", va="top", transform=heights)
    kept = begin[epochs[-1]["round"]] + best_epoch
    loss = epochs[kept - 1]["validation_loss"]
    axes.plot([kept], [loss], "o", color=KEPT, label=f"kept: {loss:.4g} at epoch {kept}")
    axes.set(ylabel="loss", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.5, len(epochs) + 0.5)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _draw_successes(axes: Axes, rounds: Sequence[Line], begin: Mapping[int, int]) -> None:
    for line in rounds:
        place, share = begin[line["round"]] + 0.5, line["successes"] / line["rollouts"]
        axes.bar([place], [share], width=0.5, color=SUCCESS)
        axes.text(place, share + 0.04, f"{line['successes']} of {line['rollouts']}", ha="center")
    axes.set(ylabel="rollouts\nthat succeed", ylim=(0, 1.3), yticks=[0, 0.5, 1], yticklabels=["0%", "50%", "100%"])

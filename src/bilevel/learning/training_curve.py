"""A picture of how a network was trained: its losses, and how often it succeeded in the rounds of DAgger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from matplotlib.figure import Figure


def draw_training_curve(lines: Sequence[Mapping[str, Any]], best_epoch: int) -> bytes:
    """Return a picture, as PNG, of the lines of training.jsonl; `best_epoch` of the last round is the one kept.

    Epochs of all rounds follow each other to the right. A line before those of a round of DAgger says how many of its
    rollouts succeeded, before the network was trained on them.
    """
    epochs = [line for line in lines if "training_loss" in line]
    begins = [line["round"] for line in epochs].index
    sheet = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = sheet.subplots()
    for name in ("training_loss", "validation_loss"):
        axes.plot(range(1, len(epochs) + 1), [line[name] for line in epochs], ".-", label=name.replace("_", " "))
    kept = begins(epochs[-1]["round"]) + best_epoch
    loss = epochs[kept - 1]["validation_loss"]
    axes.plot([kept], [loss], "o", color="tab:red", label=f"kept: {loss:.4g} at epoch {kept}")
    for line in lines:
        if "rollouts" in line:
            place, successes = begins(line["round"]) + 0.5, f"{line['successes']} of {line['rollouts']} succeed"
            axes.axvline(place, color="grey", linestyle=":")
            text = f"DAgger, round {line['round']}: {successes}"
            axes.text(place, 0.98, text, va="top", rotation=90, transform=axes.get_xaxis_transform())
    axes.set(xlabel="epoch", ylabel="loss", yscale="log")
    axes.legend()
    picture = BytesIO()
    sheet.savefig(picture, format="png", dpi=150)
    return picture.getvalue()

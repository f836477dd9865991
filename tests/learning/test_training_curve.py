"""The picture of a training: what is drawn in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from bilevel.learning.training_curve import draw_training_curve


def epochs(round_: int, count: int) -> list[dict[str, Any]]:
    numbers = range(1, count + 1)
    return [
        {"round": round_, "number": n, "training_loss": 0.5 / n, "validation_loss": 1 / n, "learning_rate": 1e-3}
        for n in numbers
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    saved: list[Figure] = []
    save = Figure.savefig

    def noted(figure: Figure, *given: Any, **named: Any) -> None:
        saved.append(figure)
        save(figure, *given, **named)

    monkeypatch.setattr(Figure, "savefig", noted)
    return saved


def test_it_shows_both_losses_and_the_epoch_that_is_kept(drawn: list[Figure]) -> None:
    assert draw_training_curve(epochs(0, 4), best_epoch=3).startswith(b"\x89PNG")
    (axes,) = drawn[0].axes
    lines = {str(line.get_label()): line for line in axes.lines}
    assert [*lines] == ["training loss", "validation loss", "kept: 0.3333 at epoch 3"]
    assert np.array_equal(lines["validation loss"].get_ydata(), [1, 1 / 2, 1 / 3, 1 / 4])
    assert axes.get_xlabel() == "epoch"


def test_rounds_of_dagger_are_marked_with_their_successes(drawn: list[Figure]) -> None:
    rounds = [{"round": number, "rollouts": 60, "successes": 20 * number} for number in (1, 2)]
    draw_training_curve([*epochs(0, 4), rounds[0], *epochs(1, 2), rounds[1], *epochs(2, 2)], best_epoch=1)
    losses, successes = drawn[0].axes
    assert [text.get_text() for text in losses.texts] == ["DAgger, round 1", "DAgger, round 2"]
    assert "kept: 1 at epoch 7" in [str(line.get_label()) for line in losses.lines]
    assert [text.get_text() for text in successes.texts] == ["20 of 60", "40 of 60"]
    assert [(bar.get_center()[0], bar.get_height()) for bar in successes.patches] == [(4.5, 1 / 3), (6.5, 2 / 3)]  # type: ignore[attr-defined]

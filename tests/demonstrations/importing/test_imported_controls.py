"""Recorded controls within bounds, out of bounds, and of other kinds."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.demonstrations.importing.controls import ControlReader
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls

CONTROLS = BoxControls([-1.0, -1.0], [1.0, 1.0], [2])


def test_doubles_become_what_the_task_has() -> None:
    reader = ControlReader(CONTROLS)
    found = reader.read(np.array([[0.1, 1.0000001], [-1.0, 0.3]]), "here")
    assert found.dtype == np.float32
    assert found.max() == 1
    reader.require_within_bounds()


def test_how_many_are_out_of_bounds_is_said_at_the_end() -> None:
    reader = ControlReader(CONTROLS)
    reader.read(np.array([[0.0, 1.5], [0.0, 0.0]]), "episode 0")
    reader.read(np.array([[0.0, 0.0], [0.0, -3.25], [1.1, 0.0]]), "episode 1")
    with pytest.raises(BadInput) as error:
        reader.require_within_bounds()
    assert str(error.value) == (
        "3 of 10 numbers of controls are out of the action space's bounds, by up to 2.25 "
        "(episode 1, step 1: number 1 is -3.25, not -1 to 1); --clip moves them to the bounds"
    )


def test_they_can_be_clipped() -> None:
    reader = ControlReader(CONTROLS, clip=True)
    assert reader.read(np.array([[0.0, 1.5]]), "episode 0").tolist() == [[0, 1]]
    reader.require_within_bounds()
    assert reader.outside == 1


def test_texts_are_no_controls() -> None:
    with pytest.raises(BadInput, match=r"^here: the controls are <U4, not numbers"):
        ControlReader(CONTROLS).read(np.array([["left", "down"]]), "here")

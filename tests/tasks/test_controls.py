from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, DiscreteControls, controls_of

BOX = controls_of(spaces.Box(np.array([-0.2, 0.0], np.float32), np.array([0.6, 10.0], np.float32)))


def test_a_box_is_normalised_by_its_bounds() -> None:
    assert isinstance(BOX, BoxControls)
    encoded = BOX.encode(np.array([[-0.2, 0.0], [0.6, 10.0], [0.2, 5.0]]))
    assert np.allclose(encoded, [[-1, -1], [1, 1], [0, 0]], atol=1e-6)


@given(st.lists(st.floats(-3, 3, width=32), min_size=2, max_size=2))
def test_whatever_the_network_puts_out_becomes_a_control_within_bounds(output: list[float]) -> None:
    control = BOX.decode(np.array(output, np.float32))
    space = spaces.Box(np.array([-0.2, 0.0], np.float32), np.array([0.6, 10.0], np.float32))
    assert space.contains(control)
    assert np.allclose(BOX.encode(control)[0], np.clip(output, -1, 1), atol=1e-5)


def test_a_box_of_any_shape_is_flattened_and_restored() -> None:
    controls = controls_of(spaces.Box(-2.0, 2.0, (2, 3), np.float64))
    assert controls.size == 6
    control = controls.decode(np.linspace(-1, 1, 6, dtype=np.float32))
    assert control.shape == (2, 3)
    assert control.dtype == np.float64


def test_a_discrete_space_is_a_choice() -> None:
    controls = controls_of(spaces.Discrete(3, start=2))
    assert isinstance(controls, DiscreteControls)
    assert controls.encode(np.array([2, 4])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert controls.decode(np.array([0.1, 3.0, -1.0], np.float32)) == 3


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.MultiDiscrete([2, 3]), "only Box and Discrete"),
        (spaces.Box(-np.inf, np.inf, (2,)), "no finite bounds"),
        (spaces.Box(0, 10, (2,), np.int64), "of whole numbers"),
    ],
)
def test_other_spaces_are_refused_with_advice(space: spaces.Space[object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        controls_of(space)

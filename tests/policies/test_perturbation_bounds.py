"""Perturbations that cannot be: refused where they are made, and where they are read."""

from __future__ import annotations

import pytest

from bilevel.json_files import Damaged, decode
from bilevel.policies.rollout import Perturbation
from bilevel.symbolic.domain import BadInput


@pytest.mark.parametrize("amplitude", [-0.1, 1e7, 1e308, float("nan"), float("inf")])
def test_noise_has_an_amplitude_that_can_be_computed_with(amplitude: float) -> None:
    with pytest.raises(BadInput, match="the noise is an amplitude of controls, 0 to 1e"):
        Perturbation(amplitude=amplitude)


@pytest.mark.parametrize(
    "text", ['{"amplitude": 1e308}', '{"rate": 2}', '{"shortest": 0}', '{"shortest": 9, "longest": 8}', '{"flips": -1}']
)
def test_what_a_file_says_is_checked(text: str) -> None:
    with pytest.raises(Damaged, match=r"^manifest\.json: "):
        decode(text, Perturbation, "manifest.json")

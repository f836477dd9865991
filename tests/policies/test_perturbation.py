"""Perturbed controls: as often and as strong as said, from a generator of their own, and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from bilevel.json_files import Damaged, decode
from bilevel.policies.rollout import Perturb, Perturbation
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import BoxControls, DiscreteControls

BOX = BoxControls([-1.0] * 4, [1.0] * 4, [4])
CONTROL = np.array([0.5, -0.5, 0.1, 1.0], np.float32)


def perturbed(settings: Perturbation, steps: int = 4000, seed: int = 0) -> NDArray[np.float32]:
    perturb = Perturb(settings, BOX, [3], seed)
    return np.stack([perturb(CONTROL) for _ in range(steps)])


def test_perturbation_comes_in_bursts_of_bounded_length() -> None:
    settings = Perturbation(flips=0.0)
    changed = (perturbed(settings) != CONTROL).any(axis=1)
    edges = np.flatnonzero(np.diff(changed.astype(int), prepend=0, append=0))
    assert (edges[1::2] - edges[::2]).min() >= settings.shortest
    assert 0.1 < changed.mean() < 0.35
    assert (perturbed(settings)[:, 3] == CONTROL[3]).all()


def test_a_push_is_constant_and_bounded_and_switches_may_do_the_opposite() -> None:
    pushes = perturbed(Perturbation(amplitude=0.3, flips=0.0))[:, :3] - CONTROL[:3]
    assert np.abs(pushes).max() <= 0.3 + 1e-6
    assert 10 < len(np.unique(pushes, axis=0)) < 200
    assert (perturbed(Perturbation(flips=1.0))[:, 3] == -1).any()


def test_perturbed_controls_stay_in_range_and_depend_on_the_seed_alone() -> None:
    wild = perturbed(Perturbation(amplitude=5.0))
    assert np.abs(wild).max() <= 1
    assert np.array_equal(wild, perturbed(Perturbation(amplitude=5.0)))
    assert not np.array_equal(wild, perturbed(Perturbation(amplitude=5.0), seed=1))
    assert CONTROL.tolist() == np.array([0.5, -0.5, 0.1, 1.0], np.float32).tolist()  # left as it was


def test_a_push_is_measured_by_the_bounds_of_the_controls() -> None:
    wide = BoxControls([0.0, -10.0], [20.0, 10.0], [2], "float64")
    perturb = Perturb(Perturbation(rate=1.0, flips=0.0), wide, [1], 0)
    pushed = np.stack([perturb(np.array([10.0, 5.0])) for _ in range(200)])
    assert 1 < np.abs(pushed[:, 0] - 10).max() <= 7
    assert (pushed[:, 1] == 5).all()


def test_in_a_discrete_space_a_burst_repeats_one_control() -> None:
    perturb = Perturb(Perturbation(amplitude=1.0, rate=1.0), DiscreteControls(5), [], 0)
    chosen = [int(perturb(np.int64(0))) for _ in range(500)]
    assert set(chosen) == set(range(5))
    assert sum(a != b for a, b in itertools.pairwise(chosen)) < 100


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

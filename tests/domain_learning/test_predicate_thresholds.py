"""Thresholds lie where the data has gaps."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.domain_learning.predicates.thresholds import Gap, gap_around, largest_gap, modes


def drawn(*parts: tuple[float, float], seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.uniform(low, high, 300) for low, high in parts])


def test_the_threshold_lies_in_the_widest_gap_nearer_to_the_small_values() -> None:
    gap = largest_gap(drawn((0, 0.01), (0.1, 0.5), (0.6, 1)))
    assert gap is not None
    assert 0.009 < gap.low < 0.01
    assert 0.1 < gap.high < 0.11
    assert gap.low < gap.threshold < (gap.low + gap.high) / 2
    assert gap.threshold == pytest.approx((gap.low * gap.high) ** 0.5, rel=0.05)


def test_a_few_values_within_the_gap_do_not_hide_it() -> None:
    values = np.append(drawn((0, 0.01), (0.1, 0.5)), [0.03, 0.05])
    gap = largest_gap(values)
    assert gap is not None
    assert gap.low < 0.02 < gap.threshold < 0.06


def test_there_is_no_gap_in_what_is_spread_evenly_in_few_values_or_below_the_resolution() -> None:
    assert largest_gap(drawn((0.1, 1))) is None
    assert largest_gap(np.array([0.0, 1.0])) is None
    values = drawn((0, 1e-6), (1e-4, 2e-4))
    assert largest_gap(values) is not None
    assert largest_gap(values, resolution=1e-3) is None


def test_a_threshold_has_as_few_digits_as_the_gap_allows() -> None:
    assert Gap(0.012, 0.069).threshold == 0.029
    assert Gap(0.1004, 0.1012).threshold == 0.101


def test_values_gather_around_modes() -> None:
    values = np.concatenate([drawn((0.038, 0.042)), drawn((-0.042, -0.038))[:200], drawn((0.078, 0.082))[:100]])
    found = modes(values, resolution=0.001)
    assert [round(centre, 2) for centre, _ in found] == [0.04, -0.04, 0.08]
    assert all(gap is not None and 0.002 < gap.threshold < 0.04 for _, gap in found)
    (only,) = modes(drawn((0.038, 0.042)), resolution=0.01)
    assert only[1] is None


def test_what_is_inside_is_told_from_what_is_outside() -> None:
    gap = gap_around(drawn((0.46, 0.5)), [drawn((0.9, 1))], 0.48)
    assert gap is not None
    assert 0.5 < 0.48 + gap.threshold < 0.9
    closer = gap_around(drawn((0.46, 0.5)), [drawn((0.9, 1)), np.array([0.6])], 0.48)
    assert closer is not None
    assert 0.5 < 0.48 + closer.threshold < 0.6
    assert gap_around(drawn((0, 1)), [drawn((0, 1))], 0.5) is None
    assert gap_around(drawn((0, 1)), [np.zeros(0)], 0.5) is None

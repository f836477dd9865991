"""Intervals and a test for pairs of episodes: against published values, and by what must always hold."""

from __future__ import annotations

import pytest

from bilevel.experiments.statistics import difference_interval, mcnemar, mean_interval


def test_published_values() -> None:
    """Airway responsiveness before and after a transplantation, 21 pairs (Fagerland et al., 2014); Tango's own, 44."""
    assert difference_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert mcnemar(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert difference_interval(0, 1, 44) == pytest.approx((-0.118, 0.059), abs=5e-4)


def test_where_nothing_differs_the_interval_is_that_of_no_event() -> None:
    z = 1.959964
    for pairs in (1, 10, 1000):
        bound = z * z / (pairs + z * z)
        assert difference_interval(0, 0, pairs) == pytest.approx((-bound, bound))
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0


@pytest.mark.parametrize(
    ("gained", "lost", "pairs"),
    [(0, 1, 1), (3, 1, 4), (10, 0, 10), (2, 90, 100), (0, 1, 10**6), (5 * 10**5, 3, 10**6)],
)
def test_results_are_turned_round_with_the_two(gained: int, lost: int, pairs: int) -> None:
    low, high = difference_interval(gained, lost, pairs)
    assert -1 <= low <= (gained - lost) / pairs <= high <= 1
    assert difference_interval(lost, gained, pairs) == pytest.approx((-high, -low), abs=1e-9)
    assert mcnemar(gained, lost) == pytest.approx(mcnemar(lost, gained))


def test_a_mean_has_students_interval() -> None:
    assert mean_interval([1.0, 3.0]) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)
    assert mean_interval([5.0]) is mean_interval([]) is None

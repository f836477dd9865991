"""Intervals and a test for pairs: against published values, and by their exact coverage."""

from __future__ import annotations

import math
from functools import cache

import pytest

from bilevel.experiments.compare import difference_interval, mcnemar, mean_interval, student_quantile


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
    assert difference_interval(0, 0, 0) == (-1.0, 1.0)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0


@cache
def interval(gained: int, lost: int, pairs: int) -> tuple[float, float]:
    return difference_interval(gained, lost, pairs)


def coverage(gain: float, loss: float, pairs: int) -> float:
    """The chance that the interval holds the true difference: a sum over all results that there can be."""
    total = 0.0
    for gained in range(pairs + 1):
        for lost in range(pairs + 1 - gained):
            low, high = interval(gained, lost, pairs)
            if low <= gain - loss <= high:
                rest = pairs - gained - lost
                ways = math.comb(pairs, gained) * math.comb(pairs - gained, lost)
                total += ways * gain**gained * loss**lost * (1 - gain - loss) ** rest
    return total


@pytest.mark.parametrize("pairs", [10, 20, 40])
def test_the_interval_holds_the_true_difference_in_about_95_of_100_cases(pairs: int) -> None:
    chances = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5]
    found = [coverage(gain, loss, pairs) for gain in chances for loss in chances if gain + loss <= 0.8]
    assert 0.94 < sum(found) / len(found) < 0.98
    assert min(found) > 0.91


def test_results_are_turned_round_with_the_two() -> None:
    for gained, lost, pairs in ((0, 1, 1), (3, 1, 4), (10, 0, 10), (2, 90, 100), (0, 1, 10**6), (5 * 10**5, 3, 10**6)):
        low, high = difference_interval(gained, lost, pairs)
        assert -1 <= low <= (gained - lost) / pairs <= high <= 1
        assert difference_interval(lost, gained, pairs) == pytest.approx((-high, -low), abs=1e-9)
        assert mcnemar(gained, lost) == mcnemar(lost, gained)


def test_a_mean_has_students_interval() -> None:
    tables = {1: 12.706, 2: 4.303, 5: 2.571, 9: 2.262, 30: 2.042, 99: 1.984, 1000: 1.962}
    assert {freedom: round(student_quantile(freedom), 3) for freedom in tables} == tables
    assert mean_interval([1.0, 3.0]) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)
    assert mean_interval([5.0]) is mean_interval([]) is None

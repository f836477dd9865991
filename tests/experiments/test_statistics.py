"""Intervals for methods that learn: what they must be whatever the counts."""

from __future__ import annotations

import pytest

from bilevel.experiments.statistics import is_better, rate_interval, wilson_interval


def test_that_of_one_policy_is_wilsons() -> None:
    assert rate_interval([(7, 10)]) == wilson_interval(7, 10)
    assert rate_interval([]) == (0.0, 1.0)


@pytest.mark.parametrize("wins", [(0, 0, 0), (3, 5, 4), (50, 20, 41), (50, 50, 50), (50, 0, 50)])
def test_an_interval_holds_the_rate_and_is_wider_the_more_seeds_differ(wins: tuple[int, ...]) -> None:
    counts = [(number, 50) for number in wins]
    low, high = rate_interval(counts)
    total, mean = sum(wins), sum(wins) // len(wins)
    assert 0 <= low <= total / 150 <= high + 1e-9 <= 1 + 1e-9
    assert high - low > (lambda ends: ends[1] - ends[0])(wilson_interval(total, 150))
    same_low, same_high = rate_interval([(mean, 50), (mean, 50), (total - 2 * mean, 50)])
    assert high - low >= same_high - same_low - 1e-9
    mirrored = rate_interval([(50 - number, 50) for number in wins])
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=2e-3)


def test_a_method_is_better_only_where_chance_does_not_explain_it() -> None:
    assert is_better([(10, 10), (9, 10)], [(1, 10), (2, 10)])
    assert not is_better([(10, 10), (9, 10)], [(9, 10), (9, 10)])
    assert not is_better([(1, 10)], [(10, 10)])
    assert is_better([(10, 10), (10, 10), (10, 10)], [(0, 30)])

"""Intervals that respect seeds: against the binomial posterior, at 0 and 1, and by how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from bilevel.experiments.intervals import (
    Counts,
    Interval,
    correlation_grid,
    paired_posterior,
    rate_difference_interval,
    rate_interval,
    rate_posterior,
)
from bilevel.experiments.statistics import wilson_interval

ALL, NONE = [Counts(10, 10)] * 3, [Counts(0, 10)] * 3


def width(interval: Interval) -> float:
    return interval[1] - interval[0]


def test_without_correlation_it_is_the_posterior_of_all_episodes_together() -> None:
    """The shortest 95% of beta distributions that can be written down: 3x² − 2x³ = 0.025 at 0.0943."""
    split, whole = (rate_posterior(counts, [0.0]) for counts in ([Counts(4, 5), Counts(3, 5)], [Counts(7, 10)]))
    assert split.interval == pytest.approx(whole.interval, abs=1e-3)
    assert rate_posterior([Counts(1, 2)], [0.0]).interval == pytest.approx((0.0943, 0.9057), abs=2e-3)
    assert rate_posterior([Counts(10, 10)], [0.0]).interval == pytest.approx((0.05 ** (1 / 11), 1.0), abs=1e-3)


def test_one_policy_has_the_interval_of_wilson() -> None:
    assert rate_interval([Counts(7, 10)]) == wilson_interval(7, 10)
    assert rate_interval([Counts(7, 10), Counts(0, 0)]) == wilson_interval(7, 10)
    assert rate_interval([]) == (0.0, 1.0)


def test_seeds_that_differ_say_less_than_seeds_that_agree() -> None:
    agreeing, differing = rate_interval([Counts(50, 100)] * 3), rate_interval([Counts(n, 100) for n in (10, 50, 90)])
    assert width(wilson_interval(150, 300)) < width(agreeing) < width(differing)


def bootstrap(policies: list[Counts], rng: np.random.Generator, samples: int = 500) -> Interval:
    """The percentile interval of drawing seeds, and of each its episodes, again and again."""
    found = []
    for _ in range(samples):
        drawn = [policies[number] for number in rng.integers(len(policies), size=len(policies))]
        wins = [rng.binomial(counts.episodes, counts.successes / counts.episodes) for counts in drawn]
        found.append(sum(wins) / sum(counts.episodes for counts in drawn))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def test_where_all_or_none_succeed_a_bootstrap_knows_everything_and_ours_does_not() -> None:
    rng = np.random.default_rng(0)
    assert bootstrap(ALL, rng) == (1.0, 1.0)
    assert bootstrap(NONE, rng) == (0.0, 0.0)
    low, high = rate_interval(ALL)
    assert 0.8 < low < 0.95
    assert high > 0.999
    assert rate_interval(NONE) == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_it_is_the_same_every_time_and_in_any_order() -> None:
    seeds = [Counts(3, 10), Counts(9, 10), Counts(6, 10)]
    assert rate_interval(seeds) == rate_interval(seeds)
    assert rate_interval(seeds) == pytest.approx(rate_interval(seeds[::-1]), abs=1e-9)


def test_half_of_the_prior_is_below_a_twentieth() -> None:
    grid = np.array(correlation_grid())
    assert np.median(grid) == pytest.approx(0.05, abs=2e-3)
    assert (grid > 0).all()
    assert (grid < 1).all()


@pytest.mark.parametrize("correlation", [0.0, 0.05])
@pytest.mark.parametrize("rate", [0.5, 0.9])
def test_intervals_hold_the_truth_where_those_of_wilson_do_not(rate: float, correlation: float) -> None:
    rng, size = np.random.default_rng(1), (1 - correlation) / correlation if correlation else 0.0
    held = {"ours": 0, "wilson": 0}
    for _ in range(200):
        rates = rng.beta(rate * size, (1 - rate) * size, 3) if size else np.full(3, rate)
        wins = sorted(rng.binomial(50, rates).tolist())
        ours, wilson = rate_interval([Counts(number, 50) for number in wins]), wilson_interval(sum(wins), 150)
        held["ours"] += ours[0] <= rate <= ours[1]
        held["wilson"] += wilson[0] <= rate <= wilson[1]
    assert held["ours"] >= 180
    assert correlation == 0 or held["wilson"] < 160


def test_a_difference_is_that_of_the_rates_and_turns_round() -> None:
    first, second = [Counts(n, 100) for n in (70, 50, 90)], [Counts(100, 100)] * 3
    for same in (False, True):
        low, high = rate_difference_interval(first, second, same)
        assert 0 < low < 0.3 < high < 0.6
        assert rate_difference_interval(second, first, same) == pytest.approx((-high, -low), abs=5e-3)
        none = rate_difference_interval(second, second, same)
        assert none[0] < 0 < none[1]


def test_what_a_network_does_to_both_cancels_out_in_pairs() -> None:
    first, second = [Counts(n, 100) for n in (30, 60, 90)], [Counts(n, 100) for n in (38, 67, 98)]
    assert rate_difference_interval(first, second)[0] < 0
    paired, unpaired = (rate_difference_interval(first, second, same) for same in (True, False))
    assert width(paired) < 0.6 * width(unpaired)
    assert paired_posterior(first, second).interval == paired


def test_one_policy_and_another_differ_as_two_binomials() -> None:
    low, high = rate_difference_interval([Counts(10, 50)], [Counts(40, 50)])
    assert (low, high) == pytest.approx((0.42, 0.73), abs=0.02)

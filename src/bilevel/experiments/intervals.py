"""Intervals for the success rates of methods that learn, where the episodes of one network belong together.

The model is beta-binomial, with the training seed as a random effect. The network of each seed has a rate of its own,
drawn from a beta distribution with mean µ and intra-class correlation ρ, and its episodes are draws with that rate.
What is asked for is µ: what networks from other seeds would come to on average. Of µ nothing is known in advance (the
prior is uniform). Of ρ it is known that it is small: its prior density is proportional to (1 − ρ)^12.5, half of which
is below 0.05, as were all but two of the 19 correlations of the first table. The posterior of µ is computed on a grid,
without random numbers, and the interval is the shortest one that holds 95% of it. `benchmarks/interval_coverage.py`
measures how often such intervals hold the truth.

An interval for one policy, of which nothing is asked but that policy's own rate, is Wilson's (`records`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bilevel.experiments.statistics import wilson_interval

CONFIDENCE = 0.95
MEDIAN_CORRELATION = 0.05  # of the prior
DECAY = math.log(0.5) / math.log(1 - MEDIAN_CORRELATION)  # the prior's distribution function is 1 − (1 − ρ)^DECAY
RATES = 400  # cells of the grid along µ, finer towards 0 and 1, where rates are known most precisely
CORRELATIONS = 40  # along ρ, each with the same prior probability
CELLS = 2000  # of the even grid of differences

Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


class Counts(NamedTuple):
    """How many episodes of one policy succeeded, of how many."""

    successes: int
    episodes: int


@dataclass(frozen=True)
class Posterior:
    """What is known of a number: with which probability it is below each of these edges, which ascend."""

    edges: Floats
    below: Floats

    @property
    def interval(self) -> Interval:
        """The shortest interval that holds 95% of it."""
        rising = np.concatenate(([True], np.diff(self.below) > 0))  # elsewhere it cannot be inverted
        begins = np.linspace(0, 1 - CONFIDENCE, CELLS + 1)
        lows, highs = (np.interp(at, self.below[rising], self.edges[rising]) for at in (begins, begins + CONFIDENCE))
        shortest = int(np.argmin(highs - lows))
        return float(lows[shortest]), float(highs[shortest])


def rate_interval(policies: Sequence[Counts]) -> Interval:
    """Return the 95% interval of a success rate: that of a method, or with one policy alone that of this policy.

    The policies are those of as many training seeds. That of one policy is Wilson's, and does not say what another
    seed would have given.
    """
    found = [counts for counts in policies if counts.episodes]
    return rate_posterior(found).interval if len(found) > 1 else wilson_interval(*(found or [Counts(0, 0)])[0])


def rate_posterior(policies: Sequence[Counts], correlations: Sequence[float] | None = None) -> Posterior:
    """Return what these policies, each from a seed of its own, say about the mean rate of such policies.

    Given some correlations, these are taken to be the likely ones instead of those of the prior.
    """
    edges, likely = _rate_edges(), tuple(correlations or correlation_grid())
    logarithms = np.zeros((len(likely), RATES))
    for counts in policies:
        logarithms += _log_likelihood(*counts, likely)
    likelihood = np.exp(logarithms - np.max(logarithms)).sum(axis=0)
    return _posterior(edges, likelihood * np.diff(edges))


def _posterior(edges: Floats, weights: Floats) -> Posterior:
    below = np.concatenate(([0.0], np.cumsum(weights)))
    return Posterior(edges, below / below[-1])


@cache
def _rate_edges() -> Floats:
    edges: Floats = np.sin(np.linspace(0, np.pi / 2, RATES + 1)) ** 2
    return edges


@cache
def correlation_grid() -> tuple[float, ...]:
    """Return correlations that stand for parts of the prior with equal probability: the median of each."""
    probabilities = ((part + 0.5) / CORRELATIONS for part in range(CORRELATIONS))
    return tuple(1 - (1 - probability) ** (1 / DECAY) for probability in probabilities)


@lru_cache(maxsize=512)
def _log_likelihood(successes: int, episodes: int, correlations: tuple[float, ...]) -> Floats:
    """Return the logarithm of the likelihood for each correlation and each rate, but for what depends on neither."""
    edges = _rate_edges()
    rates = (edges[1:] + edges[:-1]) / 2
    rows = []
    for correlation in correlations:
        if correlation == 0:  # binomial
            rows.append(successes * np.log(rates) + (episodes - successes) * np.log(1 - rates))
            continue
        size = (1 - correlation) / correlation  # the sum of the two parameters of the beta distribution
        won = _log_rising_factorials(rates * size, successes)
        lost = _log_rising_factorials((1 - rates) * size, episodes - successes)
        rows.append(won + lost - _log_rising_factorials(np.array([size]), episodes))
    return np.array(rows)


def _log_rising_factorials(values: Floats, length: int) -> Floats:
    """Return the logarithm of x (x + 1) … (x + length − 1) for each value x."""
    return np.array([math.lgamma(value + length) - math.lgamma(value) for value in values.tolist()])


# Differences


def rate_difference_interval(
    first: Sequence[Counts], second: Sequence[Counts], same_networks: bool = False
) -> Interval:
    """Return the 95% interval of the difference of two methods' rates, the second less the first.

    Both are given by training seed. Where both ran on the same networks, seed by seed, the difference is that of pairs;
    else it is that of two rates, each with a posterior of its own. A method with one policy stands for that policy.
    """
    if same_networks and len(first) > 1:
        return paired_posterior(first, second).interval
    return _difference(
        *(rate_posterior(policies, [0.0] if len(policies) == 1 else None) for policies in (first, second))
    )


def _difference(first: Posterior, second: Posterior) -> Interval:
    """Return the interval of the second less the first, of which each is known by itself."""
    cells = CELLS // 2
    even = np.linspace(0, 1, cells + 1)
    one, two = (np.diff(np.interp(even, posterior.edges, posterior.below)) for posterior in (first, second))
    # Two cells are a whole number of cells apart, so the cells of the difference lie around such numbers.
    return _posterior((np.arange(2 * cells) - cells + 0.5) / cells, np.convolve(two, one[::-1])).interval


def paired_posterior(first: Sequence[Counts], second: Sequence[Counts]) -> Posterior:
    """Return what is known of the mean difference of two rates, the second less the first, in pairs by seed.

    The difference of a seed is taken to be normal around the mean difference. Its variance has two parts: what so many
    episodes leave open, and how much seeds differ. The latter is a share of what it can be at these rates, of which as
    much is known as of ρ. What a network does to both rates cancels out.
    """
    pairs = list(zip(first, second, strict=True))
    differences = np.array([two.successes / two.episodes - one.successes / one.episodes for one, two in pairs])
    noise = np.array([sum(_variance(counts) / (counts.episodes + 2) for counts in pair) for pair in pairs])
    between = sum(_variance(Counts(*map(sum, zip(*policies, strict=True)))) for policies in (first, second))
    edges = np.linspace(-1.0, 1.0, CELLS + 1)
    distances = differences[:, None] - (edges[1:] + edges[:-1]) / 2
    weights = np.zeros(CELLS)
    for correlation in correlation_grid():
        variances = noise + correlation * between
        exponents = -(distances**2) / (2 * variances[:, None])
        weights += np.exp(exponents.sum(axis=0)) / math.sqrt(np.prod(variances))
    return _posterior(edges, weights)


def _variance(counts: Counts) -> float:
    """Return the variance of one episode, with a success and a failure more than there were, so that it is not 0."""
    rate = (counts.successes + 1) / (counts.episodes + 2)
    return rate * (1 - rate)

"""What pairs of episodes say about two policies: intervals and a test that respect the pairing.

Two policies that meet the same episodes mostly succeed and fail together. Only the episodes in which they differ tell
which one is better, so intervals for independent samples would be too wide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from bilevel.experiments.records import Z

CONFIDENCE = 0.95


def difference_interval(gained: int, lost: int, pairs: int) -> tuple[float, float]:
    """Return Tango's 95% score interval for the difference of two success rates, the second less the first.

    `gained` pairs have a success in the second alone, `lost` ones in the first alone. It is right near 0 and 1, and
    where nothing differs, too (Statistics in Medicine 17, 1998, 891–908).
    """
    if pairs == 0:
        return -1.0, 1.0
    difference = (gained - lost) / pairs
    return (
        _root(lambda candidate: _score(gained, lost, pairs, candidate) - Z, -1.0, difference),
        _root(lambda candidate: _score(gained, lost, pairs, candidate) + Z, difference, 1.0),
    )


def _score(gained: int, lost: int, pairs: int, difference: float) -> float:
    """Return by how many standard errors the pairs are above a supposed difference; it falls as that one rises."""
    linear = -gained - lost + (2 * pairs - gained + lost) * difference
    constant = -lost * difference * (1 - difference)
    chance = (math.sqrt(linear * linear - 8 * pairs * constant) - linear) / (4 * pairs)  # of a loss, at its likeliest
    variance = pairs * (2 * chance + difference * (1 - difference))
    return (gained - lost - pairs * difference) / math.sqrt(variance)


def mcnemar(gained: int, lost: int) -> float:
    """Return the p value of McNemar's exact test, two-sided, that two policies succeed equally often."""
    differing = gained + lost
    tail = sum(math.comb(differing, number) for number in range(min(gained, lost) + 1))
    return min(1.0, float(2 * tail / 2**differing))


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95% interval for a mean, as of the differences of pairs; none for fewer than two values."""
    if len(values) < 2:
        return None
    middle = fmean(values)
    half = student_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return middle - half, middle + half


def student_quantile(freedom: int) -> float:
    """Return how far 95% of Student's distribution with so many degrees of freedom reach to either side of 0."""
    return math.tan(_root(lambda angle: CONFIDENCE - _within(angle, freedom), 0.0, math.pi / 2)) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """Return the chance that |t| is at most tan(angle) √freedom, by the finite series for a whole number `freedom`."""
    cosine, odd = math.cos(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for number in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (number - 1) / number
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function is 0, to the last bit, by halving; its values at both ends are not asked for."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return middle

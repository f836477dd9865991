"""Confidence intervals."""

from __future__ import annotations

import math

Z = 1.959964  # of a two-sided interval of 95%


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """A 95% confidence interval for a success rate, which is right near 0 and 1 too."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)

"""Thresholds where the data has gaps: small values and large ones, and nothing between."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 5  # values on either side of a gap
SMALLEST_RATIO = 2.0  # of the first value above a gap to the last below it
FLOOR = 0.01  # of the median, or of what is beyond a gap: values that are smaller do not differ
IGNORED = 0.005  # the share of values that may lie within a gap


@dataclass(frozen=True)
class Gap:
    """Measured values are at most `low` or at least `high`; the threshold is between, as far from either in ratio."""

    low: float
    high: float

    @property
    def ratio(self) -> float:
        return self.high / self.low

    @property
    def threshold(self) -> float:
        """The geometric mean of the two ends, in two digits, or three where two would not do."""
        for digits in (2, 3):
            found = rounded(math.sqrt(self.low * self.high), digits)
            if self.low < found < self.high:
                return found
        return math.sqrt(self.low * self.high)


def rounded(value: float, digits: int = 2) -> float:
    """Return a number with so many digits that count."""
    return float(f"{value:.{digits}g}")


def largest_gap(values: Floats, resolution: float = 0.0) -> Gap | None:
    """Return the widest gap in the logarithms of values of at least 0, or `None` where there is none worth the name.

    Values below the `resolution` do not differ.
    """
    if len(values) < 2 * FEWEST:
        return None
    floor = max(FLOOR * float(np.median(values)), resolution, 1e-9)
    ordered = np.sort(np.maximum(values, floor))
    ignored = int(IGNORED * len(ordered))
    below = np.arange(FEWEST - 1, len(ordered) - FEWEST - ignored)
    ratios = ordered[below + 1 + ignored] / ordered[below]
    widest = int(ratios.argmax())
    gap = Gap(float(ordered[below[widest]]), float(ordered[below[widest] + 1 + ignored]))
    return gap if gap.ratio >= SMALLEST_RATIO else None


def gap_around(inside: Floats, outside: Floats, centre: float, resolution: float = 0.0) -> Gap | None:
    """Return the gap between values that are near a centre and others that are not, in their distances from it.

    Distances below the `resolution` do not differ.
    """
    near, far = np.abs(inside - centre), np.abs(outside - centre)
    if not len(near) or not len(far):
        return None
    high = float(np.quantile(far, IGNORED, method="lower"))
    low = max(float(np.quantile(near, 1 - IGNORED, method="higher")), FLOOR * high, resolution)
    return Gap(low, high) if high > low > 0 else None


def modes(values: Floats, resolution: float = 0.0) -> list[tuple[float, Gap | None]]:
    """Return the values around which others gather, the most frequent first, each with the gap around it.

    Where all values gather around one, it has no gap.
    """
    found: list[tuple[float, Gap | None]] = []
    left = np.sort(values)
    fewest = max(FEWEST, len(values) // 20)
    while len(left) >= fewest:
        half = max(fewest // 2, 1)
        widths = left[2 * half :] - left[: -2 * half] if len(left) > 2 * half else np.zeros(1)
        centre = float(left[min(int(widths.argmin()) + half, len(left) - 1)])
        gap = largest_gap(np.abs(values - centre), resolution)
        found.append((centre, gap))
        if gap is None:
            break
        left = left[np.abs(left - centre) > gap.threshold]
    return found

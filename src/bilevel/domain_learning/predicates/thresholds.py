"""Thresholds where the data has gaps: small values and large ones, and nothing between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 5  # values on either side of a gap
SMALLEST_RATIO = 2.0  # of the first value above a gap to the last below it
FLOOR = 0.01  # of the median, or of what is beyond a gap: values that are smaller do not differ
IGNORED = (0.005, 0.02, 0.04)  # the shares of values that may lie within a gap, to be tried in turn
MANY_MORE = 4  # times as many values are on either side


@dataclass(frozen=True)
class Gap:
    """Measured values are at most `low` or at least `high`; the threshold is between, as far from either in ratio."""

    low: float
    high: float

    @property
    def ratio(self) -> float:
        """How many times as much its upper end is as its lower one."""
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

    Values below the `resolution` do not differ. A few values may lie within the gap, the fewer the better; there are
    many more on either side.
    """
    floor = max(FLOOR * float(np.median(values)), resolution, 1e-9) if len(values) else 0.0
    ordered = np.sort(np.maximum(values, floor))
    for share in IGNORED:
        ignored = int(share * len(ordered))
        fewest = max(FEWEST, MANY_MORE * ignored)
        below = np.arange(fewest - 1, len(ordered) - fewest - ignored)
        if len(below):
            ratios = ordered[below + 1 + ignored] / ordered[below]
            widest = below[int(ratios.argmax())]
            gap = Gap(float(ordered[widest]), float(ordered[widest + 1 + ignored]))
            if gap.ratio >= SMALLEST_RATIO:
                return gap
    return None


def gap_around(inside: Floats, outside: Sequence[Floats], centre: float, resolution: float = 0.0) -> Gap | None:
    """Return the gap between values that are near a centre and others that are not, in their distances from it.

    There are several samples of the others, each of which counts, however small. Distances below the `resolution` do
    not differ.
    """
    samples = [np.abs(values - centre) for values in outside if len(values)]
    if not len(inside) or not samples:
        return None
    near = np.abs(inside - centre)
    for share, ratio in zip(IGNORED, (SMALLEST_RATIO**0.5, 1.0), strict=False):
        high = min(float(np.quantile(far, share, method="lower")) for far in samples)
        low = max(float(np.quantile(near, 1 - share, method="higher")), FLOOR * high, resolution)
        if high > ratio * low > 0:
            return Gap(low, high)
    return None


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

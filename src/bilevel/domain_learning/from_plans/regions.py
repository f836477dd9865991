"""Where a change cannot happen: rows that are alike in a few features and were never seen, too many for a coincidence.

If a change could happen in such rows as it does in others, at a rate r per visit, then the chance that it was never seen
in n visits would be (1 - r)^n. As many combinations of features are tried, the chance must be small against their number.
"""

from __future__ import annotations

from math import comb, log, log1p

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.from_plans.rows import Rows
from bilevel.domain_learning.from_plans.steps import Mask

CERTAINTY = 4.0  # the negative logarithm of the chance that one region of all that were tried is a coincidence
LARGEST = 3  # features of a region


def impossible(features: NDArray[np.bool_], rows: Rows, largest: int = LARGEST) -> Mask:
    """Return the rows in which the change cannot happen."""
    out = np.zeros(rows.size, np.bool_)
    for size in range(1, largest + 1):
        while True:
            region = _largest_region(features, rows, out, size)
            if region is None:
                break
            out |= region
    return out


def _largest_region(features: NDArray[np.bool_], rows: Rows, out: Mask, size: int) -> Mask | None:
    """Return the rows never seen of the combination of so many features that has most visits, if they are enough."""
    unseen = ~rows.seen & ~out
    visits = float(rows.visits[unseen].sum())
    needed = CERTAINTY + log(max(comb(len(features), size), 1))
    if not len(features) or visits * _evidence(rows, ~out) < needed:
        return None
    patterns, places = np.unique(features[:, ~out], axis=1, return_inverse=True)
    places = places.ravel()
    seen = np.bincount(places, rows.seen[~out], minlength=patterns.shape[1])
    weights = np.bincount(places, np.where(rows.seen, 0.0, rows.visits)[~out], minlength=patterns.shape[1])
    chosen = _best_combination(patterns.astype(np.float32), seen > 0, weights, size)
    region = unseen & features[list(chosen)].all(axis=0) if chosen else unseen & False
    evidence = float(rows.visits[region].sum()) * _evidence(rows, ~out & ~region)
    return region if evidence >= needed else None


def _evidence(rows: Rows, possible: Mask) -> float:
    """Return how much one visit without the change speaks against its being possible."""
    rate = float(rows.counts[possible].sum()) / max(float(rows.visits[possible].sum()), 1.0)
    return -log1p(-min(rate, 0.99))


def _best_combination(
    patterns: NDArray[np.float32], seen: Mask, weights: NDArray[np.float64], size: int
) -> tuple[int, ...]:
    """Return the features that no seen pattern has all of, and patterns of the greatest weight do."""
    weights32, seen32 = weights.astype(np.float32), seen.astype(np.float32)
    best, chosen = 0.0, ()
    if size == 1:
        scores = np.where(patterns @ seen32 > 0, 0, patterns @ weights32)
        return (int(scores.argmax()),) if scores.max() > 0 else ()
    for prefix in [()] if size == 2 else [(i,) for i in range(len(patterns))]:
        mask = patterns[list(prefix)].prod(axis=0)
        if mask @ weights32 <= best:
            continue
        hits = (patterns * (mask * seen32)) @ patterns.T
        scores = np.where(hits > 0, 0, (patterns * (mask * weights32)) @ patterns.T)
        place = np.unravel_index(int(scores.argmax()), scores.shape)
        if scores[place] > best:
            best, chosen = float(scores[place]), (*prefix, int(place[0]), int(place[1]))
    return chosen

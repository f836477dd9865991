"""Where a change cannot happen: rows that are alike in a few features and were never seen, too many for a coincidence.

If a change could happen in such rows as it does in others, at a rate r per visit, then the chance that it was never
seen in n visits would be (1 - r)^n. The more literals the features have, the more others could have been tried, and the
smaller this chance must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.from_plans.features import Columns, Feature, matrix
from bilevel.domain_learning.from_plans.rows import Rows, Weights
from bilevel.domain_learning.from_plans.steps import Mask

CERTAINTY = 4.0  # the negative logarithm of the chance that a region is a coincidence, after all that were tried
PRICE = 4.0  # by how much that must be surpassed for each literal of the features: so many more could have been tried
LARGEST = 3  # features of a region


def is_open(rows: Rows, known: Mask) -> bool:
    """Return whether of so many more rows nothing was seen that for some of them that may be no coincidence."""
    return float(rows.visits[~rows.seen & ~known].sum()) * _evidence(rows, ~known) >= CERTAINTY + PRICE


def impossible(features: Sequence[Feature], rows: Rows, known: Mask, largest: int = LARGEST) -> Mask:
    """Return the rows in which the change cannot happen, those of which that is known already among them."""
    out: Mask = known.copy()
    if not features:
        return out
    columns = matrix(features, rows)
    prices = np.array([PRICE * len(feature.literals) for feature in features])
    for size in range(1, largest + 1):
        while (region := _clearest_region(columns, prices, rows, out, size)) is not None:
            out |= region
    return out


def _clearest_region(columns: Columns, prices: Weights, rows: Rows, out: Mask, size: int) -> Mask | None:
    """Return the rows never seen of the combination of so many features that has most evidence, if that is enough."""
    possible = ~out
    evidence = _evidence(rows, possible)
    if float(rows.visits[possible & ~rows.seen].sum()) * evidence < CERTAINTY + size * PRICE:
        return None
    patterns, places = np.unique(columns[:, possible], axis=1, return_inverse=True)
    places = places.ravel()
    seen = np.bincount(places, rows.seen[possible], minlength=patterns.shape[1]) > 0
    unseen = np.where(rows.seen, 0.0, rows.visits * evidence)[possible]
    weights: Weights = np.bincount(places, unseen, minlength=patterns.shape[1]).astype(np.float64)
    chosen = _best_combination(patterns.astype(np.float32), seen, weights, prices, size)
    if not chosen:
        return None
    region = possible & ~rows.seen & columns[list(chosen)].all(axis=0)
    found = float(rows.visits[region].sum()) * _evidence(rows, possible & ~region) - float(prices[list(chosen)].sum())
    return region if found >= CERTAINTY else None


def _evidence(rows: Rows, possible: Mask) -> float:
    """Return how much one visit without the change speaks against its being possible."""
    rate = float(rows.counts[possible].sum()) / max(float(rows.visits[possible].sum()), 1.0)
    return -log1p(-min(rate, 0.99))


def _best_combination(
    patterns: NDArray[np.float32], seen: Mask, weights: Weights, prices: Weights, size: int
) -> tuple[int, ...]:
    """Return the features that no seen pattern has all of, and heavy patterns do, for their prices."""
    weights32, seen32 = weights.astype(np.float32), seen.astype(np.float32)
    best, chosen = 0.0, tuple[int, ...]()
    if size == 1:
        scores = np.where(patterns @ seen32 > 0, 0, patterns @ weights32 - prices)
        return (int(scores.argmax()),) if scores.max() > 0 else ()
    for prefix in [()] if size == 2 else [(i,) for i in range(len(patterns))]:
        mask, price = patterns[list(prefix)].prod(axis=0), prices[list(prefix)].sum()
        if mask @ weights32 - price <= best:
            continue
        hits = (patterns * (mask * seen32)) @ patterns.T
        scores = (patterns * (mask * weights32)) @ patterns.T - prices - prices[:, None] - price
        scores = np.where(hits > 0, 0, scores)
        place = np.unravel_index(int(scores.argmax()), scores.shape)
        if scores[place] > best:
            best, chosen = float(scores[place]), (*prefix, int(place[0]), int(place[1]))
    return chosen

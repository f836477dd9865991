"""What records come to: success rates with intervals, tests, steps, and reasons of failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from bilevel.experiments.records import Record, counts_of
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.episode import INCIDENT_KINDS

Z = 1.959964  # of a two-sided interval of 95%
CORRELATION = 0.05  # the median of what is expected of the intra-class correlation of networks
EDGES = np.sin(np.linspace(0, np.pi / 2, 401)) ** 2  # of rates from 0 to 1, finer towards both ends

Interval = tuple[float, float]
Counts = tuple[int, int]  # successes and episodes


# One policy


def wilson_interval(successes: int, episodes: int) -> Interval:
    """Return Wilson's 95% interval for the success rate of one policy."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """Return how these episodes went, as `--json` prints it, with rounded numbers."""
    steps = [record.steps for record in records if record.success]
    reasons = Counter(record.reason for record in records if record.reason is not None)
    changes = sum((record.changes for record in records), ChangeCounts())
    return {
        "episodes": len(records),
        "successes": len(steps),
        "interval": [round(bound, 4) for bound in wilson_interval(len(steps), len(records))],
        "mean_steps": round(sum(steps) / len(steps), 1) if steps else None,
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        "changes": counts_of(changes),
        "recovery": {kind: sum(record.recovery.get(kind, 0) for record in records) for kind in INCIDENT_KINDS},
        "refinement": None if changes.refinement is None else round(changes.refinement, 4),
    }


def summarise_by_objects(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return how the episodes went with each number of objects."""
    sizes = sorted({record.objects for record in records})
    return {str(size): summarise([record for record in records if record.objects == size]) for size in sizes}


def summary_lines(records: Sequence[Record]) -> list[str]:
    """Return the summaries as lines for a person to read."""
    total = summarise(records)
    lines = [f"{'objects':>7}  {'successes':>9}  {'95% interval':>13}  {'mean steps':>10}  failures"]
    for name, row in {**summarise_by_objects(records), "total": total}.items():
        low, high = row["interval"]
        steps = "–" if row["mean_steps"] is None else f"{row['mean_steps']:.0f}"
        successes, interval = f"{row['successes']}/{row['episodes']}", f"{100 * low:.1f}–{100 * high:.1f}%"
        reasons = ", ".join(f"{reason} {number}" for reason, number in row["reasons"].items())
        lines.append(f"{name:>7}  {successes:>9}  {interval:>13}  {steps:>10}  {reasons}".rstrip())
    lines.append("intervals are Wilson's, for this policy alone; another training seed makes another policy")
    if total["refinement"] is not None:
        kinds = "{own}, against {drop} drops, {collision} collisions, {flicker} flickers; {exogenous} were exogenous"
        share = f"{100 * total['refinement']:.2f}% of the changes of the state were the chosen action's own effects: "
        lines.append(share + kinds.format(**total["changes"]))
    if any(total["recovery"].values()):
        lines.append("incidents: " + ", ".join(f"{kind} {number}" for kind, number in total["recovery"].items()))
    return lines


# Two policies in the same episodes


def difference_interval(gained: int, lost: int, pairs: int) -> Interval:
    """Return Tango's 95% score interval for the difference of two success rates, the second less the first.

    `gained` pairs have a success in the second alone, `lost` ones in the first alone. It is right near 0 and 1, and
    where nothing differs, too (Statistics in Medicine 17, 1998, 891–908).
    """
    from scipy.optimize import brentq

    def score(difference: float, z: float) -> float:
        """Return by how many standard errors the pairs are above a supposed difference, less `z`."""
        linear = -gained - lost + (2 * pairs - gained + lost) * difference
        constant = -lost * difference * (1 - difference)
        chance = (math.sqrt(linear * linear - 8 * pairs * constant) - linear) / (4 * pairs)  # of a loss, at most likely
        variance = pairs * (2 * chance + difference * (1 - difference))
        return (gained - lost - pairs * difference) / math.sqrt(max(variance, 1e-300)) - z

    observed, edge = (gained - lost) / pairs, 1e-12
    low = -1.0 if observed == -1 else brentq(score, -1 + edge, observed - edge, (Z,))
    high = 1.0 if observed == 1 else brentq(score, observed + edge, 1 - edge, (-Z,))
    return float(low), float(high)


def mcnemar(gained: int, lost: int) -> float:
    """Return the p value of McNemar's exact test, two-sided, that two policies succeed equally often."""
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95% interval for a mean, as of the differences of pairs; none for fewer than two values."""
    from scipy.stats import sem, t

    if len(values) < 2:
        return None
    half = float(t.ppf(0.975, len(values) - 1) * sem(values))
    return fmean(values) - half, fmean(values) + half


# Methods that learn: the episodes of one network belong together


def rate_interval(policies: Sequence[Counts]) -> Interval:
    """Return the 95% interval of a method's success rate, from the counts of a policy for each training seed.

    The model is beta-binomial. The policy of each seed has a rate of its own, drawn from a beta distribution with mean
    µ and intra-class correlation ρ, and its episodes are draws with that rate. The interval is the shortest that holds
    95% of the posterior of µ: what policies of other seeds would come to on average. Nothing is known of µ in advance,
    and ρ is expected to be small. That of a single policy is Wilson's.
    """
    if len(policies) < 2:
        return wilson_interval(*(policies or [(0, 0)])[0])
    below, begins = _posterior(tuple(sorted(policies))), np.linspace(0, 0.05, 1001)
    lows, highs = np.interp(begins, below, EDGES), np.interp(begins + 0.95, below, EDGES)
    shortest = int(np.argmin(highs - lows))
    return float(lows[shortest]), float(highs[shortest])


def is_better(one: Sequence[Counts], other: Sequence[Counts]) -> bool:
    """Return whether a method's rate is above another's: the 95% interval of the difference leaves out 0."""
    rng = np.random.default_rng(0)
    first, second = (np.interp(rng.random(20_000), _posterior(tuple(sorted(counts))), EDGES) for counts in (one, other))
    return bool(np.quantile(first - second, 0.025) > 0)


@lru_cache(maxsize=4096)
def _posterior(policies: tuple[Counts, ...]) -> npt.NDArray[np.float64]:
    """Return how probable it is that the mean rate of such policies is below each edge."""
    from scipy.stats import betabinom

    rates, parts = (EDGES[1:] + EDGES[:-1]) / 2, (np.arange(40) + 0.5) / 40
    decay = math.log(0.5) / math.log(1 - CORRELATION)  # the prior of ρ has the distribution 1 − (1 − ρ)^decay
    correlations = 1 - (1 - parts) ** (1 / decay)
    sizes = ((1 - correlations) / correlations)[:, None]  # the sum of the two parameters of the beta distribution
    each = (betabinom.logpmf(*counts, rates * sizes, (1 - rates) * sizes) for counts in policies)
    logarithms = sum(each, np.zeros((40, 400)))
    weights = np.exp(logarithms - np.max(logarithms)).sum(axis=0) * np.diff(EDGES)
    below = np.concatenate(([0.0], np.cumsum(weights)))
    found: npt.NDArray[np.float64] = below / below[-1] + np.arange(401) * 1e-15  # so that it ascends everywhere
    return found

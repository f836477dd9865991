"""What the records of a policy come to: success rates with intervals, steps, and reasons of failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bilevel.experiments.records import Record, counts_of
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.episode import INCIDENT_KINDS

Z = 1.959964  # of a two-sided interval of 95%
OF_POLICY = "intervals are Wilson's, for this policy alone; another training seed makes another policy"
INCIDENTS = {
    "wait": "waits",
    "plan": "plans",
    "nudge": "nudges",
    "retry": "retries",
    "other": "other choices",
    "stop": "stops",
}

CORRELATION = 0.05  # the median of what is expected of the intra-class correlation of networks

Interval = tuple[float, float]
Counts = tuple[int, int]  # successes and episodes
Floats = npt.NDArray[np.float64]


def wilson_interval(successes: int, episodes: int) -> Interval:
    """Return Wilson's 95% interval for the success rate of one policy."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Summary:
    """How some episodes went."""

    episodes: int
    successes: int
    interval: Interval  # of the success rate, at 95%
    mean_steps: float | None  # of the successes
    reasons: Mapping[str, int]  # of the failures, the commonest first
    changes: ChangeCounts
    recovery: Mapping[str, int]  # the number of incidents of each kind

    def as_json(self) -> dict[str, object]:
        """Return it for `--json`, with rounded numbers."""
        steps = None if self.mean_steps is None else round(self.mean_steps, 1)
        refinement = None if self.changes.refinement is None else round(self.changes.refinement, 4)
        rounded = {"interval": [round(bound, 4) for bound in self.interval], "mean_steps": steps}
        return {**asdict(self), **rounded, "changes": counts_of(self.changes), "refinement": refinement}


def summarise(records: Sequence[Record]) -> Summary:
    """Return how these episodes went."""
    steps = [record.steps for record in records if record.success]
    reasons = Counter(record.reason for record in records if record.reason is not None)
    return Summary(
        episodes=len(records),
        successes=len(steps),
        interval=wilson_interval(len(steps), len(records)),
        mean_steps=sum(steps) / len(steps) if steps else None,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        changes=sum((record.changes for record in records), ChangeCounts()),
        recovery={kind: sum(record.recovery.get(kind, 0) for record in records) for kind in INCIDENT_KINDS},
    )


def summarise_by_objects(records: Sequence[Record]) -> dict[int, Summary]:
    """Return how the episodes went with each number of objects."""
    sizes = sorted({record.objects for record in records})
    return {size: summarise([record for record in records if record.objects == size]) for size in sizes}


def microseconds_per_step(records: Iterable[Record], part: str) -> float | None:
    """Return how long a step took the policy, or the physics, on average; `None` where no record says so."""
    timed = [record for record in records if part in record.seconds]
    steps = sum(record.steps for record in timed)
    return round(1e6 * sum(record.seconds[part] for record in timed) / steps, 1) if steps else None


def table(records: Sequence[Record]) -> list[str]:
    """Return the summaries as lines for a person to read."""
    total = summarise(records)
    rows = {**{str(size): row for size, row in summarise_by_objects(records).items()}, "total": total}
    lines = [f"{'objects':>7}  {'successes':>9}  {'95% interval':>13}  {'mean steps':>10}  failures"]
    lines += [_line(name, row).rstrip() for name, row in rows.items()]
    lines.append(OF_POLICY)
    changes = total.changes
    if changes.refinement is not None:
        unexpected = f"{changes.drop} drops, {changes.collision} collisions, {changes.flicker} flickers"
        rate = f"{100 * changes.refinement:.2f}% of the changes of the state were the chosen action's own effects"
        lines.append(f"{rate}: {changes.own}, against {unexpected}; {changes.exogenous} were exogenous")
    if any(total.recovery.values()):
        lines.append("incidents: " + ", ".join(f"{total.recovery[kind]} {name}" for kind, name in INCIDENTS.items()))
    return lines


def _line(name: str, row: Summary) -> str:
    interval = f"{100 * row.interval[0]:.1f}–{100 * row.interval[1]:.1f}%"
    steps = "–" if row.mean_steps is None else f"{row.mean_steps:.0f}"
    reasons = ", ".join(f"{reason} {number}" for reason, number in row.reasons.items())
    return f"{name:>7}  {f'{row.successes}/{row.episodes}':>9}  {interval:>13}  {steps:>10}  {reasons}"


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
    edges, below = _posterior(tuple(policies))
    begins = np.linspace(0, 0.05, 1001)
    lows, highs = np.interp(begins, below, edges), np.interp(begins + 0.95, below, edges)
    shortest = int(np.argmin(highs - lows))
    return float(lows[shortest]), float(highs[shortest])


def is_better(one: Sequence[Counts], other: Sequence[Counts]) -> bool:
    """Return whether a method's rate is above another's: the 95% interval of the difference leaves out 0."""
    rng = np.random.default_rng(0)
    first, second = (_draws(tuple(policies), rng) for policies in (one, other))
    return bool(np.quantile(first - second, 0.025) > 0)


def _draws(policies: tuple[Counts, ...], rng: np.random.Generator) -> Floats:
    edges, below = _posterior(policies)
    return np.interp(rng.random(20_000), below, edges)


@lru_cache(maxsize=4096)
def _posterior(policies: tuple[Counts, ...]) -> tuple[Floats, Floats]:
    """Return edges between 0 and 1, and how probable it is that the mean rate of such policies is below each."""
    edges = np.sin(np.linspace(0, np.pi / 2, 401)) ** 2  # finer towards 0 and 1
    shapes = 40 if len(policies) > 1 else 1
    logarithms = sum(_log_likelihood(*counts, shapes) for counts in policies) + np.zeros((shapes, 400))
    weights = np.exp(logarithms - np.max(logarithms)).sum(axis=0) * np.diff(edges)
    below = np.concatenate(([0.0], np.cumsum(weights)))
    return edges, below / below[-1] + np.arange(401) * 1e-15  # so that it ascends everywhere


@lru_cache(maxsize=4096)
def _log_likelihood(successes: int, episodes: int, shapes: int) -> Floats:
    """Return the logarithm of the likelihood for each correlation and each rate; one shape has next to none."""
    from scipy.stats import betabinom

    edges = np.sin(np.linspace(0, np.pi / 2, 401)) ** 2
    rates = (edges[1:] + edges[:-1]) / 2
    decay = math.log(0.5) / math.log(1 - CORRELATION)  # the prior of ρ has the distribution 1 − (1 − ρ)^decay
    parts = (np.arange(shapes) + 0.5) / shapes
    correlations = 1 - (1 - parts) ** (1 / decay) if shapes > 1 else np.array([1e-9])
    sizes = ((1 - correlations) / correlations)[:, None]  # the sum of the two parameters of the beta distribution
    found: Floats = betabinom.logpmf(successes, episodes, rates * sizes, (1 - rates) * sizes)
    return found

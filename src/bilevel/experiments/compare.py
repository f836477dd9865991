"""Two results of an evaluation, compared episode by episode; and one episode, compared with its record.

Two policies that meet the same episodes mostly succeed and fail together. Only the episodes in which they differ tell
which one is better, so intervals for independent samples would be too wide.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from bilevel.experiments.records import Record
from bilevel.experiments.statistics import Interval, Z, wilson_interval
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.episode import Episode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from bilevel.versions import versions

# What a record says about how it was made, besides which episode it is.
CIRCUMSTANCES = (
    "method", "policy", "policy_digest", "policy_seed", "settings", "noise", "arguments", "perception", "versions",
)  # fmt: skip


class Pair(NamedTuple):
    """One episode, as it went in each of the two results."""

    first: Record
    second: Record

    @property
    def changed(self) -> bool:
        """Whether one succeeded and the other did not."""
        return self.first.success != self.second.success


@dataclass(frozen=True)
class PairedRates:
    """How often each of two succeeds in the same episodes, and how many steps each needs where both do."""

    episodes: int
    successes: tuple[int, int]
    intervals: tuple[Interval, Interval]  # of the success rates: Wilson's
    gained: int  # episodes that only the second solves
    lost: int  # episodes that only the first solves
    difference: float  # of the success rates, the second less the first
    difference_interval: Interval  # Tango's, for pairs
    p_value: float  # McNemar's exact test
    both: int  # episodes that both solve
    mean_steps: tuple[float, float] | None  # in these
    steps_difference: float | None  # of the means, the second less the first
    steps_interval: Interval | None  # Student's, for pairs

    def as_json(self) -> dict[str, Any]:
        """Return it for `--json`, with rounded numbers."""
        return {name: _rounded(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Comparison:
    """The episodes that two results have in common, how many only one of them has, and what else differs."""

    pairs: Sequence[Pair]
    only_first: int
    only_second: int

    @property
    def total(self) -> PairedRates:
        """The rates over all pairs."""
        return paired_rates(self.pairs)

    @property
    def by_objects(self) -> dict[int, PairedRates]:
        """The rates for each number of objects."""
        sizes = sorted({pair.first.objects for pair in self.pairs})
        return {size: paired_rates([pair for pair in self.pairs if pair.first.objects == size]) for size in sizes}

    @property
    def changed(self) -> list[Pair]:
        """The episodes that only one of the two solves, those that were lost first."""
        return sorted((pair for pair in self.pairs if pair.changed), key=lambda pair: not pair.first.success)

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """What else differs between the two, as `noise` or `versions.numpy`, with the values of both."""
        first, second = (
            _agreed([_circumstances(record) for record in records]) for records in zip(*self.pairs, strict=True)
        )
        return _unequal(first, second)


def compare(first: Iterable[Record], second: Iterable[Record]) -> Comparison:
    """Pair two results by task, number of objects, seed and episode.

    `BadInput` where an episode is there twice, or where the two have none in common.
    """
    one, other = _by_episode(first, "the first"), _by_episode(second, "the second")
    tasks = sorted({task for task, *_ in [*one, *other]})
    if len(tasks) > 1:
        raise BadInput(f"these are results of different tasks: {', '.join(tasks)}; compare results of the same task")
    pairs = [Pair(record, other[key]) for key, record in one.items() if key in other]
    if not pairs:
        raise BadInput("the two have no episode in common: use the same --objects and --seed for both")
    return Comparison(pairs, len(one) - len(pairs), len(other) - len(pairs))


def _by_episode(records: Iterable[Record], whose: str) -> dict[tuple[str, int, int, int], Record]:
    found: dict[tuple[str, int, int, int], Record] = {}
    for record in records:
        key = record.task, record.objects, record.seed, record.episode
        if key in found:
            where = f"{record.task}, {record.objects} objects, episode {record.episode}"
            raise BadInput(f"{whose} results hold an episode twice: {where}; compare one policy with one other")
        found[key] = record
    if not found:
        raise BadInput(f"{whose} results are empty")
    return found


def paired_rates(pairs: Sequence[Pair]) -> PairedRates:
    """Return what the pairs say together."""
    episodes = len(pairs)
    successes = sum(pair.first.success for pair in pairs), sum(pair.second.success for pair in pairs)
    lost = sum(pair.first.success and not pair.second.success for pair in pairs)
    gained = sum(pair.second.success and not pair.first.success for pair in pairs)
    solved = [pair for pair in pairs if pair.first.success and pair.second.success]
    steps = [pair.second.steps - pair.first.steps for pair in solved]
    means = (
        (fmean(pair.first.steps for pair in solved), fmean(pair.second.steps for pair in solved)) if solved else None
    )
    return PairedRates(
        episodes=episodes,
        successes=successes,
        intervals=(wilson_interval(successes[0], episodes), wilson_interval(successes[1], episodes)),
        gained=gained,
        lost=lost,
        difference=(gained - lost) / episodes,
        difference_interval=difference_interval(gained, lost, episodes),
        p_value=mcnemar(gained, lost),
        both=len(solved),
        mean_steps=means,
        steps_difference=fmean(steps) if steps else None,
        steps_interval=mean_interval(steps),
    )


# Statistics of pairs


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


# What else differs


def _circumstances(record: Record) -> dict[str, Any]:
    """Return what a record says about how it was made; the parts of `versions`, say, as `versions.numpy`."""
    found: dict[str, Any] = {}
    for name in CIRCUMSTANCES:
        value = getattr(record, name)
        found |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _unequal(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the names whose values differ, with both; `None` for what is not there."""
    both = {name: (first.get(name), second.get(name)) for name in [*first, *second]}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _agreed(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return for each name the value that all have, or a list where they do not agree."""
    found: dict[str, list[Any]] = {}
    for name, value in (item for each in values for item in each.items()):
        if value not in found.setdefault(name, []):
            found[name].append(value)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


# In words


def table(rows: Mapping[str, PairedRates]) -> list[str]:
    """Return lines for a person to read; differences are in percentage points."""
    lines = [f"{'objects':>7}  {'A (95% interval)':>22}  {'B (95% interval)':>22}  {'B − A (95% interval)':>24}"]
    for name, row in rows.items():
        one, other = (_rate(*part, row.episodes) for part in zip(row.successes, row.intervals, strict=True))
        difference = signed(100 * row.difference, *(100 * bound for bound in row.difference_interval))
        lines.append(f"{name:>7}  {one:>22}  {other:>22}  {difference:>24}")
    return lines


def _rate(successes: int, interval: Interval, episodes: int) -> str:
    return f"{successes}/{episodes} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f}%)"


def signed(value: float, low: float, high: float) -> str:
    """Return a difference and its interval, with signs."""
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(part) for part in value] if isinstance(value, tuple) else value


def difference_lines(differences: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Return a line for each thing that differs."""
    return [f"{name}: {_shown(first)} → {_shown(second)}" for name, (first, second) in differences.items()]


def _shown(value: Any) -> str:
    """Return a value in short: texts as they are, digests by their beginning."""
    text = value if isinstance(value, str) else "–" if value is None else json.dumps(value)
    return f"{text[:12]}…" if len(text) == 64 and set(text) <= set("0123456789abcdef") else text or "–"


# One episode and its record


def find_record(records: Sequence[Record], where: Path, objects: int | None, episode: int | None) -> Record:
    """Return the record of an episode; `BadInput`, which says what there is, where that is not exactly one."""
    sizes = ", ".join(map(str, sorted({record.objects for record in records})))
    if episode is None:
        failed = [f"{record.episode} of {record.objects} objects" for record in records if not record.success]
        known = f"failed: {', '.join(failed[:10])}{', …' if len(failed) > 10 else ''}" if failed else "all succeeded"
        raise BadInput(f"say which episode of {where} to replay, with --episode N; {known}")
    if objects is None and "," in sizes:
        raise BadInput(f"{where} has episodes with {sizes} objects: say which with --objects N")
    sized = [record for record in records if objects in (None, record.objects)]
    found = [record for record in sized if record.episode == episode]
    if not found:
        numbers = [record.episode for record in sized]
        there = f"they are {min(numbers)} to {max(numbers)}" if numbers else f"it has {sizes or 'no'} objects"
        raise BadInput(f"{where} has no episode {episode}{f' with {objects} objects' if objects else ''}; {there}")
    if len(found) > 1:
        raise BadInput(f"{where} has {len(found)} such episodes; name the results of one policy and one task")
    return found[0]


def compare_with_record(record: Record, episode: Episode, policy: RunnablePolicy, task: Task) -> list[str]:
    """Return how an episode differs from its record, and what may be the cause; nothing where it is the same."""
    then = record.outcome, record.reason, record.steps, record.changes
    if then == (episode.outcome, episode.reason, episode.steps, episode.counts):
        return []
    was = f"{record.outcome} after {record.steps} steps" + (f" ({record.reason})" if record.reason else "")
    present = replace(
        record,
        policy=policy.policy,
        policy_digest=policy.digest,
        settings=dict(policy.settings),
        versions=versions(task.packages),
    )
    causes = difference_lines(_unequal(_circumstances(record), _circumstances(present)))
    return [f"not as recorded: that was {was}", *(causes or ["nothing that is recorded differs but the machine"])]

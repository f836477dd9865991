"""Two results of `bilevel evaluate`, episode by episode: which policy is better, by how much, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

from bilevel.experiments.paired_statistics import difference_interval, mcnemar, mean_interval
from bilevel.experiments.records import EpisodeRecord, wilson_interval
from bilevel.symbolic.domain import BadInput

# What a record says about how it was made, besides which episode it is.
CIRCUMSTANCES = (
    "method", "policy", "policy_digest", "policy_seed", "settings", "noise", "arguments", "perception", "versions",
)  # fmt: skip

Interval = tuple[float, float]
Key = tuple[str, int, int, int]


class Pair(NamedTuple):
    """One episode, as it went in each of the two results."""

    first: EpisodeRecord
    second: EpisodeRecord

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
            _agreed([circumstances(record) for record in records]) for records in zip(*self.pairs, strict=True)
        )
        return unequal(first, second)


def compare(first: Iterable[EpisodeRecord], second: Iterable[EpisodeRecord]) -> Comparison:
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


def _by_episode(records: Iterable[EpisodeRecord], whose: str) -> dict[Key, EpisodeRecord]:
    found: dict[Key, EpisodeRecord] = {}
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
    """Return what so many pairs say together."""
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


def circumstances(record: EpisodeRecord) -> dict[str, Any]:
    """What a record says about how it was made; the parts of `versions`, say, as `versions.numpy`."""
    found: dict[str, Any] = {}
    for name in CIRCUMSTANCES:
        value = getattr(record, name)
        found |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
    return found


def unequal(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The names whose values differ, with both; `None` for what is not there."""
    both = {name: (first.get(name), second.get(name)) for name in [*first, *second]}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _agreed(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For each name the value that all have, or a list where they do not agree."""
    found: dict[str, list[Any]] = {}
    for name, value in (item for each in values for item in each.items()):
        if value not in found.setdefault(name, []):
            found[name].append(value)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


# In words


def table(rows: Mapping[str, PairedRates]) -> list[str]:
    """Lines for a person to read; differences are in percentage points."""
    lines = [f"{'objects':>7}  {'A (95% interval)':>22}  {'B (95% interval)':>22}  {'B − A (95% interval)':>24}"]
    for name, row in rows.items():
        one, other = (_rate(*part, row.episodes) for part in zip(row.successes, row.intervals, strict=True))
        difference = signed(100 * row.difference, *(100 * bound for bound in row.difference_interval))
        lines.append(f"{name:>7}  {one:>22}  {other:>22}  {difference:>24}")
    return lines


def _rate(successes: int, interval: Interval, episodes: int) -> str:
    return f"{successes}/{episodes} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f}%)"


def signed(value: float, low: float, high: float) -> str:
    """A difference and its interval, with signs."""
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(part) for part in value] if isinstance(value, tuple) else value


def difference_lines(differences: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """A line for each thing that differs."""
    return [f"{name}: {_shown(first)} → {_shown(second)}" for name, (first, second) in differences.items()]


def _shown(value: Any) -> str:
    """A value in short: texts as they are, digests by their beginning."""
    text = value if isinstance(value, str) else "–" if value is None else json.dumps(value)
    return f"{text[:12]}…" if len(text) == 64 and set(text) <= set("0123456789abcdef") else text or "–"

"""Two results of an evaluation, compared episode by episode; and one episode, compared with its record.

Two policies that meet the same episodes mostly succeed and fail together. Only the episodes in which they differ tell
which one is better, so intervals for independent samples would be too wide.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from bilevel.experiments.records import Record
from bilevel.experiments.statistics import difference_interval, mcnemar, mean_interval, wilson_interval
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.episode import Episode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from bilevel.versions import versions

# What a record says about how it was made, besides which episode it is.
CIRCUMSTANCES = (
    "method", "policy", "policy_digest", "policy_seed", "settings", "noise", "arguments", "perception", "versions",
)  # fmt: skip

Pair = tuple[Record, Record]  # one episode, as it went in each of the two results
Differences = Mapping[str, tuple[Any, Any]]  # what has two values, with both


@dataclass(frozen=True)
class Comparison:
    """The episodes that two results have in common, how many only one of them has, and what else differs."""

    pairs: Sequence[Pair]
    only_first: int
    only_second: int
    differences: Differences

    @property
    def by_objects(self) -> dict[str, dict[str, Any]]:
        """The rates for each number of objects."""
        sizes = sorted({first.objects for first, _ in self.pairs})
        return {str(size): paired_rates([pair for pair in self.pairs if pair[0].objects == size]) for size in sizes}

    @property
    def changed(self) -> list[Pair]:
        """The episodes that only one of the two solves, those that were lost first."""
        changed = [pair for pair in self.pairs if pair[0].success != pair[1].success]
        return sorted(changed, key=lambda pair: not pair[0].success)


def compare(first: Iterable[Record], second: Iterable[Record]) -> Comparison:
    """Pair two results by task, number of objects, seed and episode.

    `BadInput` where an episode is there twice, or where the two have none in common.
    """
    one, other = _by_episode(first, "the first"), _by_episode(second, "the second")
    tasks = sorted({task for task, *_ in [*one, *other]})
    if len(tasks) > 1:
        raise BadInput(f"these are results of different tasks: {', '.join(tasks)}; compare results of the same task")
    common = [key for key in one if key in other]
    if not common:
        raise BadInput("the two have no episode in common: use the same --objects and --seed for both")
    found = differences([one[key] for key in common], [other[key] for key in common])
    pairs = [(one[key], other[key]) for key in common]
    return Comparison(pairs, len(one) - len(pairs), len(other) - len(pairs), found)


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


def paired_rates(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return how often each of two succeeds in the same episodes, and how many steps each needs where both do.

    Intervals of the rates are Wilson's, that of their difference, the second less the first, is Tango's, the p value
    that of McNemar's exact test, and the interval of the difference of steps Student's. Numbers are rounded.
    """
    both = [pair for pair in pairs if pair[0].success and pair[1].success]
    successes = [sum(pair[side].success for pair in pairs) for side in (0, 1)]
    lost, gained = (number - len(both) for number in successes)
    steps = [second.steps - first.steps for first, second in both]
    rates = {
        "episodes": len(pairs),
        "successes": successes,
        "intervals": [wilson_interval(number, len(pairs)) for number in successes],
        "gained": gained,  # episodes that only the second solves
        "lost": lost,
        "difference": (gained - lost) / len(pairs),
        "difference_interval": difference_interval(gained, lost, len(pairs)),
        "p_value": mcnemar(gained, lost),
        "both": len(both),
        "mean_steps": [fmean(pair[side].steps for pair in both) for side in (0, 1)] if both else None,
        "steps_difference": fmean(steps) if steps else None,
        "steps_interval": mean_interval(steps),
    }
    return {name: _rounded(value) for name, value in rates.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


# What else differs


def differences(first: Iterable[Record], second: Iterable[Record]) -> Differences:
    """Return what records say of how they were made and is not the same in both; several values are a list."""
    one, other = _circumstances(first), _circumstances(second)
    both = {name: (one.get(name), other.get(name)) for name in {**one, **other}}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _circumstances(records: Iterable[Record]) -> dict[str, Any]:
    """Return what records say about how they were made; the parts of `versions`, say, as `versions.numpy`."""
    found: dict[str, list[Any]] = {}
    for record in records:
        for name in CIRCUMSTANCES:
            value = getattr(record, name)
            parts = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
            for key, part in parts.items():
                if part not in found.setdefault(key, []):
                    found[key].append(part)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


# In words


def rate_lines(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines for a person to read; differences are in percentage points."""
    lines = [f"{'objects':>7}  {'A (95% interval)':>22}  {'B (95% interval)':>22}  {'B − A (95% interval)':>24}"]
    for name, row in rows.items():
        one, other = (
            f"{number}/{row['episodes']} ({100 * low:.1f}–{100 * high:.1f}%)"
            for number, (low, high) in zip(row["successes"], row["intervals"], strict=True)
        )
        difference = signed(100 * row["difference"], *(100 * bound for bound in row["difference_interval"]))
        lines.append(f"{name:>7}  {one:>22}  {other:>22}  {difference:>24}")
    return lines


def signed(value: float, low: float, high: float) -> str:
    """Return a difference and its interval, with signs."""
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def difference_lines(found: Differences) -> list[str]:
    """Return a line for each thing that differs."""
    return [f"{name}: {_shown(first)} → {_shown(second)}" for name, (first, second) in found.items()]


def _shown(value: Any) -> str:
    """Return a value in short: texts as they are, digests by their beginning."""
    text = value if isinstance(value, str) else "–" if value is None else json.dumps(value)
    return f"{text[:12]}…" if len(text) == 64 and set(text) <= set("0123456789abcdef") else text or "–"


# One episode and its record


def find_record(records: Sequence[Record], where: Path, objects: int | None, episode: int | None) -> Record:
    """Return the record of an episode; `BadInput`, which says what there is, where that is not exactly one."""
    if episode is None:
        failed = [f"{record.episode} of {record.objects} objects" for record in records if not record.success]
        known = f"failed: {', '.join(failed[:10])}{', …' if len(failed) > 10 else ''}" if failed else "all succeeded"
        raise BadInput(f"say which episode of {where} to replay, with --episode N; {known}")
    found = [record for record in records if record.episode == episode and objects in (None, record.objects)]
    if len(found) != 1:
        sizes = ", ".join(map(str, sorted({record.objects for record in found or records})))
        which = f"episode {episode}{f' with {objects} objects' if objects else ''}"
        raise BadInput(f"{where} has {len(found) or 'no'} {which}; it has {sizes or 'no'} objects: --objects N")
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
    causes = difference_lines(differences([record], [present]))
    return [f"not as recorded: that was {was}", *(causes or ["nothing that is recorded differs but the machine"])]

"""What records come to: success rates with intervals, steps, and reasons of failures; and how two results differ.

Two policies that meet the same episodes mostly succeed and fail together. Only the episodes in which they differ tell
which one is better.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from bilevel.experiments.records import Record
from bilevel.methods.methods import RunnablePolicy
from bilevel.policies.episode import INCIDENT_KINDS, OWN, Episode, count_changes
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.task import Task
from bilevel.versions import versions

Z = 1.959964  # of a two-sided interval of 95%
# What a record says about how it was made, besides which episode it is.
CIRCUMSTANCES = (
    "method", "policy", "policy_digest", "policy_seed", "settings", "noise", "arguments", "perception", "versions",
)  # fmt: skip

Pair = tuple[Record, Record]  # one episode, as it went in each of the two results
Differences = Mapping[str, tuple[Any, Any]]  # what has two values, with both


# One result


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """Return Wilson's 95% interval for a success rate."""
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
    changes = {kind: sum(record.changes.get(kind, 0) for record in records) for kind in count_changes([])}
    answered_for = changes[OWN] + changes["unexpected"]
    return {
        "episodes": len(records),
        "successes": len(steps),
        "interval": [round(bound, 4) for bound in wilson_interval(len(steps), len(records))],
        "mean_steps": round(sum(steps) / len(steps), 1) if steps else None,
        "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        "changes": changes,
        "recovery": {kind: sum(record.recovery.get(kind, 0) for record in records) for kind in INCIDENT_KINDS},
        "refinement": round(changes[OWN] / answered_for, 4) if answered_for else None,
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


# Two results of the same episodes


class Comparison(NamedTuple):
    """The episodes that two results have in common, how many only one of them has, and what else differs."""

    pairs: Sequence[Pair]
    only_first: int
    only_second: int
    differences: Differences


def compare(first: Sequence[Record], second: Sequence[Record]) -> Comparison:
    """Pair two results by task, number of objects, seed and episode.

    `BadInput` where an episode is there twice, or where the two have none in common.
    """
    one, other = _by_episode(first, "the first"), _by_episode(second, "the second")
    tasks = sorted({task for task, *_ in [*one, *other]})
    if len(tasks) > 1:
        raise BadInput(f"these are results of different tasks: {', '.join(tasks)}; compare results of the same task")
    pairs = [(record, other[key]) for key, record in one.items() if key in other]
    if not pairs:
        raise BadInput("the two have no episode in common: use the same --objects and --seed for both")
    return Comparison(pairs, len(one) - len(pairs), len(other) - len(pairs), differences(*pairs[0]))


def _by_episode(records: Sequence[Record], whose: str) -> dict[tuple[str, int, int, int], Record]:
    found = {(one.task, one.objects, one.seed, one.episode): one for one in records}
    if not found:
        raise BadInput(f"{whose} results are empty")
    if len(found) < len(records):
        raise BadInput(f"{whose} results hold an episode twice; compare one policy with one other")
    return found


def paired_rates(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return how often each of two succeeds in the same episodes, and how many steps each needs where both do.

    Intervals are Wilson's, the p value is that of McNemar's exact test. Numbers are rounded.
    """
    both = [pair for pair in pairs if pair[0].success and pair[1].success]
    successes = [sum(pair[side].success for pair in pairs) for side in (0, 1)]
    lost, gained = (number - len(both) for number in successes)
    return {
        "episodes": len(pairs),
        "successes": successes,
        "intervals": [[round(end, 4) for end in wilson_interval(number, len(pairs))] for number in successes],
        "gained": gained,  # episodes that only the second solves
        "lost": lost,
        "p_value": round(mcnemar(gained, lost), 4),
        "both": len(both),
        "mean_steps": [round(fmean(pair[side].steps for pair in both), 1) for side in (0, 1)] if both else None,
    }


def mcnemar(gained: int, lost: int) -> float:
    """Return the p value of McNemar's exact test, two-sided, that two policies succeed equally often."""
    changed = gained + lost
    fewer = sum(math.comb(changed, number) for number in range(min(gained, lost) + 1))  # ways to come out as unlike
    return min(1.0, 2 * fewer / (1 << changed))


def rate_lines(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines for a person to read."""
    lines = [f"{'objects':>7}  {'A (95% interval)':>24}  {'B (95% interval)':>24}  {'only A':>6}  {'only B':>6}  p"]
    for name, row in rows.items():
        rates = [
            f"{number}/{row['episodes']} ({100 * low:.1f}–{100 * high:.1f}%)"
            for number, (low, high) in zip(row["successes"], row["intervals"], strict=True)
        ]
        alone = f"{row['lost']:>6}  {row['gained']:>6}  {row['p_value']:.3g}"
        lines.append(f"{name:>7}  {rates[0]:>24}  {rates[1]:>24}  {alone}")
    return lines


# What else differs


def differences(first: Record, second: Record) -> Differences:
    """Return how two records were not made the same way; parts of `versions`, say, are called `versions.numpy`."""
    one, other = _circumstances(first), _circumstances(second)
    both = {name: (one.get(name), other.get(name)) for name in {**one, **other}}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _circumstances(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in CIRCUMSTANCES:
        value = getattr(record, name)
        found.update(
            {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        )
    return found


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
        known = f"failed: {', '.join(failed[:10])}" if failed else "all succeeded"
        raise BadInput(f"say which episode of {where} to replay, with --episode N; {known}")
    found = [record for record in records if record.episode == episode and objects in (None, record.objects)]
    if len(found) != 1:
        sizes = ", ".join(map(str, sorted({record.objects for record in found or records}))) or "no"
        raise BadInput(f"{where} has {len(found) or 'no'} episode {episode}; it has {sizes} objects: --objects N")
    return found[0]


def compare_with_record(record: Record, episode: Episode, policy: RunnablePolicy, task: Task) -> list[str]:
    """Return how an episode differs from its record, and what may be the cause; nothing where it is the same."""
    then = record.outcome, record.reason, record.steps, record.changes
    if then == (episode.outcome, episode.reason, episode.steps, episode.counts):
        return []
    was = f"{record.outcome} after {record.steps} steps" + (f" ({record.reason})" if record.reason else "")
    present = replace(record, policy=policy.policy, policy_digest=policy.digest, settings=dict(policy.settings))
    present = replace(present, versions=versions(task.packages))
    causes = difference_lines(differences(record, present))
    return [f"not as recorded: that was {was}", *(causes or ["nothing that is recorded differs but the machine"])]

"""What is kept of each episode of an evaluation, one line of JSON, and many of these in a few numbers."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bilevel.json_files import Amount, Count, Plain, decode
from bilevel.policies.changes import ChangeCounts
from bilevel.policies.episode import INCIDENT_KINDS, Incident
from bilevel.tasks.scene_env import SUCCESS

BEGINNING = b'{"task": "'  # of every line
Z = 1.959964  # of a two-sided interval of 95%

# What results that belong together have in common, and what a person says where they do not.
IDENTITY = {
    "task": "another task",
    "method": "another method",
    "policy_digest": "another policy",
    "settings": "other settings of the method",
    "seed": "another --seed",
    "noise": "another --noise",
    "arguments": "other --env-args",
    "perception": "another --perception",
    "versions": "other versions of bilevel or of what it uses",
}


@dataclass(frozen=True)
class EpisodeRecord:
    """How one episode went, and all that it depends on."""

    task: str
    method: str
    policy: str | None  # its folder, as it was given
    policy_digest: str | None
    policy_seed: Count | None  # of learning it
    objects: Count
    episode: Count
    seed: int  # of the environment
    noise: float
    arguments: dict[str, Any]  # of the environment, besides the number of objects
    outcome: str
    reason: str | None  # why it did not succeed
    steps: Count
    changes: ChangeCounts
    versions: dict[str, str]
    settings: dict[str, Plain] = field(default_factory=dict)  # of the method
    perception: str = ""  # what is wrong with what is seen, as `--perception` takes it
    detail: str | None = None  # what the policy itself says about why it did not succeed
    recovery: dict[str, Count] = field(default_factory=dict)  # how often the policy was at a loss, by what it then did
    incidents: list[Incident] | None = None  # the same one by one, where they were to be kept
    # What depends on the machine is not in its line; see `timings`.
    seconds: dict[str, Amount] = field(default_factory=dict, compare=False)
    peak_mebibytes: Amount | None = field(default=None, compare=False)  # of the process that ran it

    @property
    def success(self) -> bool:
        """Whether all goals were achieved."""
        return self.outcome == SUCCESS

    def line(self) -> str:
        """Return it as a line of JSON, without what depends on the machine."""
        incidents = None if self.incidents is None else [incident.as_json() for incident in self.incidents]
        flat = asdict(replace(self, incidents=None))
        del flat["seconds"], flat["peak_mebibytes"]
        return json.dumps({**flat, "changes": _counts(self.changes), "incidents": incidents}) + "\n"


def read_record(line: bytes | str, where: object = "the record") -> EpisodeRecord:
    """`BadInput`, which says where it is, where the line is not that of an episode."""
    return decode(line, EpisodeRecord, f"{where}: not the result of an episode")


def _counts(changes: ChangeCounts) -> dict[str, int]:
    return {**asdict(changes), "unexpected": changes.unexpected}


OF_POLICY = "intervals are Wilson's, for this policy alone; another training seed makes another policy"


def wilson_interval(successes: int, episodes: int) -> tuple[float, float]:
    """A 95% interval for the success rate of one policy, by episodes that are independent; right near 0 and 1 too."""
    if episodes == 0:
        return 0.0, 1.0
    rate = successes / episodes
    scale = 1 + Z * Z / episodes
    middle = (rate + Z * Z / (2 * episodes)) / scale
    half = Z * math.sqrt(rate * (1 - rate) / episodes + (Z / (2 * episodes)) ** 2) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Row:
    """How some episodes went."""

    episodes: int
    successes: int
    interval: tuple[float, float]  # of the success rate, at 95%
    mean_steps: float | None  # of the successes
    reasons: Mapping[str, int]  # of the failures, the commonest first
    changes: ChangeCounts
    recovery: Mapping[str, int]  # how often the policy was at a loss, by what it then did

    def as_json(self) -> dict[str, object]:
        """Return it for `--json`, with rounded numbers."""
        steps = None if self.mean_steps is None else round(self.mean_steps, 1)
        refinement = None if self.changes.refinement is None else round(self.changes.refinement, 4)
        rounded = {"interval": [round(bound, 4) for bound in self.interval], "mean_steps": steps}
        return {**asdict(self), **rounded, "changes": _counts(self.changes), "refinement": refinement}


def make_row(records: Sequence[EpisodeRecord]) -> Row:
    """Return how these episodes went."""
    steps = [record.steps for record in records if record.success]
    reasons = Counter(record.reason for record in records if record.reason is not None)
    return Row(
        episodes=len(records),
        successes=len(steps),
        interval=wilson_interval(len(steps), len(records)),
        mean_steps=sum(steps) / len(steps) if steps else None,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        changes=sum((record.changes for record in records), ChangeCounts()),
        recovery={kind: sum(record.recovery.get(kind, 0) for record in records) for kind in INCIDENT_KINDS},
    )


def rows_by_objects(records: Sequence[EpisodeRecord]) -> dict[int, Row]:
    """Return how episodes went with each number of objects."""
    sizes = sorted({record.objects for record in records})
    return {size: make_row([record for record in records if record.objects == size]) for size in sizes}


def table(records: Sequence[EpisodeRecord]) -> list[str]:
    """Lines for a person to read."""
    total = make_row(records)
    rows = {**{str(size): row for size, row in rows_by_objects(records).items()}, "total": total}
    lines = [f"{'objects':>7}  {'successes':>9}  {'95% interval':>13}  {'mean steps':>10}  failures"]
    lines += [_line(name, row).rstrip() for name, row in rows.items()]
    return [*lines, OF_POLICY, *_refinement(total.changes), *_recovery(total)]


def _line(name: str, row: Row) -> str:
    interval = f"{100 * row.interval[0]:.1f}–{100 * row.interval[1]:.1f}%"
    steps = "–" if row.mean_steps is None else f"{row.mean_steps:.0f}"
    reasons = ", ".join(f"{reason} {number}" for reason, number in row.reasons.items())
    return f"{name:>7}  {f'{row.successes}/{row.episodes}':>9}  {interval:>13}  {steps:>10}  {reasons}"


def _recovery(row: Row) -> list[str]:
    if not any(row.recovery.values()):
        return []
    names = {
        "wait": "waits",
        "plan": "plans",
        "nudge": "nudges",
        "retry": "retries",
        "other": "other choices",
        "stop": "stops",
    }
    return ["at a loss: " + ", ".join(f"{row.recovery[kind]} {name}" for kind, name in names.items())]


def _refinement(changes: ChangeCounts) -> list[str]:
    if changes.refinement is None:
        return []
    unexpected = f"{changes.drop} drops, {changes.collision} collisions, {changes.flicker} flickers"
    rate = f"{100 * changes.refinement:.2f}% of the changes of the state were the chosen action's own effects"
    return [f"{rate}: {changes.own}, against {unexpected}; {changes.exogenous} were exogenous"]

"""The results of an evaluation in a few numbers, for each number of objects and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bilevel.experiments.records import EpisodeRecord
from bilevel.experiments.statistics import wilson_interval
from bilevel.policies.changes import Changes


@dataclass(frozen=True)
class Row:
    """How some episodes went."""

    episodes: int
    successes: int
    interval: tuple[float, float]  # of the success rate, at 95%
    mean_steps: float | None  # of the successes
    reasons: Mapping[str, int]  # of the failures, the commonest first
    changes: Changes

    def as_json(self) -> dict[str, object]:
        steps = None if self.mean_steps is None else round(self.mean_steps, 1)
        refinement = None if self.changes.refinement is None else round(self.changes.refinement, 4)
        rounded = {"interval": [round(bound, 4) for bound in self.interval], "mean_steps": steps}
        changes = {**asdict(self.changes), "unexpected": self.changes.unexpected}
        return {**asdict(self), **rounded, "changes": changes, "refinement": refinement}


def make_row(records: Sequence[EpisodeRecord]) -> Row:
    steps = [record.steps for record in records if record.success]
    reasons = Counter(record.reason for record in records if record.reason is not None)
    return Row(
        episodes=len(records),
        successes=len(steps),
        interval=wilson_interval(len(steps), len(records)),
        mean_steps=sum(steps) / len(steps) if steps else None,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        changes=sum((record.changes for record in records), Changes()),
    )


def rows_by_objects(records: Sequence[EpisodeRecord]) -> dict[int, Row]:
    sizes = sorted({record.objects for record in records})
    return {size: make_row([record for record in records if record.objects == size]) for size in sizes}


def table(records: Sequence[EpisodeRecord]) -> list[str]:
    """Lines for a person to read."""
    total = make_row(records)
    rows = {**{str(size): row for size, row in rows_by_objects(records).items()}, "total": total}
    lines = [f"{'objects':>7}  {'successes':>9}  {'95% interval':>13}  {'mean steps':>10}  failures"]
    lines += [_line(name, row).rstrip() for name, row in rows.items()]
    return [*lines, *_refinement(total.changes)]


def _line(name: str, row: Row) -> str:
    interval = f"{100 * row.interval[0]:.1f}–{100 * row.interval[1]:.1f}%"
    steps = "–" if row.mean_steps is None else f"{row.mean_steps:.0f}"
    reasons = ", ".join(f"{reason} {number}" for reason, number in row.reasons.items())
    return f"{name:>7}  {f'{row.successes}/{row.episodes}':>9}  {interval:>13}  {steps:>10}  {reasons}"


def _refinement(changes: Changes) -> list[str]:
    if changes.refinement is None:
        return []
    unexpected = f"{changes.drop} drops, {changes.collision} collisions, {changes.flicker} flickers"
    rate = f"{100 * changes.refinement:.2f}% of the changes of the state were the chosen action's own effects"
    return [f"{rate}: {changes.own}, against {unexpected}; {changes.exogenous} were exogenous"]

"""The command that compares two results of an evaluation."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from bilevel.commands.arguments import Json, answer, count

if TYPE_CHECKING:
    from bilevel.experiments.compare import Comparison, Pair, PairedRates
    from bilevel.experiments.records import Record

MAX_SHOWN = 20  # episodes that changed, in words

First = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A.jsonl")]
Second = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B.jsonl")]


@dataclass(frozen=True)
class Compare:
    """Compare two results of `bilevel evaluate`, episode by episode: which is better, and which episodes changed.

    Episodes are paired by task, number of objects, seed and number; those that only one has are left out and counted.
    The interval of a difference is Tango's score interval for pairs, the p value that of McNemar's exact test, and the
    interval of the steps Student's.

    Example: bilevel compare build/before.jsonl build/after.jsonl
    """

    first: First
    """Results of `bilevel evaluate`: A."""
    second: Second
    """Other results, of the same task: B."""
    json: Json = False

    def run(self) -> int:
        """Run the command; return the exit code."""
        from bilevel.experiments.compare import compare
        from bilevel.experiments.records import read_records

        found = compare(read_records(self.first), read_records(self.second))
        answer(self._as_json(found), self.json, *self._lines(found))
        return 0

    def _as_json(self, found: Comparison) -> dict[str, object]:
        return {
            "first": str(self.first),
            "second": str(self.second),
            "task": found.pairs[0].first.task,
            "only_first": found.only_first,
            "only_second": found.only_second,
            "differences": found.differences,
            "total": found.total.as_json(),
            "by_objects": {str(size): row.as_json() for size, row in found.by_objects.items()},
            "changed": [self._changed(pair) for pair in found.changed],
        }

    def _changed(self, pair: Pair) -> dict[str, object]:
        first, second = pair
        return {
            "objects": first.objects,
            "episode": first.episode,
            "seed": first.seed,
            "first": _ending(first),
            "second": _ending(second),
            "replay": _replay(self.first if second.success else self.second, first),
        }

    def _lines(self, found: Comparison) -> list[str]:
        from bilevel.experiments.compare import difference_lines, table

        total = found.total
        left_out = {"A": found.only_first, "B": found.only_second}
        return [
            *(f"{name}: {path}" for name, path in (("A", self.first), ("B", self.second))),
            f"{found.pairs[0].first.task}: {count(found.pairs, 'episode')} in both"
            + "".join(f"; {number} only in {name}, left out" for name, number in left_out.items() if number),
            *(f"  {line}" for line in difference_lines(found.differences)),
            "" if found.differences else "nothing else that is recorded differs between them",
            *table({**{str(size): row for size, row in found.by_objects.items()}, "total": total}),
            f"differences are in percentage points, with Tango's interval for pairs; in total, p = {total.p_value:.3g} "
            "by McNemar's exact test",
            "all intervals are for these two policies, over episodes; what other training seeds give, they do not say",
            *_steps(total),
            *self._episodes(found),
        ]

    def _episodes(self, found: Comparison) -> list[str]:
        changed = [self._changed(pair) for pair in found.changed]
        if not changed:
            return ["no episode changed: each succeeds in both, or fails in both"]
        lines = [f"{count(changed, 'episode')} changed; to see what happens where one fails:"]
        lines += [f"  {each['first']} → {each['second']}: {each['replay']}" for each in changed[:MAX_SHOWN]]
        more = len(changed) - MAX_SHOWN
        return [*lines, f"  and {more} more: see --json"] if more > 0 else lines


def _ending(record: Record) -> str:
    return record.reason or record.outcome


def _replay(path: Path, record: Record) -> str:
    """The command that runs an episode again."""
    return f"bilevel run --replay {shlex.quote(str(path))} --objects {record.objects} --episode {record.episode}"


def _steps(total: PairedRates) -> list[str]:
    from bilevel.experiments.compare import signed

    if total.mean_steps is None or total.steps_difference is None:
        return ["no episode is solved by both, so steps are not compared"]
    first, second = total.mean_steps
    interval = signed(total.steps_difference, *total.steps_interval) if total.steps_interval else "no interval"
    means = f"mean steps in the {count(total.both, 'episode')} that both solve: A {first:.1f}, B {second:.1f}"
    return [f"{means}; B − A {interval}"]

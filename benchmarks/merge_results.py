"""Put what several runs of one experiment found, in folders of their own, into one file:

    python benchmarks/merge_results.py build/one/findings.jsonl build/other/findings.jsonl results/reproduction.jsonl
    python benchmarks/merge_results.py build/one/curves.jsonl build/other/curves.jsonl results/hard.jsonl

What a run finds depends on the experiment alone, so it does not matter which of them did what. Where two have measured
the same, the later file counts. The last file is the one that is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from bilevel.experiments.hard.axes import AXES
from bilevel.experiments.hard.curves import Curves, FoundCurve, FoundPoint, read_curves
from bilevel.experiments.paper import in_order
from bilevel.experiments.reproduction.findings import About, Finding, Findings, read_findings
from bilevel.experiments.reproduction.large_problems import Scaling
from bilevel.experiments.reproduction.variants import VARIANTS
from bilevel.files import write_atomically
from bilevel.symbolic.domain import BadInput

Item = TypeVar("Item")


def merge_findings(parts: Sequence[Findings]) -> Findings:
    """Return all rows and large problems, in the order in which one run writes them."""
    rows: dict[tuple[str, str, int], Finding] = {}
    for row in chain.from_iterable(part.rows for part in parts):
        key = row.task, row.variant, row.seed
        rows[key] = _with_more_sizes(rows[key], row) if key in rows else row
    problems = {(one.task, one.solver, one.objects): one for one in chain.from_iterable(part.scaling for part in parts)}
    tasks, variants = (
        in_order({row.task for row in rows.values()} | {one.task for one in problems.values()}),
        [*VARIANTS],
    )

    def place(row: Finding) -> tuple[int, int, int]:
        return tasks.index(row.task), variants.index(row.variant), row.seed

    def size(one: Scaling) -> tuple[int, str, int]:
        return tasks.index(one.task), one.solver, one.objects

    about = merge_abouts([part.about for part in parts])
    return Findings(about, sorted(rows.values(), key=place), sorted(problems.values(), key=size))


def _with_more_sizes(row: Finding, more: Finding) -> Finding:
    if row.digest != more.digest:
        raise BadInput(f"{row.variant} on {row.task}, seed {row.seed}: two different policies; they do not go together")
    sizes = {size.objects: size for size in (*row.sizes, *more.sizes)}
    return replace(more, sizes=[sizes[objects] for objects in sorted(sizes)])


def merge_curves(parts: Sequence[Curves]) -> Curves:
    """Return all curves, in the order in which one run writes them."""
    found: dict[tuple[str, str, str, int | None], dict[tuple[float, int], FoundPoint]] = {}
    for curve in chain.from_iterable(part.curves for part in parts):
        points = found.setdefault((curve.axis, curve.task, curve.variant, curve.objects), {})
        points.update({(point.value, point.seed): point for point in curve.points})

    def place(curve: FoundCurve) -> tuple[int, int, int, int]:
        axis = AXES[curve.axis]
        tasks, variants = [*axis.tasks.values()], [*VARIANTS]
        return [*AXES].index(axis.name), tasks.index(curve.task), variants.index(curve.variant), curve.objects or 0

    curves = [FoundCurve(*key, points=[points[one] for one in sorted(points)]) for key, points in found.items()]
    return Curves(merge_abouts([part.about for part in parts]), sorted(curves, key=place))


def merge_abouts(parts: Sequence[About]) -> About:
    """Return what all have in common; `BadInput` where they are of different experiments."""
    first = parts[0]
    if any(part.experiment != first.experiment for part in parts):
        raise BadInput("these are of different experiments; their results do not go together")
    return About(
        experiment=first.experiment,
        command="; ".join(_once(part.command for part in parts)),
        machines=_once(machine for part in parts for machine in part.machines),
        failures=_once(failure for part in parts for failure in part.failures),
        rules={task: text for part in parts for task, text in part.rules.items()},
        dates=sorted({date for part in parts for date in part.dates}),
        left_out=_once(name for part in parts for name in part.left_out),
        asked=_once(asked for part in parts for asked in part.asked),
    )


def _once(items: Iterable[Item]) -> list[Item]:
    """Return each item once, in their order."""
    found: list[Item] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, help="what runs found; those of one kind")
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    try:
        is_hard = '"kind": "curve"' in given.sources[0].read_text(encoding="utf-8")
        merged = (
            merge_curves([read_curves(path) for path in given.sources])
            if is_hard
            else merge_findings([read_findings(path) for path in given.sources])
        )
    except (BadInput, OSError) as error:
        parser.error(str(error))
    write_atomically(given.output, merged.lines())


if __name__ == "__main__":
    main()

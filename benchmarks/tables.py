"""The tables of the README about the worlds, as markdown, from what was measured:

    python benchmarks/tables.py                              # all tables whose results are there
    python benchmarks/tables.py experts --results results

Reads experts.jsonl, world-speed.jsonl and demonstrations.jsonl, which expert_success.py, world_speed.py and
learn_from_demonstrations.py write.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    rule = "|---|" + "---:|" * (len(header) - 1)
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join((first, rule, *others))


def kinds(rows: Sequence[Row]) -> list[tuple[int, float]]:
    """The sizes, and amplitudes of noise, that were measured; calm ones first."""
    return sorted({(row["objects"], row["noise"]) for row in rows}, key=lambda kind: (kind[1], kind[0]))


def experts(rows: Sequence[Row]) -> str:
    """Successes of each task at each size, and the steps of each of its skills."""
    columns = kinds(rows)
    names = [f"n = {objects}" + (", jostled" if noise else "") for objects, noise in columns]
    found = {(row["task"], row["objects"], row["noise"]): row for row in rows}
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        cells = [found.get((task, *column)) for column in columns]
        lines.append([task, *(success(cell) for cell in cells)])
    return f"{markdown(['task', *names], lines)}\n\n{skills(rows)}"


def success(row: Row | None) -> str:
    if row is None:
        return "–"
    low, high = (f"{100 * bound:.0f}" for bound in row["interval"])
    return f"{row['successes']}/{row['episodes']} ({low}–{high}%), {row['mean_steps']:.0f}"


def skills(rows: Sequence[Row]) -> str:
    """Mean steps of each skill where nobody jostles the hand, with three objects if that was measured."""
    calm = [row for row in rows if not row["noise"]]
    sizes = sorted({row["objects"] for row in calm})
    size = 3 if 3 in sizes else sizes[0]
    chosen = [row for row in calm if row["objects"] == size]
    schemas = list(dict.fromkeys(schema for row in chosen for schema in sorted(row["mean_steps_per_schema"])))
    lines = [
        [row["task"], *(f"{steps[s]:.0f}" if s in steps else "–" for s in schemas)]
        for row in chosen
        for steps in [row["mean_steps_per_schema"]]
    ]
    return markdown([f"steps of an action, n = {size}", *schemas], lines)


def speed(rows: Sequence[Row]) -> str:
    """Steps per second, and how many times those of MetaWorld."""
    sizes = sorted({row["objects"] for row in rows})
    found = {(row["task"], row["objects"]): row for row in rows}
    lines = [
        [task, *(rate(found.get((task, size))) for size in sizes)]
        for task in dict.fromkeys(row["task"] for row in rows)
    ]
    return markdown(["steps per second", *(f"n = {size}" for size in sizes)], lines)


def rate(row: Row | None) -> str:
    return f"{row['steps_per_second']:,} ({row['ratio']:.1f}×)" if row else "–"


DEMONSTRATION_COLUMNS = (
    "task", "episodes", "steps", "MB", "collecting, s", "actions", "unexplained changes", "events",
    "steps without action", "with the expert's", "golden rules",
)  # fmt: skip


def demonstrations(rows: Sequence[Row]) -> str:
    """How long a data set takes, and what is learned from it."""
    return markdown(DEMONSTRATION_COLUMNS, [list(demonstration_cells(row)) for row in rows])


def demonstration_cells(row: Row) -> Iterator[str]:
    yield row["task"] + (f", noise {row['noise']:g}" if row["noise"] else "")
    yield from (f"{row[key]:,}" for key in ("episodes", "steps"))
    yield f"{row['megabytes']:.1f}"
    yield f"{row['collecting_seconds']:.0f}"
    yield f"{sum(row['actions'].values()):,}"
    yield f"{row['exogenous']:,}"
    yield ", ".join(f"{kind} {number:,}" for kind, number in row["events"].items()) or "none"
    yield f"{row['steps'] - row['explained_steps']:,}"
    yield f"{100 * row['agreeing_steps'] / max(1, row['explained_steps']):.2f}%"
    yield "yes" if row["golden_rules"] else "no"


class Table(NamedTuple):
    file: str
    render: Callable[[Sequence[Row]], str]


TABLES = {
    "experts": Table("experts.jsonl", experts),
    "speed": Table("world-speed.jsonl", speed),
    "demonstrations": Table("demonstrations.jsonl", demonstrations),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(TABLES)}; by default all")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the results")
    given = parser.parse_args()
    for name in given.tables or TABLES:
        if name not in TABLES:
            parser.error(f"unknown table '{name}'; known tables: {', '.join(TABLES)}")
        file, render = TABLES[name]
        path = given.results / file
        if not path.exists():
            print(f"{path}: not measured yet", file=sys.stderr)
            continue
        print(render([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]), end="\n\n")


if __name__ == "__main__":
    main()

"""How long a step takes, next to what it took at an earlier commit, in one run.

    python benchmarks/step_speed.py                                   # all eight tasks: a quarter of an hour
    python benchmarks/step_speed.py --tasks blocks --objects 3 --repeats 1
    python benchmarks/step_speed.py --before HEAD~10

Both commits are measured in turns, each time in a fresh process, by `step_timing.py`: the environment with what is
seen, labels and choice, the network, and the whole step, in CPU microseconds. What counts is the median over all turns.
Prints a line for each row and writes it at once to results/step-speed.jsonl, in place of that of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from result_files import Row, origin, replace_row
from revisions import BEFORE, ROOT, checked_out

from bilevel.tabletop import TASKS

PARTS = ("environment", "labels and choice", "network", "step")
NEW = ("swap", "swap-noisy")  # tasks that the earlier commit does not have


def timed(folder: Path, task: str, sizes: Sequence[int]) -> list[Row]:
    """Return what a step takes with the package in a folder, a row for each number of objects."""
    command = [sys.executable, str(ROOT / "benchmarks" / "step_timing.py"), task, *map(str, sizes)]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in printed.splitlines()]


def compare(earlier: Path, task: str, sizes: Sequence[int], repeats: int) -> Iterator[Row]:
    turns = [(timed(earlier, task, sizes), timed(ROOT, task, sizes)) for _ in range(repeats)]
    for number, size in enumerate(sizes):
        before, after = [turn[0][number] for turn in turns], [turn[1][number] for turn in turns]
        yield {
            "task": task,
            "objects": size,
            "steps": after[0]["steps"],
            "same_episode": before[0]["steps"] == after[0]["steps"],
            "repeats": repeats,
            "microseconds_before": {part: round(median(row[part] for row in before), 1) for part in PARTS},
            "microseconds": {part: round(median(row[part] for row in after), 1) for part in PARTS},
            "ratio": {
                part: round(median(new[part] / old[part] for old, new in zip(before, after, strict=True)), 3)
                for part in PARTS
            },
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    known = [name for name in TASKS if name not in NEW]
    parser.add_argument("--tasks", nargs="+", choices=known, default=known, metavar="TASK")
    parser.add_argument("--objects", nargs="+", type=int, default=(3, 10))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("results/step-speed.jsonl"))
    given = parser.parse_args()
    with checked_out(given.before, "src") as earlier:
        for task in given.tasks:
            for row in compare(earlier, task, given.objects, given.repeats):
                row = {**row, "before": given.before, **origin(TASKS[task].packages)}
                replace_row(given.output, row, ("task", "objects"))
                ratios = "  ".join(f"{part} {row['ratio'][part]:.2f}" for part in PARTS)
                print(
                    f"{task:14} n={row['objects']:<3} {row['microseconds']['step']:5.0f} µs, new/old: {ratios}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

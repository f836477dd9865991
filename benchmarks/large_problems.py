"""What `solve` and `validate` take on large problems, files and all, next to what they took at an earlier commit.

    python benchmarks/large_problems.py                              # up to a million blocks: half an hour
    python benchmarks/large_problems.py --shapes blocks --sizes 10000 --repeats 1

The earlier commit, what is here without its compiled parts, and with them are measured in turns, each time in a fresh
process; plans must be the same. CPU seconds of the whole process, user and system, the median over all turns, and the
most memory. Writes results/large-problems.jsonl.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from measurement import LAUNCHER
from result_files import Row, origin, write_rows
from revisions import ROOT, checked_out
from rule_scaling import write_rules

from bilevel.compiled import PURE
from bilevel.tabletop.problems import UNTANGLED, generate_problem

BEFORE = "83293b6"  # the last commit at which every fact was a Python object
SIZES = (10_000, 100_000, 1_000_000)
GROWN = "blocks"  # the shape that is measured at every size, others at one
OTHER_SIZE = 100_000
FEWER = {"gacha": 10_000}  # since n colours take n log n rolls
LARGE = 1_000_000  # from here on once


class Cost(NamedTuple):
    seconds: float
    mebibytes: float


def cost(words: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """Return what a command takes, which has to succeed."""
    command = [sys.executable, "-S", "-c", LAUNCHER, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    status, seconds, memory = done.stdout.splitlines()[-1].split()
    if status != "0":
        sys.exit(f"failed: bilevel {' '.join(words)}: {done.stderr}")
    return Cost(float(seconds), int(memory) / (2**20 if sys.platform == "darwin" else 2**10))


def compare(shape: str, size: int, folder: Path, environments: Mapping[str, Mapping[str, str]], repeats: int) -> Row:
    """Return a row about one problem."""
    domain = generate_problem(shape, 1, random.Random(0)).domain_name
    files = [str(folder / f"{domain}-domain.pddl"), str(folder / "problem.pddl")]
    rules = str(folder / f"{domain}.rules")
    cost(["problem", shape, "--objects", str(size), "--output", files[1]], environments["now"])
    row: Row = {"shape": shape, "size": size, "repeats": repeats}
    costs: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(repeats):
        plans = {name: folder / f"{name}.plan" for name in environments}
        for name, environment in environments.items():
            plan = str(plans[name])
            solving, validating = ["solve", *files, "--rules", rules, "--plan", plan], ["validate", *files, plan]
            costs.setdefault(("solve", name), []).append(cost(solving, environment))
            costs.setdefault(("validate", name), []).append(cost(validating, environment))
        if len({plan.read_bytes() for plan in plans.values()}) > 1:
            sys.exit(f"the plans for {shape} with {size} objects differ")
        row["actions"] = plans["now"].read_bytes().count(b"\n") - 1
    for (command, name), found in costs.items():
        row[f"{command}_seconds_{name}"] = round(median(each.seconds for each in found), 3)
        row[f"{command}_mebibytes_{name}"] = round(max(each.mebibytes for each in found), 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--shapes", nargs="+", choices=UNTANGLED, default=[*UNTANGLED])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("results/large-problems.jsonl"))
    given = parser.parse_args()
    rows = []
    with checked_out(given.before, "src") as earlier, tempfile.TemporaryDirectory() as name:
        write_rules(Path(name))
        here = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
        here |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(name) / "bytecode")}
        environments = {
            "before": {**here, "PYTHONPATH": str(earlier / "src")},
            "pure": {**here, PURE: "1"},
            "now": {**here, PURE: "0"},
        }
        compare(GROWN, 10, Path(name), environments, 1)  # which leaves compiled bytecode, as an installation does
        for shape in given.shapes:
            for size in given.sizes if shape == GROWN else [FEWER.get(shape, OTHER_SIZE)]:
                row = compare(shape, size, Path(name), environments, 1 if size >= LARGE else given.repeats)
                rows.append({**row, "before": given.before, **origin()})
                print({key: value for key, value in row.items() if "seconds" in key}, shape, size, flush=True)
                write_rows(given.output, rows)


if __name__ == "__main__":
    main()

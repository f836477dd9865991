"""How long commands take that have next to nothing to do, next to what they took at an earlier commit, in one run.

    python benchmarks/startup.py                                   # every command: five minutes
    python benchmarks/startup.py --repeats 3 --before HEAD~10

Each command is asked for its help, and those that need no data set are also run, on the smallest of problems. Both
commits are measured in turns, each time in a fresh process, from compiled bytecode, as after an installation. CPU
seconds of the whole process, user and system; what counts is the median over all turns. Writes results/startup.jsonl.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from result_files import Row, origin, write_rows
from revisions import ROOT, checked_out

from bilevel.cli import COMMANDS
from bilevel.tabletop.problems import domain_text

BEFORE = "83293b6"  # the last commit at which every command imported all that any of them needs
FILES = {
    "domain.pddl": domain_text("blocks"),
    "problem.pddl": "(define (problem one) (:domain blocks) (:objects b1 - block p1 - place)\n"
    "  (:init (clear b1) (clear p1) (gripper-free)) (:goal (at b1 p1)))\n",
    "blocks.rules": "1: holding(?b) & clear(?p) & goal at(?b, ?p) -> place(?b, ?p)\n"
    "2: clear(?b) & clear(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b)\n",
    "one.plan": "(pick b1)\n(place b1 p1)\n",
}
SMALL = (
    "solve domain.pddl problem.pddl --rules blocks.rules",
    "validate domain.pddl problem.pddl one.plan",
    "plan domain.pddl problem.pddl",
    "problem blocks --output new.pddl",
    "rules learn domain.pddl problem.pddl --output new.rules",
    "rules show blocks.rules",
    "rules verify blocks.rules domain.pddl problem.pddl",
    "rules complete blocks.rules domain.pddl problem.pddl --output complete.rules",
    "domain show domain.pddl",
    "methods",
)


def cpu_seconds(command: str, folder: Path, environment: Mapping[str, str]) -> float:
    """Return what a command takes in a folder; it has to succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-c", "from bilevel.cli import main; main()", *command.split()]  # as the script does
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(earlier: Path, command: str, folder: Path, repeats: int) -> Row:
    """Return a row about one command."""
    environments = [
        {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "1"}
        | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        for root in (earlier, ROOT)
    ]
    turns = [[cpu_seconds(command, folder, environment) for environment in environments] for _ in range(repeats + 1)]
    before, after = (median(times) for times in zip(*turns[1:], strict=True))  # the first compiled the bytecode
    return {"words": command, "seconds_before": round(before, 4), "seconds": round(after, 4), "repeats": repeats}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("results/startup.jsonl"))
    given = parser.parse_args()
    commands = ["--version", "--help", *SMALL, *(f"{name} --help" for name in COMMANDS)]
    rows = []
    with checked_out(given.before, "src") as earlier, tempfile.TemporaryDirectory() as name:
        for file, text in FILES.items():
            (Path(name) / file).write_text(text)
        for command in commands:
            row = compare(earlier, command, Path(name), given.repeats)
            rows.append({**row, "before": given.before, **origin(("tyro",))})
            write_rows(given.output, rows)
            print(f"{row['seconds_before']:.3f} -> {row['seconds']:.3f}  {command}", flush=True)


if __name__ == "__main__":
    main()

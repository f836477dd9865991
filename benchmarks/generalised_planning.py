"""What `bilevel rules learn` and `bilevel solve` take on classical domains, now and before learning was made fast.

    python benchmarks/generalised_planning.py                        # all domains, as they are here
    python benchmarks/generalised_planning.py --before               # the same with the program as it was
    python benchmarks/generalised_planning.py --quick                # a smoke test: two domains, few and small problems

Learns rules from each domain's training problems, solves the largest test problem of each level with them, and checks
the plans. Seconds are CPU seconds of whole commands, one process each. Writes a row for each domain to
results/generalised-planning.jsonl; what is there already is not measured again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from generalised_problems import FAMILIES, FOLDER, LEVELS, generalised_domain, generalised_problems
from result_files import Row, origin, read_rows, replace_row
from revisions import ROOT, checked_out

from bilevel.symbolic.domain import Problem
from bilevel.symbolic.pddl import write_problem
from bilevel.symbolic.plans import read_plan, validate

BEFORE = "83293b6"  # the last commit before shortest plans by regression, grounding once, and pruning
TRAINING = 30
LIMIT = 3600  # seconds for a command
KEYS = ("domain", "version", "training")
Sizes = tuple[Sequence[str], int, Sequence[str]]  # domains, the number of training problems, levels
QUICK: Sizes = (("ferry", "transport"), 4, ("easy",))


@contextmanager
def source(version: str) -> Iterator[Path]:
    """Give the folder with the package's source, as it is here or as it was."""
    if version == "after":
        yield ROOT / "src"
        return
    with checked_out(BEFORE, "src") as folder:
        yield folder / "src"


def run(package: Path, *words: object) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run a command of the package and return its CPU seconds, with those of its children, and how it ended."""
    command = [sys.executable, "-m", "bilevel.cli", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, timeout=LIMIT, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def measure(name: str, version: str, training: int, levels: Sequence[str]) -> Row:
    """Return the row of a domain."""
    domain = generalised_domain(name)
    with tempfile.TemporaryDirectory() as made, source(version) as package:
        folder = Path(made)
        rules = folder / "learned.rules"

        def written(problem: Problem) -> Path:
            path = folder / f"{problem.name}.pddl"
            path.write_text(write_problem(problem, domain), encoding="utf-8")
            return path

        files = [written(problem) for problem in generalised_problems(name, "training", training)]
        seconds, done = run(package, "rules", "learn", FOLDER / f"{name}.pddl", *files, "--output", rules, "--json")
        if done.returncode:
            sys.exit(f"bilevel rules learn failed: {done.stderr}")
        learned = json.loads(done.stdout)
        solved = []
        for level in levels:
            problem = generalised_problems(name, level, 2)[-1]
            plan = folder / "plan"
            words = ("solve", FOLDER / f"{name}.pddl", written(problem), "--rules", rules, "--plan", plan)
            taken, done = run(package, *words)
            found = read_plan(plan, domain) if not done.returncode else None
            solved.append(
                {
                    "level": level,
                    "objects": len(problem.objects),
                    "seconds": round(taken, 2),
                    "steps": len(found.actions) if found else None,
                    "valid": found is not None and validate(domain, problem, found).is_valid,
                }
            )
    kept = {key: learned[key] for key in ("rules", "traces", "dropped") if key in learned}  # no wall-clock times
    about = {"domain": name, "version": version, "training": training, "seconds": round(seconds, 2)}
    return {**about, **kept, "solved": solved, **origin()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--before", action="store_true", help=f"measure the program as it was at {BEFORE}")
    parser.add_argument("--quick", action="store_true", help="two domains, few and small problems")
    parser.add_argument("--output", type=Path, default=Path("results/generalised-planning.jsonl"))
    given = parser.parse_args()
    version = "before" if given.before else "after"
    everything: Sizes = given.domains, TRAINING, LEVELS[1:]
    names, training, levels = QUICK if given.quick else everything
    known = {tuple(row[key] for key in KEYS) for row in read_rows(given.output)}
    for name in names:
        if (name, version, training) not in known:
            row = measure(name, version, training, levels)
            replace_row(given.output, row, KEYS)
            taken = ", ".join(f"{test['seconds']} s{'' if test['valid'] else ' NOT SOLVED'}" for test in row["solved"])
            print(f"{name:10} {version:6} {row['rules']:4} rules in {row['seconds']:7} s; solving {taken}", flush=True)


if __name__ == "__main__":
    main()

"""How the program does on a collection of planning problems: CPU seconds of whole commands, and what is solved.

    python benchmarks/planning.py path/to/collection              # a folder for each domain

Each domain is a folder with `domain.pddl`. Where there are folders `training` and `testing`, rules are learned from the
one and solve the other. Otherwise every other PDDL file in the folder is a problem that is planned for; a policy for a
nondeterministic one is checked by the command itself. Plans are checked by `bilevel validate`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench import RESULTS, Row, print_table, run, write_rows


def with_rules(domain: Path, work: Path, workers: int) -> Iterator[Row]:
    """Learn rules from the training problems; solve each testing problem."""
    folder, rules, plan = domain.parent, work / f"{domain.parent.name}.rules", work / "plan"
    training = sorted((folder / "training").glob("*.pddl"))
    learned = run("rules", "learn", domain, *training, "--output", rules, "--workers", workers, may_fail=True)
    row: Row = {"domain": folder.name, "problem": "training", "solved": learned.code == 0}
    yield {**row, "seconds": round(learned.seconds, 2)}
    for problem in sorted((folder / "testing").glob("*.pddl")) if learned.code == 0 else ():
        done = run("solve", domain, problem, "--rules", rules, "--plan", plan, may_fail=True)
        valid = done.code == 0 and run("validate", domain, problem, plan, may_fail=True).code == 0
        yield {"domain": folder.name, "problem": problem.stem, "solved": valid, "seconds": round(done.seconds, 2)}


def with_planner(domain: Path, work: Path, limit: float) -> Iterator[Row]:
    """Plan for each problem beside the domain; the exit code 1 says that there is no policy, or none in time."""
    for problem in sorted(set(domain.parent.glob("*.pddl")) - {domain}):
        output = work / f"{domain.parent.name}-{problem.stem}.txt"
        done = run("plan", domain, problem, "--timeout", limit, "--output", output, may_fail=True)
        answer = "solved" if done.code == 0 else done.output.strip().splitlines()[-1][:80] if done.output else ""
        row: Row = {"domain": domain.parent.name, "problem": problem.stem, "solved": done.code == 0}
        yield {**row, "seconds": round(done.seconds, 2), "answer": answer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, default=60, help="seconds for each plan")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/planning"))
    parser.add_argument("--output", type=Path, default=RESULTS / "planning.jsonl")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    rows = []
    for domain in (file for folder in given.folders for file in sorted(folder.glob("*/domain.pddl"))):
        learns = (domain.parent / "training").is_dir()
        found = (
            with_rules(domain, given.work, given.workers) if learns else with_planner(domain, given.work, given.limit)
        )
        for row in found:
            rows.append(row)
            print_table([row])
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()

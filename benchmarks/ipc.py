"""Rules on the learning track of the International Planning Competition 2023: ten domains, beside LAMA.

    python benchmarks/ipc.py                                     # a day: all problems, LAMA with 60 s each
    python benchmarks/ipc.py --each 6 --methods rules fallback   # six problems of each level
    python benchmarks/ipc.py --collection FOLDER --output rows.jsonl

Rules are learned from the training problems and tried on the others: alone, and with a planner for where they fail. A
collection has a folder for each domain, with `domain.pddl`, `training/` and the problems in other folders; where none
is given, `ipc_problems.py` writes one at the sizes of the track. Problems of a level grow, so that those after two in a
row that LAMA does not solve count as not solved either. What the output has already is not measured again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from bench import RESULTS, Row, print_table, read_rows, run, write_rows
from ipc_problems import GENERATORS, write

METHODS = ("rules", "fallback", "lama")
SLOWER = 20  # how much slower than its processor time a planner may be on a busy machine


def learn(domain: str, folder: Path, work: Path, seconds: float) -> tuple[Path, Row]:
    """Learn rules from all training problems of a domain; return their file and what there is to say of them."""
    rules, training = work / f"{domain}.rules", sorted((folder / "training").glob("*.pddl"))
    done = run(
        "rules", "learn", folder / "domain.pddl", *training, "--output", rules, "--seconds", seconds, may_fail=True
    )
    count = len(re.findall(r"(?m)^\d+: ", rules.read_text(encoding="utf-8"))) if rules.exists() else 0
    return rules, {"training": len(training), "rules": count, "learning": round(done.seconds, 1)}


def measure(method: str, folder: Path, problem: Path, rules: Path, limit: float) -> tuple[bool, float]:
    """Return whether a method solves a problem, and its CPU seconds."""
    files = folder / "domain.pddl", problem
    if method == "lama":
        done = run("plan", *files, "--planner", "lama", "--timeout", SLOWER * limit, most_seconds=limit, may_fail=True)
    else:
        fallback = ("--fallback", "lama") if method == "fallback" else ()
        done = run("solve", *files, "--rules", rules, *fallback, may_fail=True)
    return done.code == 0, done.seconds


def measure_all(method: str, folder: Path, problems: Sequence[Path], rules: Path, limit: float) -> Row:
    """Return how many of the problems a method solves, how many were tried, and the mean CPU seconds of these."""
    found: list[tuple[bool, float]] = []
    for problem in problems:
        found.append(measure(method, folder, problem, rules, limit))
        if method == "lama" and not any(solved for solved, _ in found[-2:]) and len(found) > 1:
            break
    seconds = round(sum(seconds for _, seconds in found) / len(found), 2)
    solved = sum(solved for solved, _ in found)
    return {"solved": solved, "problems": len(problems), "tried": len(found), "seconds": seconds}


def every(problems: Sequence[Path], count: int) -> list[Path]:
    """Return so many of the problems, the first and the last among them; all with 0."""
    if not count or count >= len(problems):
        return list(problems)
    return [problems[round(place * (len(problems) - 1) / max(1, count - 1))] for place in range(count)]


def levels(folder: Path) -> dict[str, list[Path]]:
    """Return the problems that are not for training, by level: the folder's name, or what a file's name begins with."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*.pddl")):
        if path.parent.name != "training":
            level = path.stem.split("-")[0] if path.parent.name == "testing" else path.parent.name
            found.setdefault(level, []).append(path)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, help="folder of domains; by default problems are generated")
    parser.add_argument("--domains", nargs="+", help="by default all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--levels", nargs="+", help="by default all")
    parser.add_argument("--each", type=int, default=0, help="problems of each level; by default all")
    parser.add_argument("--seconds", type=float, default=60, help="processor time that learning may take")
    parser.add_argument("--limit", type=float, default=60, help="seconds of processor time that LAMA has")
    parser.add_argument("--folder", type=Path, default=Path("build/ipc"))
    parser.add_argument("--output", type=Path, default=RESULTS / "ipc-learning.jsonl")
    given = parser.parse_args()
    collection = given.collection or given.folder / "problems"
    domains = given.domains or sorted(GENERATORS)
    if given.collection is None:
        write(collection, domains)
    name = given.collection.name if given.collection else "generated"
    rows = read_rows(given.output)
    for domain in domains:
        folder = collection / domain
        done = {(row["collection"], row["domain"], row["level"], row["method"]) for row in rows}
        left = [
            (level, method)
            for level in given.levels or levels(folder)
            for method in given.methods
            if (name, domain, level, method) not in done
        ]
        if not left:
            continue
        rules, learned = given.folder / f"{domain}.rules", Row()
        if any(method != "lama" for _, method in left):
            rules, learned = learn(domain, folder, given.folder, given.seconds)
        for level, method in left:
            problems = every(levels(folder)[level], given.each)
            row: Row = {"collection": name, "domain": domain, "level": level, "method": method}
            row |= measure_all(method, folder, problems, rules, given.limit)
            row |= learned if method != "lama" else {}
            rows.append(row)
            print_table([row])
            write_rows(given.output, rows)


if __name__ == "__main__":
    main()

"""How solving time grows with the number of objects: rules, beside LAMA, in CPU seconds of whole commands.

    python benchmarks/rules.py                            # up to a million objects: a quarter of an hour
    python benchmarks/rules.py --shapes colour trays --sizes 1000 10000 --methods rules

Rules are learned from each domain's small problems and completed where things stand in each other's way. Every problem
is written by `bilevel problem`, solved by `bilevel solve`, and its plan checked by `bilevel validate`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import RESULTS, ROOT, Row, print_table, run, write_rows

SHAPES = ("blocks", "pick-place", "trays", "colour", "gacha", "swap", "stack", "towers")
TANGLED = ("swap", "stack", "towers")  # whose rules have to be completed
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
LARGEST = {"gacha": 100_000, "swap": 1_000, "stack": 1_000, "towers": 1_000, "lama": 1_000}
LARGEST_VALIDATED = 10_000
PROBLEMS = ROOT / "src" / "bilevel" / "tabletop" / "domains" / "problems"


def write_problem(shape: str, size: int, folder: Path) -> tuple[Path, Path]:
    """Write a random problem, and return the files of its domain and of itself."""
    problem = folder / f"{shape}.pddl"
    run("problem", shape, "--objects", size, "--output", problem)
    with problem.open(encoding="utf-8") as file:
        name = file.read(1000).partition("(:domain ")[2].partition(")")[0].strip()
    return folder / f"{name}-domain.pddl", problem


def learn(shape: str, folder: Path) -> Path:
    """Return the file of the rules for a shape of problems."""
    rules = folder / f"{shape}.rules"
    domain, _ = write_problem(shape, 4, folder)
    training = sorted(PROBLEMS.glob(f"{domain.stem.removesuffix('-domain')}-[0-9]*.pddl"))
    run("rules", "learn", domain, *training, "--output", rules)
    if shape in TANGLED:
        complete = rules.with_suffix(".complete")
        run("rules", "complete", rules, domain, *training, "--output", complete, may_fail=True)
        return complete
    return rules


def measure(method: str, shape: str, size: int, rules: Path, limit: float) -> Row:
    """Return how long a method takes for a problem, and whether its plan is right where that is checked."""
    folder = rules.parent
    plan = folder / "plan"
    plan.unlink(missing_ok=True)
    domain, problem = write_problem(shape, size, folder)
    if method == "rules":
        done = run("solve", domain, problem, "--rules", rules, "--plan", plan, may_fail=True)
    else:
        command = ("plan", domain, problem, "--planner", method, "--timeout", limit, "--output", plan)
        done = run(*command, may_fail=True)
    row: Row = {"method": method, "shape": shape, "objects": size, "solved": done.code == 0}
    row["seconds"] = round(done.seconds, 2)
    if done.code == 0 and size <= LARGEST_VALIDATED:
        row["valid"] = run("validate", domain, problem, plan, may_fail=True).code == 0
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--methods", nargs="+", choices=("rules", "lama", "search"), default=("rules", "lama"))
    parser.add_argument("--limit", type=float, default=60, help="seconds that a planner has")
    parser.add_argument("--folder", type=Path, default=Path("build/rules"))
    parser.add_argument("--output", type=Path, default=RESULTS / "rules.jsonl")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for shape in given.shapes:
        rules = learn(shape, given.folder)
        for method in given.methods:
            for size in sorted(given.sizes):
                if size > min(LARGEST.get(shape, size), LARGEST.get(method, size)):
                    continue
                rows.append(measure(method, shape, size, rules, given.limit))
                print_table(rows[-1:])
                if not rows[-1]["solved"]:
                    break
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()

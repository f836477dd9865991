"""Rules on the learning track of the International Planning Competition 2023: ten domains, beside LAMA.

    python benchmarks/ipc.py                                   # problems of our own, at the sizes of the track
    python benchmarks/ipc.py --collection FOLDER               # those of a folder as well
    python benchmarks/ipc.py --each 0 --planned 0              # all problems: a day

Rules are learned from the training problems and tried on the others: alone, and with LAMA for where they fail. A
collection has a folder for each domain, with `domain.pddl`, `training/` and the problems in other folders; our own are
written by `ipc_problems.py`. Of each level `--each` problems are tried by rules and `--planned` by LAMA, which may take
`--limit` seconds of processor time. Where it finds no plan from where the rules stopped, it plans from the start; what
it does there alone is known already, and counts. Problems grow, so what comes after two in a row that LAMA does not
solve counts as not solved either. What the output has already is not measured again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import RESULTS, Row, print_table, read_rows, run, write_rows
from ipc_problems import GENERATORS, write

METHODS = ("learning", "rules", "lama", "fallback")
LEVELS = ("easy", "medium", "hard")
SLOWER = 40  # how much longer than its processor time a planner may take on a busy machine
GIVE_UP = 2  # problems in a row


def learn(folder: Path, rules: Path, seconds: float) -> Row:
    """Learn rules from all training problems of a domain; return how many there are of both, and the CPU seconds."""
    training = sorted((folder / "training").glob("*.pddl"))
    words = ("rules", "learn", folder / "domain.pddl", *training, "--output", rules, "--seconds", seconds)
    done = run(*words, may_fail=True)
    count = len(re.findall(r"(?m)^\d+: ", rules.read_text(encoding="utf-8"))) if rules.exists() else 0
    return {"training": len(training), "rules": count, "seconds": round(done.seconds, 1)}


def solve(method: str, folder: Path, problem: Path, rules: Path, limit: float, others: dict[str, Row]) -> Row:
    """Return whether a method solves a problem, and its CPU seconds, given what other methods did."""
    files, timeout = (folder / "domain.pddl", problem), ("--timeout", SLOWER * limit)
    if method == "lama":
        done = run("plan", *files, "--planner", "lama", *timeout, most_seconds=limit, may_fail=True)
    elif method == "rules":
        done = run("solve", *files, "--rules", rules, may_fail=True)
    elif others["rules"]["solved"]:
        return {key: others["rules"][key] for key in ("solved", "seconds")}
    else:
        fallback = ("--rules", rules, "--fallback", "lama", *timeout)
        done = run("solve", *files, *fallback, most_seconds=limit, may_fail=True)
        if done.code:
            alone = others["lama"]
            return {"solved": alone["solved"], "seconds": round(done.seconds + (alone["seconds"] or limit), 2)}
    return {"solved": done.code == 0, "seconds": round(done.seconds, 2)}


def every(problems: Sequence[Path], count: int) -> list[Path]:
    """Return so many of the problems, the first and the last among them; all with 0."""
    if not count or count >= len(problems):
        return list(problems)
    return [problems[round(place * (len(problems) - 1) / max(1, count - 1))] for place in range(count)]


def levels(folder: Path) -> dict[str, list[Path]]:
    """Return the problems that are not for training, by level: the folder's name, or what a file's name begins with."""
    found: dict[str, list[Path]] = {level: [] for level in LEVELS}
    for path in sorted(folder.glob("*/*.pddl")):
        if path.parent.name != "training":
            found[path.stem.split("-")[0] if path.parent.name == "testing" else path.parent.name].append(path)
    return found


def measured(folder: Path, origin: Row, given: argparse.Namespace, known: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for what a method does on a problem of a domain, and one for learning, unless they are known."""
    rules = given.folder / f"{origin['collection']}-{origin['domain']}.rules"
    rows = {(row.get("problem"), row["method"]): row for row in known if row.items() >= origin.items()}
    if "learning" in given.methods and (None, "learning") not in rows:
        yield {**origin, "method": "learning", **learn(folder, rules, given.seconds)}
    failures = {"lama": 0, "fallback": 0}
    for method in [method for method in METHODS[1:] if method in given.methods]:
        for level, problems in levels(folder).items():
            chosen = {*every(problems, given.planned), *(every(problems, given.each) if method == "rules" else ())}
            for path in sorted(chosen):
                problem = f"{level}-{path.stem.removeprefix(f'{level}-')}"
                row = rows.get((problem, method))
                if row is None:
                    row = {**origin, "level": level, "problem": problem, "method": method}
                    if failures.get(method, 0) >= GIVE_UP:
                        row |= {"solved": False, "seconds": None}
                    else:
                        others = {other: rows[problem, other] for other in METHODS if (problem, other) in rows}
                        if method == "fallback" and not {"rules", "lama"} <= others.keys():
                            continue
                        row |= solve(method, folder, path, rules, given.limit, others)
                    rows[problem, method] = row
                    yield row
                if method in failures:
                    failures[method] = 0 if row["solved"] else failures[method] + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, help="folder of domains, to be measured beside our own problems")
    parser.add_argument("--domains", nargs="+", default=sorted(GENERATORS), help="by default all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--each", type=int, default=9, help="problems of each level for rules; 0: all")
    parser.add_argument("--planned", type=int, default=3, help="problems of each level for LAMA; 0: all")
    parser.add_argument("--seconds", type=float, default=60, help="processor time that learning may take")
    parser.add_argument("--limit", type=float, default=60, help="processor time that LAMA has for a plan")
    parser.add_argument("--folder", type=Path, default=Path("build/ipc"))
    parser.add_argument("--output", type=Path, default=RESULTS / "ipc-learning.jsonl")
    given = parser.parse_args()
    generated = given.folder / "problems"
    write(generated, given.domains)
    rows = read_rows(given.output)
    for collection in filter(None, (generated, given.collection)):
        name = "generated" if collection == generated else collection.name
        for domain in given.domains:
            if (collection / domain).is_dir():
                for row in measured(collection / domain, {"collection": name, "domain": domain}, given, rows):
                    rows.append(row)
                    print_table([row])
                    write_rows(given.output, rows)
    write_rows(given.output, rows)


if __name__ == "__main__":
    main()

"""How often the rule engine and the definition disagree on random domains, rule sets and sequences of updates: never.

    python benchmarks/engine_agreement.py                       # 100,000 cases with each executor: an hour
    python benchmarks/engine_agreement.py --cases 1000

Each case is followed for some updates: actions that rules choose, facts that come and go, new objects. After each the
rule that fires and its objects, the open goals, and the first rule that serves one goal are compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from result_files import Row, origin, replace_row
from revisions import ROOT

sys.path.append(str(ROOT / "tests"))

from bilevel.compiled import PURE, find
from bilevel.rules.engine.numbering import COMPILED
from engine_cases import follow

EXECUTORS = {"compiled": "0", "written": "1"}  # what the variable `PURE` is for them
UPDATES = 15


def compare(executor: str, cases: int) -> Row:
    """Return how many of the cases the executor decides otherwise than the definition."""
    os.environ[PURE] = EXECUTORS[executor]
    if executor == "compiled" and not find(COMPILED):
        raise SystemExit("the compiled executor is not built: see setup.py")
    started = time.process_time()
    wrong = []
    for case in range(cases):
        try:
            follow(case, UPDATES)
        except AssertionError:
            wrong.append(case)
        if (case + 1) % 1000 == 0:
            print(f"{executor}: {case + 1:,} cases, {len(wrong)} with disagreements", flush=True)
    seconds = round(time.process_time() - started, 1)
    return {"executor": executor, "cases": cases, "updates": UPDATES, "disagreements": wrong, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--executors", nargs="+", choices=EXECUTORS, default=list(EXECUTORS))
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "engine-agreement.jsonl")
    given = parser.parse_args()
    rows = [compare(executor, given.cases) | origin() for executor in given.executors]
    for row in rows:
        replace_row(given.output, row, ["executor"])
    if any(row["disagreements"] for row in rows):
        raise SystemExit("engine and definition disagree")


if __name__ == "__main__":
    main()

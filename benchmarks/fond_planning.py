"""How fast the strong-cyclic planner is, how small its policies are, and how often it is right.

    python benchmarks/fond_planning.py

Prints a line for each problem and writes them all to results/fond.jsonl. Colour, Gacha and a world of tyres, in which
the short way has dead ends, are planned for at growing sizes. The answers to small random problems are compared with
the definition, which the tests spell out, and each policy for one of them is checked.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

from result_files import Row, origin, write_rows
from revisions import ROOT

from bilevel.planning.fond import fond
from bilevel.planning.planner import Status
from bilevel.planning.strong_cyclic import check_policy
from bilevel.symbolic.domain import Domain, Problem
from bilevel.tabletop.problems import SPARE_COLOURS, colour_problem, gacha_problem, shipped_domain

sys.path.append(str(ROOT / "tests" / "planning"))

from exact_fond import has_policy
from fond_problems import random_problem, tireworld

COLOURS = ((3, 6), (6, 6), (10, 3), (10, 6), (10, 10), (20, 6))  # blocks and colours
WANTED = (3, 10, 20)  # colours of Gacha
ROWS = (2, 4, 8, 12)  # of the triangle of places
LIMIT = 100.0  # seconds
MOST_STATES = 300  # of a random problem that is compared


def with_colours(problem: Problem, count: int) -> Problem:
    """A problem of Colour with only so many colours, and a tray for each."""
    names = sorted(name for name, kind in problem.objects.items() if kind == "colour")
    dropped = set(names[count:])
    dropped |= {fact.terms[0] for fact in problem.state if fact.predicate == "tray-colour" and fact.terms[1] in dropped}
    objects = {name: kind for name, kind in problem.objects.items() if name not in dropped}
    return replace(problem, objects=objects, state=frozenset(f for f in problem.state if not dropped & {*f.terms}))


def planned(domain: Domain, problem: Problem) -> Row:
    started = time.process_time()
    result = fond(domain, problem, LIMIT)
    seconds = time.process_time() - started
    decisions = len(result.policy.decisions) if result.policy else None
    return {"answer": result.status.value, "decisions": decisions, "cpu_seconds": round(seconds, 3)}


def compared(count: int) -> Row:
    """How many of the first random problems, of those small enough, are answered as the definition says."""
    answers = {"agree": 0, "disagree": 0, "with_policy": 0, "too_large": 0}
    seed, seconds = 0, 0.0
    while answers["agree"] + answers["disagree"] < count:
        domain, problem = random_problem(seed)
        seed += 1
        expected = has_policy(domain, problem, MOST_STATES)
        if expected is None:
            answers["too_large"] += 1
            continue
        started = time.process_time()
        result = fond(domain, problem, LIMIT)
        seconds += time.process_time() - started
        right = result.status is (Status.SOLVED if expected else Status.UNSOLVABLE)
        if result.policy is not None:
            right = right and check_policy(domain, problem, result.policy.choose).is_strong_cyclic
        answers["agree" if right else "disagree"] += 1
        answers["with_policy"] += expected
    return {**answers, "cpu_seconds": round(seconds, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("results/fond.jsonl"))
    parser.add_argument("--random", type=int, default=10_000, help="how many random problems to compare")
    given = parser.parse_args()
    colour = shipped_domain("colour")
    records: list[Row] = []
    for blocks, colours in COLOURS:
        problem = with_colours(colour_problem(blocks, random.Random(0)), colours)
        records.append({"problem": "colour", "blocks": blocks, "colours": colours, **planned(colour, problem)})
    for wanted in WANTED:
        problem, colours = gacha_problem(wanted, random.Random(0)), wanted + SPARE_COLOURS
        row = {"problem": "gacha", "wanted": wanted, "colours": colours, **planned(shipped_domain("gacha"), problem)}
        records.append(row)
    records += [{"problem": "tyres", "rows": rows, **planned(*tireworld(rows))} for rows in ROWS]
    records.append({"problem": "random", **compared(given.random)})
    for record in records:
        print(" ".join(f"{key}={value}" for key, value in record.items()))
    write_rows(given.output, [{**record, **origin()} for record in records])


if __name__ == "__main__":
    main()

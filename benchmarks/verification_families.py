"""What `bilevel rules verify --grow` proves of the learned rules, and how long it takes.

    python benchmarks/verification_families.py

Prints a line for each family and writes them all to results/verification.jsonl.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

from result_files import Row, origin, write_rows
from rule_scaling import plan_by_search

from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.traces import traces_from_problems
from bilevel.rules.verification.families import verify_family
from bilevel.rules.verification.growing import Family, Starts
from bilevel.tabletop.problems import shipped_domain, training_problems

PRINTED = """variables: ?x - block, ?l - place
1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
2: clear(?x) & gripper-free() & goal at(?x, ?l) -> pick(?x)
"""


class Case(NamedTuple):
    """A family of problems that grows from a domain's first training problem, and which rules are to solve it."""

    domain: str
    counts: dict[str, int]
    starts: Starts = "at-rest"
    complete_goals: bool = False
    printed: bool = False  # the rules as the paper prints them, instead of the learned ones


CASES = (
    Case("blocks", {"block": 4, "place": 4}, "initial"),
    Case("blocks", {"block": 4, "place": 4}),
    Case("blocks", {"block": 4, "place": 4}, "initial", printed=True),
    Case("colour", {"block": 4, "colour+tray": 3}, "initial"),
    Case("colour", {"block": 4, "colour+tray": 3}, complete_goals=True),
    Case("gacha", {"colour+tray": 4}),
    Case("gacha", {"colour+tray": 5}),
)


def rules_of(case: Case) -> tuple[Rule, ...]:
    if case.printed:
        return parse_rules(PRINTED, "printed")
    domain = shipped_domain(case.domain)
    return learn_rules(traces_from_problems(domain, training_problems(case.domain), plan_by_search).traces, domain)


def measure(case: Case) -> Row:
    domain = shipped_domain(case.domain)
    rules = rules_of(case)
    seeds = (training_problems(case.domain)[0],)
    started = time.process_time()
    verdict = verify_family(rules, domain, Family(seeds, case.counts, case.starts, complete_goals=case.complete_goals))
    return {
        "domain": case.domain,
        "rules": "as printed" if case.printed else "learned",
        "counts": case.counts,
        "starts": case.starts,
        "complete_goals": case.complete_goals,
        "answer": verdict.answer.value,
        "problems": verdict.problems,
        "out_of_reach": verdict.unattainable,
        "explored": verdict.explored,
        "cpu_seconds": round(time.process_time() - started, 2),
        **origin(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("results/verification.jsonl"))
    output: Path = parser.parse_args().output
    rows = []
    for case in CASES:
        row = measure(case)
        rows.append(row)
        grown = " ".join(f"{kind}={count}" for kind, count in case.counts.items())
        print(
            f"{case.domain:8} {row['rules']:10} {grown:22} {row['starts']:8} {row['answer']:14} "
            f"{row['problems']:5} problems {row['cpu_seconds']:6} s"
        )
    write_rows(output, rows)


if __name__ == "__main__":
    main()

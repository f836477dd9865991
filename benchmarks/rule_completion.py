"""What `bilevel rules complete` finds, proves and costs, and how far the completed rules reach.

    python benchmarks/rule_completion.py --workers 2
    python benchmarks/rule_completion.py --domains swap blocksworld --problems 100
    python benchmarks/rule_completion.py path/to/ferry        # a folder with domain.pddl and training/*.pddl, too

Learns rules from each domain's training problems, completes them for all problems of a small size, and solves random
problems of ten times that size with the rules before and after. Writes a row for each shape of problems to
results/rule-completion.jsonl; what is there already is not measured again, so an interrupted run can be taken up.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from public_problems import PUBLIC
from result_files import Row, origin, read_rows, replace_row

from bilevel.planning.planners import bounded_plan, plan_function
from bilevel.rules.completion import Completion, complete_rules
from bilevel.rules.completion.small_problems import own_counts
from bilevel.rules.completion.trials import LARGER, random_larger_problems
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule import Rule
from bilevel.rules.solving import solve
from bilevel.rules.traces import traces_from_problems
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.pddl import read_domain, read_problem
from bilevel.tabletop.problems import generate_problem, shipped_domain, training_problems

TIMES_LARGER = 10
PLANNING_SECONDS = 10.0
MOST_TRAINING = 10  # of a folder, the smallest
RANDOM_WALKS = "random walks"  # the shape of a folder's larger problems, if there is no generator for its domain


class Case(NamedTuple):
    """A domain's rules, completed up to these numbers of objects, and a shape and size of problems to try them on."""

    domain: str
    counts: dict[str, int]
    shape: str
    size: int
    folder: Path | None = None


CASES = (
    Case("blocks", {"block": 4, "place": 4}, "tangled-blocks", 40),
    Case("swap", {"block": 3, "place": 3}, "swap", 30),
    Case("blocksworld", {"block": 4}, "towers", 40),
    Case("blocksworld", {"block": 4}, "one-tower", 40),
    Case("stack", {"box": 4, "place": 3}, "stack", 30),
    Case("colour", {"block": 3, "colour+tray": 2}, "colour", 30),
    Case("gacha", {"colour+tray": 4}, "gacha", 40),
)
KEYS = ("domain", "shape", "problems")


def read_case(case: Case) -> tuple[Domain, list[Problem], list[Problem]]:
    """Return the domain, the problems to learn from, and those to begin completing from."""
    if case.folder is None:
        training = training_problems(case.domain)
        return shipped_domain(case.domain), training, training
    domain = read_domain(case.folder / "domain.pddl")
    problems = [read_problem(path, domain) for path in sorted((case.folder / "training").glob("*.pddl"))]
    problems.sort(key=lambda problem: len(problem.objects))
    return domain, problems[:MOST_TRAINING], problems[:MOST_TRAINING]


def larger_problems(case: Case, domain: Domain, seeds: Sequence[Problem], count: int) -> Iterator[Problem]:
    """Yield problems of ten times the size that was looked at as a whole."""
    if case.folder is None:
        yield from (generate_problem(case.shape, case.size, random.Random(number)) for number in range(count))
        return
    if case.shape in PUBLIC:
        yield from (PUBLIC[case.shape][0](case.size, random.Random(number)) for number in range(count))
        return
    for number, seed in enumerate(seeds):
        counts = {kind: TIMES_LARGER // LARGER * n for kind, n in own_counts(seed).items()}
        share = len(range(number, count, len(seeds)))
        yield from random_larger_problems([seed], domain, counts, share, seed=number)


def measure(case: Case, count: int) -> Row:
    """Return the row of a case."""
    domain, training, seeds = read_case(case)
    plan = plan_function("search", PLANNING_SECONDS)
    rules = learn_rules(traces_from_problems(domain, training, plan).traces, domain)
    began = time.process_time()
    found = complete_rules(rules, domain, seeds, objects=case.counts, plan_for=bounded_plan)
    seconds = time.process_time() - began
    problems = list(larger_problems(case, domain, seeds, count))
    return {
        "domain": case.domain,
        "shape": case.shape,
        "problems": count,
        "counts": case.counts,
        "rules_before": len(rules),
        "rules": len(found.rules),
        "seconds": round(seconds, 1),
        **_proved(found),
        "size": case.size or max((len(problem.objects) for problem in problems), default=0),
        "tried": len(problems),
        "solved_before": _solved(domain, problems, rules, True)[0],
        **dict(
            zip(
                ("solved", "mean_steps", "most_steps"),
                _solved(domain, problems, found.rules, found.commit),
                strict=True,
            )
        ),
        **origin(),
    }


def _proved(found: Completion) -> Row:
    return {
        "proved": found.is_proved,
        "sizes": found.sizes,
        "states_with_goals": found.problems,
        "commitment": found.commit,
        "said": str(found),
    }


def _solved(domain: Domain, problems: Sequence[Problem], rules: Sequence[Rule], commit: bool) -> tuple[int, float, int]:
    """Return how many problems the rules solve, and in how many steps on average and at most."""
    solutions = (solve(domain, problem, rules, commit=commit) for problem in problems)
    steps = [len(solution.plan.actions) for solution in solutions if solution.is_solved]
    return len(steps), round(sum(steps) / max(len(steps), 1), 1), max(steps, default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="further domains: domain.pddl and training/*.pddl")
    parser.add_argument("--domains", nargs="*", default=sorted({case.domain for case in CASES}))
    parser.add_argument("--problems", type=int, default=1_000, help="how many larger problems to solve")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("results/rule-completion.jsonl"))
    given = parser.parse_args()
    cases = [case for case in CASES if case.domain in given.domains]
    for folder in given.folders:
        _, counts, size = PUBLIC.get(folder.name, (None, {}, 0))
        cases.append(Case(folder.name, counts, folder.name if size else RANDOM_WALKS, size, folder))
    known = {tuple(row[key] for key in KEYS) for row in read_rows(given.output)}
    missing = [case for case in cases if (case.domain, case.shape, given.problems) not in known]
    with ProcessPoolExecutor(given.workers) as pool:
        for row in pool.map(measure, missing, [given.problems] * len(missing)):
            replace_row(given.output, row, KEYS)
            print(
                f"{row['domain']:12} {row['rules_before']:3} -> {row['rules']:3} rules in {row['seconds']:6} s, "
                f"{'proved' if row['proved'] else 'NOT proved'} for {row['sizes']}; {row['shape']}: {row['solved']} of "
                f"{row['tried']} solved in {row['mean_steps']} steps on average, {row['solved_before']} before",
                flush=True,
            )


if __name__ == "__main__":
    main()

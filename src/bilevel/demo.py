"""`make demo`: learn rules from three small problems that come with the package, then solve one of 10,000 blocks."""

from __future__ import annotations

import random
import time
from pathlib import Path

from bilevel.files import write_atomically
from bilevel.library import GENERATORS, domain_text, shipped_domain, training_problems
from bilevel.planning.planner import PLANNERS, plan_function
from bilevel.rules.explanation.formats import explain
from bilevel.rules.learning import learn_rules
from bilevel.rules.practice import practise
from bilevel.rules.rule_file import domain_line, format_rules
from bilevel.rules.solving import solve
from bilevel.symbolic.pddl import write_plan, write_problem
from bilevel.symbolic.validation import validate

BLOCKS = 10_000
FOLDER = Path("build/demo")


def main() -> None:
    domain = shipped_domain("blocks")
    problems = training_problems("blocks")
    largest = max(len(problem.goal) for problem in problems)
    print(f"Learning from {len(problems)} problems with at most {largest} blocks …")
    started = time.perf_counter()
    rules = learn_rules(practise(domain, problems, plan_function(PLANNERS["auto"], time_limit=30.0)).traces, domain)
    print(f"{len(rules)} rules after {time.perf_counter() - started:.2f} s:\n")
    print(*rules, sep="\n")
    print(f"\nIn plain English:\n\n{explain(rules, 'english')}")

    problem = GENERATORS["blocks"](BLOCKS, random.Random(0))
    print(f"Solving a problem with {BLOCKS:,} blocks and {BLOCKS:,} places by these rules …")
    started = time.perf_counter()
    solution = solve(domain, problem, rules)
    seconds = time.perf_counter() - started
    verdict = validate(domain, problem, solution.plan)
    print(f"{solution.stop.value}: {len(solution.plan.actions):,} actions in {seconds:.2f} s; the plan is {verdict}")

    print("\nWritten:")
    files = {
        "blocks-domain.pddl": domain_text("blocks"),
        "blocks-10000.pddl": write_problem(problem, domain),
        "blocks.rules": format_rules(rules, [domain_line(domain.name), "learned by make demo"]),
        "blocks-10000.plan": write_plan(solution.plan),
    }
    for name, text in files.items():
        write_atomically(FOLDER / name, text)
        print(f"  {FOLDER / name}")
    print("\nTry your own:  .venv/bin/bilevel rules learn DOMAIN PROBLEM... --output FILE")


if __name__ == "__main__":
    main()

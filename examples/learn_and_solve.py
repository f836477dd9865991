"""Learn rules from five small delivery problems, then solve a larger one by them: python examples/learn_and_solve.py"""

from __future__ import annotations

from pathlib import Path

import bilevel

FOLDER = Path(__file__).parent / "delivery"


def main() -> None:
    domain = bilevel.read_domain(FOLDER / "domain.pddl")
    training = [bilevel.read_problem(path, domain) for path in sorted(FOLDER.glob("training-*.pddl"))]
    rules = bilevel.learn_from_problems(domain, training).rules
    print(f"{len(rules)} rules from {len(training)} problems:\n")
    print(*rules, sep="\n")

    problem = bilevel.read_problem(FOLDER / "round.pddl", domain)
    solution = bilevel.solve(domain, problem, rules)
    print(f"\nThe problem '{problem.name}' with {len(problem.goal)} parcels: {solution.stop.value}\n")
    print(*solution.plan.actions, sep="\n")
    print(f"\nWhatever happens: {bilevel.verify(rules, domain, problem).answer.value}")
    print(f"A planner, without rules, takes {len(bilevel.plan(domain, problem).plan or ())} steps")
    few = bilevel.solve(domain, problem, rules[:3])
    print(f"With the first 3 rules alone: {few.stop.value} after {len(few.plan.actions)} steps")


if __name__ == "__main__":
    main()

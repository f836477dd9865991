"""Learn rules from five small delivery problems, then solve a larger one by them: python examples/learn_and_solve.py"""

from __future__ import annotations

from pathlib import Path

from bilevel.planning.planners import PLANNERS, plan_function
from bilevel.rules.explanation.formats import explain
from bilevel.rules.explanation.why_not import why_not
from bilevel.rules.learning import learn_rules
from bilevel.rules.problem_traces import traces_from_problems
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import Action, Domain, Facts
from bilevel.symbolic.pddl import read_domain, read_problem, write_plan
from bilevel.symbolic.semantics import ground_action, progress
from bilevel.symbolic.validation import validate

FOLDER = Path(__file__).parent / "delivery"
SECONDS = 10.0  # the planner may take for one goal


def follow(policy: RulePolicy, domain: Domain, state: Facts, goal: Facts) -> list[Action]:
    """Ask the policy in every state, as a robot does; here each action simply does what the domain says."""
    actions = []
    while (action := policy.choose(state, goal)) is not None:
        actions.append(action)
        state = progress(state, ground_action(domain, action).outcomes[0])
    return actions


def main() -> None:
    domain = read_domain(FOLDER / "domain.pddl")
    training = [read_problem(path, domain) for path in sorted(FOLDER.glob("training-*.pddl"))]
    found = traces_from_problems(domain, training, plan_function(PLANNERS["auto"], SECONDS))
    rules = learn_rules(found.traces, domain)
    print(f"{len(rules)} rules from {len(training)} problems:\n")
    print(*rules, sep="\n")
    print(f"\nIn plain English:\n\n{explain(rules, 'english')}")

    problem = read_problem(FOLDER / "round.pddl", domain)
    solution = solve(domain, problem, rules)
    print(f"The problem '{problem.name}' with {len(problem.goal)} parcels: {solution.stop.value}\n")
    print(write_plan(solution.plan))
    print(f"The plan is {validate(domain, problem, solution.plan)}.")

    policy = RulePolicy(rules, domain)
    policy.reset(problem.state, problem.goal, problem.objects)
    actions = follow(policy, domain, problem.state, problem.goal)
    print(f"Asked state by state, the same rules take {len(actions)} steps.")

    few = rules[:3]
    reason = why_not(few, domain, problem.state, problem.goal, problem.objects)
    print(f"\nWith the first {len(few)} rules alone none applies at the start, because:\n{reason}")


if __name__ == "__main__":
    main()

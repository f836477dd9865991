"""A robot that commits to a goal does what `solve` does, step by step."""

from __future__ import annotations

import random

import pytest
from notation import golden_rules

from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.rules.solving import Stop, solve
from bilevel.symbolic.domain import Action, Domain, Problem
from bilevel.symbolic.semantics import ground, progress
from bilevel.tabletop.problems import generate_problem, shipped_domain
from random_rules import OBJECTS, random_atoms, random_domain, random_rule

MOST_STEPS = 300


def run(rules: tuple[Rule, ...], domain: Domain, problem: Problem, steps: int) -> list[Action]:
    """What the policy does when it is handed one state after another."""
    policy = RulePolicy(rules, domain, open_world=False, commit=True)
    policy.reset(problem.state, problem.goal, problem.objects)
    state = problem.state
    actions: list[Action] = []
    while len(actions) < steps and not problem.goal <= state:
        chosen = policy.choose(state, problem.goal)
        action = ground(domain.schemas[chosen.name], chosen.arguments) if chosen else None
        if chosen is None or action is None or not action.condition.holds(state):
            break
        assert policy.choose(state, problem.goal) == chosen, "asked again, it says the same"
        state = progress(state, action.outcomes[0])
        actions.append(chosen)
    return actions


@pytest.mark.parametrize("shape", ["towers", "swap"])
def test_the_policy_commits_as_solving_does(shape: str) -> None:
    for seed in range(3):
        problem = generate_problem(shape, 6, random.Random(seed))
        domain, rules = shipped_domain(problem.domain_name), golden_rules(f"{problem.domain_name}-complete")
        solution = solve(domain, problem, rules)
        assert solution.is_solved
        assert run(rules, domain, problem, MOST_STEPS) == list(solution.plan.actions)


def test_the_policy_commits_as_solving_does_in_random_domains() -> None:
    stops = set()
    for seed in range(150):
        rng = random.Random(seed)
        domain = random_domain(rng)
        rules = tuple(sorted((random_rule(rng, domain) for _ in range(4)), key=lambda rule: rule.priority))
        state, goal = random_atoms(rng, domain, OBJECTS, 12), random_atoms(rng, domain, OBJECTS, 8)
        problem = Problem("p", "random", OBJECTS, state, goal)
        solution = solve(domain, problem, rules, max_steps=12)
        assert run(rules, domain, problem, 12) == list(solution.plan.actions), seed
        stops.add(solution.stop)
    assert stops >= {Stop.SOLVED, Stop.NO_RULE, Stop.STEP_BOUND}


def test_without_commitment_goals_that_undo_each_other_go_round_in_circles() -> None:
    domain, rules = shipped_domain("blocksworld"), golden_rules("blocksworld-complete")
    problem = generate_problem("towers", 4, random.Random(0))
    assert solve(domain, problem, rules).is_solved
    assert solve(domain, problem, rules, commit=False).stop is Stop.LOOP

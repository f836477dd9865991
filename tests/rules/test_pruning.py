"""Replays do what `solve` does, and pruning loses no problem that the rules solve."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from bilevel.learning.rules import plan_traces
from bilevel.rules.learning import RuleLearner, learn_rules
from bilevel.rules.pruning import can_be_pruned, prune_rules, thinned
from bilevel.rules.replay import Replays
from bilevel.rules.rule import Rule
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import Domain, Problem
from bilevel.tabletop.problems import shipped_domain, training_problems
from logistics import logistics_domain, logistics_problem
from random_rules import OBJECTS, random_atoms, random_domain, random_rule

MOST_STEPS = 60


def random_rules(rng: random.Random, domain: Domain) -> list[Rule]:
    """Rules such as are learned: they serve one goal fact each, and have no closures."""
    drawn = (random_rule(rng, domain) for _ in range(30))
    return [rule for rule in drawn if can_be_pruned([rule], domain)][:8]


def random_problem(rng: random.Random, domain: Domain) -> Problem:
    state, goal = random_atoms(rng, domain, OBJECTS, 12), random_atoms(rng, domain, OBJECTS, 4)
    return Problem("p", "random", OBJECTS, state, goal)


def solved_steps(domain: Domain, problem: Problem, rules: Sequence[Rule]) -> int | None:
    found = solve(domain, problem, rules, max_steps=MOST_STEPS)
    return len(found.plan.actions) if found.is_solved else None


def test_a_replay_takes_the_steps_of_solve() -> None:
    rng, seen = random.Random(0), set()
    for _ in range(50):
        domain = random_domain(rng)
        rules = random_rules(rng, domain)
        replays = Replays(rules, domain)
        for _ in range(4):
            problem = random_problem(rng, domain)
            kept = frozenset(place for place in range(len(rules)) if rng.random() < 0.8)
            expected = solved_steps(domain, problem, [replays.rules[place] for place in sorted(kept)])
            run = replays.run(problem, kept, MOST_STEPS)
            assert run.steps == expected
            assert run.fired <= kept
            seen.add(expected)
    assert {None, 0, 1, 2} <= seen


def test_pruning_loses_no_problem_that_the_rules_solve() -> None:
    rng, dropped = random.Random(0), 0
    for _ in range(30):
        domain = random_domain(rng)
        rules, problems = random_rules(rng, domain), [random_problem(rng, domain) for _ in range(5)]
        problems = [problem for problem in problems if problem.goal]
        found = prune_rules(rules, domain, problems)
        assert set(found.rules) <= set(rules)
        assert found.dropped == len(rules) - len(found.rules)
        dropped += found.dropped
        for problem in problems:
            if solved_steps(domain, problem, rules) is not None:
                assert solve(domain, problem, found.rules).is_solved
    assert dropped


@pytest.fixture(scope="module")
def logistics() -> tuple[Domain, list[Problem], tuple[Rule, ...]]:
    domain, problems = logistics_domain(), [logistics_problem(seed, 3, 3, 4) for seed in range(5)]
    return domain, problems, learn_rules(plan_traces(domain, problems, planner="search"), domain)


def test_pruned_rules_are_few_and_solve_what_all_solve(
    logistics: tuple[Domain, list[Problem], tuple[Rule, ...]],
) -> None:
    domain, problems, rules = logistics
    found = prune_rules(rules, domain, problems)
    assert len(found.rules) < len(rules) / 2
    assert str(found).startswith(f"{found.dropped} of {len(rules)} rules dropped: the others solve the {found.solved}")
    for problem in problems:
        before, after = (solve(domain, problem, given) for given in (rules, found.rules))
        assert not before.is_solved or after.is_solved
    assert prune_rules(rules, domain, problems) == found


def test_the_rules_of_the_shipped_problems_are_few_or_nature_has_a_say() -> None:
    for name in ("blocks", "pick-place", "swap", "blocksworld"):
        domain, problems = shipped_domain(name), training_problems(name)
        rules = learn_rules(plan_traces(domain, problems, planner="search"), domain)
        assert len(rules) <= 40  # so that `rules learn` leaves them alone
        assert can_be_pruned(rules, domain)
    for name in ("colour", "gacha"):
        domain = shipped_domain(name)
        assert not can_be_pruned((), domain)
        assert prune_rules((), domain, training_problems(name)).dropped == 0


def test_a_thinned_problem_has_one_goal_and_the_objects_of_it() -> None:
    problem = training_problems("blocks")[-1]
    for seed in range(20):
        small = thinned(problem, random.Random(seed))
        (goal,) = small.goal
        assert goal in problem.goal
        assert set(goal.terms) <= set(small.objects) <= set(problem.objects)
        assert all(set(fact.terms) <= set(small.objects) for fact in small.state)
        assert small.state <= problem.state


def test_a_learner_says_whether_a_trace_is_new() -> None:
    domain, problems = shipped_domain("blocks"), training_problems("blocks")
    traces = plan_traces(domain, problems, planner="search")
    learner = RuleLearner(domain)
    news = [learner.add(trace) for trace in traces]
    assert news[0]
    assert not learner.add(traces[0])
    assert learner.rules() == learn_rules(reversed(traces), domain)

"""The strong-cyclic planner against the definition, state by state, on random small problems."""

from __future__ import annotations

from dataclasses import replace

import pytest
from exact_fond import has_policy
from fond_problems import random_problem

from bilevel.planning.fond import fond
from bilevel.planning.planner import Deadline, Status
from bilevel.planning.strong_cyclic import check_policy, is_proved


@pytest.mark.parametrize("first_seed", range(0, 1000, 100))
def test_random_problems_are_answered_as_the_definition_says(first_seed: int) -> None:
    sizes = []
    unsolvable = 0
    for seed in range(first_seed, first_seed + 100):
        domain, problem = random_problem(seed)
        expected = has_policy(domain, problem, most_states=300)
        result = fond(domain, problem, 60)
        if result.policy is not None:
            assert check_policy(domain, problem, result.policy.choose).is_strong_cyclic, seed
            sizes.append(len(result.policy.decisions))
        if expected is not None:
            assert result.status is (Status.SOLVED if expected else Status.UNSOLVABLE), seed
        unsolvable += expected is False
    assert unsolvable > 20, "too few of the random problems have no policy"
    assert sum(size > 2 for size in sizes) > 10, "the random problems are too easy to tell anything"


def test_goals_that_something_shall_not_hold() -> None:
    answers = {Status.SOLVED: 0, Status.UNSOLVABLE: 0}
    for seed in range(300):
        domain, problem = random_problem(seed)
        kept, gone = sorted(problem.goal)[1:], sorted(problem.state)[:2]
        problem = replace(problem, goal=frozenset(kept), negative_goal=frozenset(gone) - frozenset(kept))
        expected = has_policy(domain, problem, most_states=300)
        result = fond(domain, problem, 60)
        if result.policy is not None:
            assert check_policy(domain, problem, result.policy.choose).is_strong_cyclic, seed
            assert is_proved(domain, problem, result.policy, Deadline(60)), seed
        if expected is not None:
            assert result.status is (Status.SOLVED if expected else Status.UNSOLVABLE), seed
            answers[result.status] += 1
    assert min(answers.values()) > 20

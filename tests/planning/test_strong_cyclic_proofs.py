"""Proofs decision by decision: those that exist are found, and none is found for a policy that is wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fond_problems import random_problem, tireworld
from small_policies import COINS, FLIP, FLIPPING, HEADS, ONE_COIN, PUSHING, TAILS, WAITING, WIN, decision

from bilevel.planning.fond import fond
from bilevel.planning.planner import ContingentPolicy, Deadline
from bilevel.planning.strong_cyclic import PolicyKind, check_policy, is_proved
from bilevel.symbolic.domain import Action
from bilevel.symbolic.semantics import Condition


def test_a_cycle_that_can_be_left_is_proved() -> None:
    assert is_proved(COINS, ONE_COIN, FLIPPING, Deadline(60))
    assert is_proved(COINS, replace(ONE_COIN, goal=ONE_COIN.state), ContingentPolicy(()), Deadline(60))


@pytest.mark.parametrize(
    "policy",
    [
        ContingentPolicy(()),
        PUSHING,
        WAITING,
        ContingentPolicy(FLIPPING.decisions[::-1]),  # not in the order of distance
        ContingentPolicy((decision([HEADS], WIN, 1), decision([TAILS], FLIP, 1))),  # that brings nothing nearer
        ContingentPolicy((decision([], WIN, 1),)),
        ContingentPolicy((decision([HEADS], WIN, 1), decision([TAILS], Action("flip", ("pound",)), 2))),
        ContingentPolicy((decision([HEADS], WIN, 1), decision([TAILS], Action("flop"), 2))),
    ],
)
def test_what_does_not_follow_is_not_proved(policy: ContingentPolicy) -> None:
    assert not is_proved(COINS, ONE_COIN, policy, Deadline(60))


def test_nothing_is_proved_when_the_time_is_up() -> None:
    assert not is_proved(COINS, ONE_COIN, FLIPPING, Deadline(0))


def test_what_the_planner_finds_is_proved() -> None:
    problems = [random_problem(seed) for seed in range(100)] + [tireworld(rows) for rows in (2, 3)]
    proved = 0
    for domain, problem in problems:
        policy = fond(domain, problem, 60).policy
        if policy is not None:
            assert is_proved(domain, problem, policy, Deadline(60))
            proved += 1
    assert proved > 30


def test_whatever_is_proved_is_strong_cyclic() -> None:
    rng = random.Random(1)
    wrong = 0
    for seed in range(200):
        domain, problem = random_problem(seed)
        policy = fond(domain, problem, 60).policy
        for _ in range(5 if policy and policy.decisions else 0):
            assert policy is not None
            spoilt = _spoilt(policy, rng)
            verdict = check_policy(domain, problem, spoilt.choose)
            wrong += not verdict.is_strong_cyclic
            if is_proved(domain, problem, spoilt, Deadline(60)):
                assert verdict.kind is PolicyKind.STRONG_CYCLIC, seed
    assert wrong > 50


def _spoilt(policy: ContingentPolicy, rng: random.Random) -> ContingentPolicy:
    """The policy with some decision left out, or made to apply more often, or swapped with another's action."""
    decisions = list(policy.decisions)
    index = rng.randrange(len(decisions))
    spoilt = decisions.pop(index)
    match rng.randrange(3):
        case 0:
            weaker = frozenset(sorted(spoilt.condition.positive)[1:])
            decisions.insert(index, replace(spoilt, condition=Condition(weaker, spoilt.condition.negative)))
        case 1:
            decisions.insert(index, replace(spoilt, action=rng.choice(policy.decisions).action))
    return ContingentPolicy(tuple(decisions))

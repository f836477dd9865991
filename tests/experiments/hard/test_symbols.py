"""Problems of symbols alone: who decides well solves them, and who does not is told why."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from bilevel.experiments.hard.symbols import NO_ACTION, NOT_APPLICABLE, STEPS, TIME, solve_symbols
from bilevel.planning.planners import PLANNERS, PlannedPolicy
from bilevel.policies.folder import find_folder, read_policy
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop import TASKS
from bilevel.tabletop.problems import generate_problem

BLOCKS = TASKS["blocks"].domain
PROBLEM = generate_problem("blocks", 3, random.Random(0))


class Stubborn:
    """Always has the same idea."""

    def __init__(self, action: Action | None) -> None:
        self._action = action

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        pass

    def declare(self, objects: Mapping[str, str]) -> None:
        pass

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self._action


LEARNED = [("rules", task) for task in ("blocks", "colour", "gacha", "swap")]
PLANNED = [("search", task) for task in ("blocks", "colour", "gacha", "swap")]


@pytest.mark.parametrize(("method", "task"), [*LEARNED, *PLANNED])
def test_rules_and_planners_solve_small_problems_whatever_nature_does(task: str, method: str) -> None:
    domain, rng = TASKS[task].domain, random.Random(1)
    planned = PlannedPolicy(domain, PLANNERS["search"], replan=True, time_limit=60.0)
    policy = read_policy(find_folder(task))
    high = RulePolicy(policy.rules, domain, commit=policy.card.commit) if method == "rules" else planned
    found = solve_symbols(domain, generate_problem(task, 2, rng), high, rng, limit=60.0)
    assert (found.solved, found.reason) == (True, None)
    assert found.actions >= 2
    assert 0 < found.longest <= found.seconds


@pytest.mark.parametrize(
    ("action", "limit", "reason"),
    [
        (None, 60.0, NO_ACTION),
        (Action("place", ("block1", "place1")), 60.0, NOT_APPLICABLE),
        (Action("pick", ("block1",)), 0.0, TIME),
    ],
)
def test_why_it_is_not_solved(action: Action | None, limit: float, reason: str) -> None:
    found = solve_symbols(BLOCKS, PROBLEM, Stubborn(action), random.Random(0), limit)
    assert (found.solved, found.reason, found.actions) == (False, reason, 0)


def test_going_on_for_ever_ends() -> None:
    class Undecided(Stubborn):
        def choose(self, state: Facts, goal: Facts) -> Action | None:
            held = any(fact.predicate == "holding" for fact in state)
            return Action("put-aside", ("block1", "table")) if held else Action("pick", ("block1", "table"))

    swap = TASKS["swap"].domain
    problem = next(
        one
        for one in (generate_problem("swap", 2, random.Random(seed)) for seed in range(20))
        if any(fact.terms == ("block1", "table") for fact in one.state)
    )
    found = solve_symbols(swap, problem, Undecided(None), random.Random(0), 600.0)
    assert (found.solved, found.reason) == (False, STEPS)

"""Solve a problem by its rules alone: choose, act, until the goal holds or there is a reason to stop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from bilevel.compiled import find
from bilevel.rules.engine.explosion import RuleExplodes
from bilevel.rules.engine.numbering import COMPILED
from bilevel.rules.rollouts import Solution, Stop, compiled_rollout, final_state, rollout
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.packed import PackedProblem, no_garbage_collection

__all__ = ["Solution", "Stop", "default_bound", "final_state", "solve"]


def default_bound(problem: Problem | PackedProblem) -> int:
    """Return far more steps than any sensible policy needs, so that every run ends."""
    return 10_000 + 1_000 * (problem.goals if isinstance(problem, PackedProblem) else len(problem.goal))


def solve(
    domain: Domain,
    problem: Problem | PackedProblem,
    rules: Sequence[Rule],
    *,
    seed: int = 0,
    max_steps: int | None = None,
    commit: bool = True,
) -> Solution:
    """Follow the rules from the problem's initial state.

    With `commit` the goal fact that the last rule served is served until it holds or no rule serves it any more; that
    finishes problems whose goals undo each other, where the memoryless policy would run in circles.
    """
    bound = default_bound(problem) if max_steps is None else max_steps
    with no_garbage_collection():
        if find(COMPILED):
            with suppress(RuleExplodes):
                return compiled_rollout(domain, problem, rules, random.Random(seed), commit).until(bound)
        return rollout(domain, problem, rules, random.Random(seed), commit).until(bound)

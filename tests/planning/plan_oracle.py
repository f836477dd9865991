"""Plans judged by the validator, which knows nothing of planners."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.planning.planner import PlanStep
from bilevel.symbolic.domain import Domain, Problem
from bilevel.symbolic.plans import NaturesMove, Plan, validate


def achieves_goal(domain: Domain, problem: Problem, steps: Sequence[PlanStep]) -> bool:
    """Whether the steps can be done one after the other and, with the outcomes they count on, reach the goal."""
    moves = {
        number: NaturesMove(step.outcome, dict(step.choice))
        for number, step in enumerate(steps)
        if not domain.schemas[step.action.name].is_deterministic
    }
    return validate(domain, problem, Plan([step.action for step in steps], moves)).is_valid

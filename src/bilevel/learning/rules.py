"""Traces from plans, for rules to be learned from."""

from __future__ import annotations

from collections.abc import Sequence

from bilevel.planning.planners import plan_function, planner_named
from bilevel.rules.traces import Trace, traces_from_problems
from bilevel.symbolic.domain import Domain, Problem


def plan_traces(
    domain: Domain,
    problems: Sequence[Problem],
    *,
    planner: str = "auto",
    orders: int = 3,
    seed: int = 0,
    time_limit: float = 60.0,
) -> tuple[Trace, ...]:
    """Return the traces of plans for each problem, its goals taken one at a time in a few random orders.

    rules = learn_rules(plan_traces(domain, problems), domain)
    """
    plan_for = plan_function(planner_named(planner), time_limit)
    return traces_from_problems(domain, problems, plan_for, orders=orders, seed=seed).traces

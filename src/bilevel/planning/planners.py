"""The planners there are, by name: all find plans but `fond`, which finds policies for whatever nature does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial

from bilevel.planning.fast_downward import fast_downward
from bilevel.planning.fond import fond
from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import Planner, PlanResult, Status
from bilevel.planning.search import search
from bilevel.symbolic.domain import BadInput, Domain, Outcome, Problem
from bilevel.symbolic.semantics import GroundAction

SEARCH_SHARE = 0.2  # of the time limit of `auto`, for the built-in search


def search_first(domain: Domain, problem: Problem, time_limit: float) -> PlanResult:
    """Plan with the built-in search for a fifth of the time and then, where it is installed, with Fast Downward.

    Small problems, as one learns from, are a hundred times faster without starting a process, and the plans are as
    short; what the search cannot do in that time the other planner often can. It knows nothing of new objects, though.
    """
    if not importlib.util.find_spec("up_fast_downward") or makers_of_new_objects(domain, problem):
        return search(domain, problem, time_limit)
    result = search(domain, problem, SEARCH_SHARE * time_limit)
    if result.status is not Status.TIMED_OUT:
        return result
    return fast_downward(domain, problem, (1 - SEARCH_SHARE) * time_limit)


# The first plan of LAMA, Fast Downward's quick search, is what the paper compares with on large problems.
PLANNERS: Mapping[str, Planner] = {
    "auto": search_first,
    "fast-downward": fast_downward,
    "lama": partial(fast_downward, optimal=False),
    "search": search,
    "fond": fond,
}


def planner_named(name: str) -> Planner:
    if name not in PLANNERS:
        raise BadInput(f"unknown planner '{name}'; known planners: {', '.join(PLANNERS)}")
    return PLANNERS[name]


def plan(domain: Domain, problem: Problem, *, planner: str = "auto", time_limit: float = 100.0) -> PlanResult:
    """Plan for a problem, or find a policy for it where the domain is nondeterministic.

    `result.status` says whether that worked, `result.plan` or `result.policy` is what was found.
    """
    if planner == "auto" and not domain.is_deterministic:
        planner = "fond"
    return planner_named(planner)(domain, problem, time_limit)


GroundPlan = list[tuple[GroundAction, Outcome]]


def plan_function(planner: Planner, time_limit: float) -> Callable[[Domain, Problem], GroundPlan | None]:
    """The planner as a function to a plan spelt out, or `None` where it finds none in time; its failure is an error."""

    def plan_for(domain: Domain, problem: Problem) -> GroundPlan | None:
        result = planner(domain, problem, time_limit)
        if result.policy is not None:
            raise BadInput("the planner 'fond' finds policies, but plans are needed here")
        if result.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{problem.name}': {result.message}")
        return None if result.plan is None else [step.ground(domain) for step in result.steps]

    return plan_for

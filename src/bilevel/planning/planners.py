"""The planners there are, by name, and high-level policies that plan for the problem at hand.

All planners find plans but `fond`, which finds policies for whatever nature does. A planned policy asks one of them for
a guide, a plan or a contingent policy, and follows it. Where the guide has nothing to say, it gives up (DetPlan and
NdtPlan in the paper) or asks for another one from there (DetReplan and NdtReplan).
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import NamedTuple

from bilevel.planning.fast_downward import fast_downward
from bilevel.planning.fond import fond
from bilevel.planning.grounding import Grounding, makers_of_new_objects
from bilevel.planning.placeholders import PlaceholderGuide
from bilevel.planning.planner import ContingentPolicy, Deadline, NoModel, Planner, PlanResult, Status, limited_memory
from bilevel.planning.search import search
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.pddl import compiled, users_action
from bilevel.symbolic.plans import listed
from bilevel.symbolic.semantics import GroundAction, ground_action

SEARCH_SHARE = 0.2  # of the time limit of `auto`, for the built-in search
SEARCH_CHECKS = 125_000  # of the states and operators that it takes up meanwhile; beyond, another planner is quicker


def search_first(domain: Domain, problem: Problem, time_limit: float, grounding: Grounding | None = None) -> PlanResult:
    """Plan with the built-in search and, where that takes too long and it is installed, with Fast Downward.

    Small problems, as one learns from, are a hundred times faster without starting a process, and the plans are as
    short; what the search cannot do the other planner often can. It knows nothing of new objects, though. The search
    has a bounded effort, so that time, of which it gets a fifth, seldom decides who plans.
    """
    if not importlib.util.find_spec("up_fast_downward") or makers_of_new_objects(domain, problem):
        return search(domain, problem, time_limit, grounding=grounding)
    result = search(domain, problem, Deadline(SEARCH_SHARE * time_limit, SEARCH_CHECKS), grounding=grounding)
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

SEARCHES: Sequence[Callable[..., PlanResult]] = (search_first, search)  # that may be told how to ground a problem


def planner_named(name: str) -> Planner:
    """Return the planner of this name; `BadInput`, which lists the names, where there is none."""
    if name not in PLANNERS:
        raise BadInput(f"unknown planner '{name}'; known planners: {', '.join(PLANNERS)}")
    return PLANNERS[name]


def plan(
    domain: Domain,
    problem: Problem,
    *,
    planner: str = "auto",
    time_limit: float = 100.0,
    memory_limit: float = math.inf,
) -> PlanResult:
    """Plan for a problem, or find a policy for it where the domain is nondeterministic.

    `result.status` says whether that worked, `result.plan` or `result.policy` is what was found. The limits are in
    seconds and in bytes of memory that the process may use.
    """
    if planner == "auto" and not domain.is_deterministic:
        planner = "fond"
    try:
        with limited_memory(memory_limit):
            return planner_named(planner)(*compiled(domain, problem), time_limit)
    except (MemoryError, SystemError):  # the latter where there is no memory left for the error itself
        return PlanResult(Status.OUT_OF_MEMORY)


GroundPlan = list[tuple[GroundAction, Outcome]]
MOST_CHECKS = 200_000  # of the states and operators that a bounded search takes up


def plan_function(find: Planner, time_limit: float = math.inf) -> Callable[[Domain, Problem], GroundPlan | None]:
    """The planner as a function to a plan spelt out, or `None` where it finds none in time; its failure is an error.

    Its plans are short, whatever actions cost: rules are learned from them. The built-in search grounds only once what
    problems have in common.
    """
    find = next((partial(each, grounding=Grounding()) for each in SEARCHES if each is find), find)

    def plan_for(domain: Domain, problem: Problem) -> GroundPlan | None:
        result = find(domain, replace(problem, costs=None), time_limit)
        if result.policy is not None:
            raise BadInput("the planner 'fond' finds policies, but plans are needed here")
        if result.status is Status.ERROR:
            raise BadInput(f"the planner failed on problem '{problem.name}': {result.message}")
        return None if result.plan is None else [step.ground(domain) for step in result.steps]

    return plan_for


def bounded_search(domain: Domain, problem: Problem, time_limit: float, checks: int = MOST_CHECKS) -> PlanResult:
    """Plan with the built-in search until an effort is made, whatever the time: always with the same result."""
    return search(domain, replace(problem, costs=None), Deadline(math.inf, checks))


bounded_plan = plan_function(bounded_search)


class Failure(NamedTuple):
    """Why a policy does not know what to do: in short, and in one line."""

    reason: str
    detail: str


NO_MODEL = "no model"  # the planner cannot express what may happen
NO_PLAN = "no plan"  # there is none, or none was found in time
PLAN_BROKEN = "plan broken"  # what happened is not what the plan, or the policy, is for


class PlanGuide:
    """A plan that is followed step by step, as the paper's Algorithm DetPlan says.

    A step lasts for as long as its precondition holds; then it is the turn of the next one, whose precondition must.
    """

    def __init__(self, domain: Domain, plan: Sequence[Action]) -> None:
        self._plan = [ground_action(domain, action) for action in plan]
        self._index = 0

    def choose(self, state: Facts) -> Action | None:
        """Return the plan's action for a state: the present one, or the next; `None` where neither fits."""
        for index in (self._index, self._index + 1):
            if index < len(self._plan) and self._plan[index].condition.holds(state):
                self._index = index
                return self._plan[index].action
        return None

    def why_not(self, state: Facts) -> str:
        """What the step that it is at lacks in this state, and the next one, if there is one."""
        if not self._plan:
            return "the plan has no steps: the goal was reached when it was made"
        steps = list(enumerate(self._plan, 1))[self._index : self._index + 2]
        unmet = [(number, step.action, listed(step.condition.unmet(state))) for number, step in steps]
        lacks = [f"step {number} of {len(self._plan)}, {action}: {what}" for number, action, what in unmet]
        return "; ".join(lacks) + (" and was the last" if len(steps) == 1 else "")


class PlannedPolicy:
    """A high-level policy that plans at the beginning and, with `replan`, whenever its plan is broken.

    `failure` says why it is, if it is. `plans` counts how often it has planned in this episode, `seconds` how long.
    """

    def __init__(self, domain: Domain, planner: Planner, *, replan: bool, time_limit: float) -> None:
        self.domain, self._planner, self._replan, self._time_limit = domain, planner, replan, time_limit
        self._objects: dict[str, str] = {}
        self._guide: PlanGuide | ContingentPolicy | PlaceholderGuide | None = None
        self._planned_for: tuple[Facts, Facts, dict[str, str]] | None = None
        self.failure: tuple[str, str] | None = None
        self.plans, self.seconds = 0, 0.0

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        """Begin an episode with these objects, and plan."""
        self._objects, self.plans, self.seconds = dict(objects), 0, 0.0
        self._plan(state, goal)

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""
        self._objects.update(objects)

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        """Return what the plan says, planning anew where it says nothing and that is allowed.

        Where planning has just failed, it is not tried again before something changes.
        """
        action = self._ask(state)
        has_failed = self._guide is None and self._planned_for == (state, goal, self._objects)
        if action is None and self._replan and not goal <= state and not has_failed:
            self._plan(state, goal)
            action = self._ask(state)
        return action

    def _ask(self, state: Facts) -> Action | None:
        """What the guide says; there is none where planning has failed."""
        if self._guide is None:
            return None
        action = self._guide.choose(state)
        if action is None:
            silent = "the policy says nothing about this state"
            why = self._guide.why_not(state) if isinstance(self._guide, PlanGuide) else silent
            self.failure = Failure(PLAN_BROKEN, why)
        return action and users_action(action)

    def _plan(self, state: Facts, goal: Facts) -> None:
        self._planned_for = state, goal, dict(self._objects)
        constants = self.domain.constants
        objects = {name: kind for name, kind in self._objects.items() if name not in constants}
        problem = Problem("at-hand", self.domain.name, objects, state, goal)
        began = perf_counter()
        domain, problem = compiled(self.domain, problem)
        found = find_plan(self._planner, domain, problem, self._time_limit)
        self.plans, self.seconds = self.plans + 1, self.seconds + perf_counter() - began
        self._guide, self.failure = None, found if isinstance(found, Failure) else None
        if isinstance(found, Failure):
            return
        if found.policy is None:  # in a plan, an action with several outcomes is one action each
            self._guide = PlanGuide(domain, [step.action for step in found.steps])
        elif found.policy.placeholders:
            self._guide = PlaceholderGuide(found.policy, domain, self._objects)
        else:
            self._guide = found.policy


def find_plan(planner: Planner, domain: Domain, problem: Problem, time_limit: float) -> PlanResult | Failure:
    """Return what the planner finds, or why it finds nothing."""
    try:
        result = planner(domain, problem, time_limit)
    except NoModel as error:
        return Failure(NO_MODEL, str(error))
    if result.status is Status.ERROR:
        raise BadInput(result.message)
    if result.status is not Status.SOLVED:
        return Failure(NO_PLAN, result.message or f"{result.status.value} (limit {time_limit:g} s)")
    return result

"""Traces from problems: plan for their goals one at a time, act, and keep what happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bilevel.rules.traces import Trace, TraceStep
from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.nature import Nature
from bilevel.symbolic.semantics import GroundAction, bind_outcome, progress

# A planner gives ground actions with the outcomes it counts on, or `None` where it finds no plan in time.
GroundPlan = Sequence[tuple[GroundAction, Outcome]]
PlanFor = Callable[[Domain, Problem], GroundPlan | None]

MOST_REPLANNED = 100  # times that nature does not do what the plan counts on, per goal, before giving up on it


@dataclass(frozen=True)
class ProblemTraces:
    """The traces of some problems, and the goals that could not be planned for, by the problem's place in the list."""

    traces: tuple[Trace, ...]
    skipped: dict[int, tuple[Atom, ...]]

    @staticmethod
    def joined(parts: Iterable[ProblemTraces]) -> ProblemTraces:
        """Return the traces and the skipped goals of all parts, in order."""
        parts = list(parts)
        skipped = {number: goals for part in parts for number, goals in part.skipped.items()}
        return ProblemTraces(tuple(trace for part in parts for trace in part.traces), skipped)


def traces_from_problems(
    domain: Domain, problems: Sequence[Problem], plan_for: PlanFor, *, orders: int = 3, seed: int = 0
) -> ProblemTraces:
    """Return the traces of plans for each problem in turn."""
    return ProblemTraces.joined(
        traces_from_problem(domain, problem, number, plan_for, orders=orders, seed=seed)
        for number, problem in enumerate(problems)
    )


def traces_from_problem(
    domain: Domain, problem: Problem, number: int, plan_for: PlanFor, *, orders: int = 3, seed: int = 0
) -> ProblemTraces:
    """Return the traces of a problem's goals, taken one at a time in a few random orders from the state reached so far.

    What is random depends on the seed and the problem's number alone, so problems may be planned for in any process.
    """
    traces: list[Trace] = []
    skipped: dict[Atom, None] = {}
    remembered = _remembering(plan_for)
    for order in range(orders):
        rng = random.Random(f"{seed} {number} {order}")
        goals = sorted(problem.goal)
        rng.shuffle(goals)
        found, missed = _episode(domain, problem, goals, remembered, rng)
        traces += found
        skipped.update(dict.fromkeys(missed))
    return ProblemTraces(tuple(traces), {number: tuple(skipped)} if skipped else {})


def _remembering(plan_for: PlanFor) -> PlanFor:
    """Return the same planner, asked only once about the same thing."""
    known: dict[tuple[Facts, Facts, frozenset[tuple[str, str]]], GroundPlan | None] = {}

    def remembered(domain: Domain, problem: Problem) -> GroundPlan | None:
        key = (problem.state, problem.goal, frozenset(problem.objects.items()))
        if key not in known:
            known[key] = plan_for(domain, problem)
        return known[key]

    return remembered


def _episode(
    domain: Domain, problem: Problem, goals: Sequence[Atom], plan_for: PlanFor, rng: random.Random
) -> tuple[list[Trace], list[Atom]]:
    """Achieve the goals in this order; a goal that cannot be planned for is left out."""
    nature = Nature(domain, problem.all_objects(domain), rng)
    traces, missed = [], []
    state = problem.state
    for goal in goals:
        here = replace(problem, state=state, goal=frozenset({goal}))
        steps, achieved = _pursue(domain, here, plan_for, nature)
        if not achieved:
            missed.append(goal)
        elif steps:
            traces.append(Trace(tuple(steps), dict(nature.objects)))
        if steps:
            state = steps[-1].next_state
    return traces, missed


def _pursue(domain: Domain, problem: Problem, plan_for: PlanFor, nature: Nature) -> tuple[list[TraceStep], bool]:
    """Act towards the problem's goal; plan again whenever nature does not do what the plan counts on."""
    steps: list[TraceStep] = []
    state = problem.state
    for _ in range(MOST_REPLANNED):
        if problem.goal <= state:
            return steps, True
        objects = {name: kind for name, kind in nature.objects.items() if name not in domain.constants}
        plan = plan_for(domain, replace(problem, state=state, objects=objects))
        if plan is None:
            return steps, False
        for action, hoped in plan:
            move = nature.move(domain.schemas[action.action.name])
            outcome = bind_outcome(action.outcomes[move.outcome], move.binding)
            steps.append(TraceStep(state, action, outcome, problem.goal))
            state = progress(state, outcome)
            if outcome != hoped:
                break
    return steps, problem.goal <= state

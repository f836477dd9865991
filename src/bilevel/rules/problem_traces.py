"""Traces from problems: plan for their goals one at a time, act, and keep what happened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

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

    @cache
    def plan(state: Facts, goal: Facts, objects: Objects) -> GroundPlan | None:
        return plan_for(domain, replace(problem, state=state, goal=goal, objects=dict(objects)))

    for order in range(orders):
        rng = random.Random(f"{seed} {number} {order}")
        goals = sorted(problem.goal)
        rng.shuffle(goals)
        nature = Nature(domain, problem.all_objects(domain), rng)
        state = problem.state
        for goal in goals:
            steps, state = _pursue(domain, state, frozenset({goal}), plan, nature)
            if goal not in state:
                skipped[goal] = None
            elif steps:
                traces.append(Trace(tuple(steps), dict(nature.objects)))
    return ProblemTraces(tuple(traces), {number: tuple(skipped)} if skipped else {})


Objects = tuple[tuple[str, str], ...]


def _pursue(
    domain: Domain,
    state: Facts,
    goal: Facts,
    plan: Callable[[Facts, Facts, Objects], GroundPlan | None],
    nature: Nature,
) -> tuple[list[TraceStep], Facts]:
    """Act towards the goal; plan again whenever nature does not do what the plan counts on. Return the last state too.

    Where there is no plan, or nature goes against too many, the goal is given up.
    """
    steps: list[TraceStep] = []
    for _ in range(MOST_REPLANNED):
        objects = tuple((name, kind) for name, kind in nature.objects.items() if name not in domain.constants)
        planned = None if goal <= state else plan(state, goal, objects)
        if planned is None:
            break
        for action, hoped in planned:
            move = nature.move(domain.schemas[action.action.name])
            outcome = bind_outcome(action.outcomes[move.outcome], move.binding)
            steps.append(TraceStep(state, action, outcome, goal))
            state = progress(state, outcome)
            if outcome != hoped:
                break
    return steps, state

"""Learn from problems alone: plan for their goals one at a time, act, and keep what happened as traces."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from bilevel.rules.traces import Step, Trace
from bilevel.symbolic.domain import Atom, Domain, Facts, Outcome, Problem
from bilevel.symbolic.nature import Nature
from bilevel.symbolic.semantics import GroundAction, bind_outcome, progress

# A plan as ground actions with the outcomes it counts on, or `None` where the planner found none in time.
Plan = Sequence[tuple[GroundAction, Outcome]]
PlanFor = Callable[[Domain, Problem], Plan | None]

SURPRISES = 100  # outcomes other than planned for, per goal, before giving up on it


@dataclass(frozen=True)
class Practice:
    """The traces of some problems, and the goals that could not be planned for, by the problem's place in the list."""

    traces: tuple[Trace, ...]
    skipped: dict[int, tuple[Atom, ...]]


def practise(
    domain: Domain,
    problems: Sequence[Problem],
    plan_for: PlanFor,
    *,
    orders: int = 3,
    seed: int = 0,
) -> Practice:
    """Practise on each problem in turn."""
    return together(practise_one(domain, p, n, plan_for, orders=orders, seed=seed) for n, p in enumerate(problems))


def practise_one(
    domain: Domain, problem: Problem, number: int, plan_for: PlanFor, *, orders: int = 3, seed: int = 0
) -> Practice:
    """Take a problem's goals one at a time, in a few random orders, each from the state reached so far.

    What is random depends on the seed and the problem's number alone, so problems may be practised on anywhere.
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
    return Practice(tuple(traces), {number: tuple(skipped)} if skipped else {})


def together(parts: Iterable[Practice]) -> Practice:
    traces: list[Trace] = []
    skipped: dict[int, tuple[Atom, ...]] = {}
    for part in parts:
        traces += part.traces
        skipped |= part.skipped
    return Practice(tuple(traces), skipped)


def _remembering(plan_for: PlanFor) -> PlanFor:
    """The same planner, asked only once about the same thing."""
    known: dict[tuple[Facts, Facts, frozenset[tuple[str, str]]], Plan | None] = {}

    def remembered(domain: Domain, problem: Problem) -> Plan | None:
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


def _pursue(domain: Domain, problem: Problem, plan_for: PlanFor, nature: Nature) -> tuple[list[Step], bool]:
    """Act towards the problem's goal; plan again whenever nature does not do what the plan counts on."""
    steps: list[Step] = []
    state = problem.state
    for _ in range(SURPRISES):
        if problem.goal <= state:
            return steps, True
        objects = {name: kind for name, kind in nature.objects.items() if name not in domain.constants}
        plan = plan_for(domain, replace(problem, state=state, objects=objects))
        if plan is None:
            return steps, False
        for action, hoped in plan:
            move = nature.move(domain.schemas[action.action.name])
            outcome = bind_outcome(action.outcomes[move.outcome], move.binding)
            steps.append(Step(state, action, outcome, problem.goal))
            state = progress(state, outcome)
            if outcome != hoped:
                break
    return steps, problem.goal <= state

"""The rules of a policy beyond those of the demonstrations: completed, and extended where they had nothing to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from bilevel.planning.planners import plan_function, planner_named
from bilevel.rules.traces import Trace, segments, traces_from_problems, traces_from_states
from bilevel.symbolic.domain import Action, Domain, Facts, Problem

MOST_SEEDS = 4


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


# Where the rules of a policy had nothing to say, and what was done from there


@dataclass(frozen=True, slots=True)
class RolloutDecision:
    """What was to be done at a timestep; `asked` says that no rule applied, and the expert or a planner was asked."""

    state: Facts
    goal: Facts
    objects: Mapping[str, str]
    action: Action
    asked: bool


@dataclass(frozen=True)
class RuleGaps:
    """The timesteps of rollouts at which no rule applied, as problems, and the traces of what was done from there."""

    problems: tuple[Problem, ...] = ()
    traces: tuple[Trace, ...] = ()

    def __add__(self, other: RuleGaps) -> RuleGaps:
        return RuleGaps(self.problems + other.problems, self.traces + other.traces)


def find_gaps(domain: Domain, decisions: Sequence[RolloutDecision], state: Facts, goal: Facts) -> RuleGaps:
    """Return the gaps of an episode from what was decided at each timestep; `state` and `goal` are those at its end."""
    problems: dict[tuple[Facts, Facts], Problem] = {}
    traces: list[Trace] = []
    for start, decision in enumerate(decisions):
        if decision.asked and not (start and decisions[start - 1] == decision):
            problem = Problem("no-rule", domain.name, decision.objects, decision.state, decision.goal)
            problems.setdefault((decision.state, decision.goal), problem)
            traces += _trace_to_a_goal(domain, decisions[start:], state, goal)
    return RuleGaps(tuple(problems.values()), tuple(traces))


def _trace_to_a_goal(
    domain: Domain, decisions: Sequence[RolloutDecision], state: Facts, goal: Facts
) -> Iterator[Trace]:
    """Yield what was done from the first of the decisions up to the first goal that it achieved, if there was one.

    Only what was decided counts: a block that slips out of the hand looks as if it had been put aside.
    """
    states = [*(decision.state for decision in decisions), state]
    goals = [*(decision.goal for decision in decisions), goal]
    objects = {name: kind for decision in decisions for name, kind in decision.objects.items()}
    explained = traces_from_states(domain, states, goals, objects).actions
    pairs = enumerate(pairwise([None, *explained[:-1]]))  # where another action begins than what was decided
    done = next((i for i, (before, now) in pairs if now not in (None, before, decisions[i].action)), len(decisions))
    for trace in traces_from_states(domain, states[: done + 1], goals[: done + 1], objects).traces[:1]:
        if trace.steps[0].state == states[0]:
            yield from (Trace(steps, trace.objects) for _, steps in islice(segments(trace), 1))


# Completion


def seed_problems(domain: Domain, situations: Iterable[tuple[Facts, Facts, Mapping[str, str]]]) -> tuple[Problem, ...]:
    """Return a problem for each kind of situation (state, goal, objects), whatever its objects are called.

    Of many kinds, those with the most objects count, but each predicate of a goal shall be in one of them.
    """
    kinds: dict[object, Problem] = {}
    for state, goal, objects in situations:
        own = {name: kind for name, kind in objects.items() if name not in domain.constants}
        counts = (Counter(own.values()), Counter(fact.predicate for fact in state), {f.predicate: 1 for f in goal})
        kind = tuple(frozenset(count.items()) for count in counts)
        if goal:
            name = f"demonstration-{len(kinds) + 1}"
            kinds.setdefault(kind, Problem(name, domain.name, own, state, goal))
    order = sorted(kinds.values(), key=lambda problem: -len(problem.objects))
    wanted: set[str] = set()
    first: list[Problem] = []
    for problem in order:
        predicates = {fact.predicate for fact in problem.goal}
        if not predicates <= wanted:
            first.append(problem)
            wanted |= predicates
    chosen = [*first, *(problem for problem in order if problem not in first)][:MOST_SEEDS]
    return tuple(sorted(chosen, key=lambda problem: -len(problem.objects)))

"""Traces: what happened, as actions. From a sequence of labelled states, or from plans for the goals of problems.

Labels settle over several low-level steps, and some changes are no action's. So the way from states to actions
looks past states that last only a few steps, and where no action explains a change it cuts: the trace ends there and
a new one begins after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, groupby, islice, pairwise, product
from operator import itemgetter
from typing import NamedTuple

from bilevel.progress import Callback, Progress, silent
from bilevel.rules.matching import Binding, join, unify
from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Problem,
    Schema,
)
from bilevel.symbolic.pddl import compiled, users_action
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, progress

MOST_ARGUMENTS = 10_000  # combinations of objects for parameters of which a change says nothing
MOST_LOOKED_PAST = 50  # states in a row, however short-lived: labels that never settle cost linear time


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An action, the state it was done in, the outcome nature gave it and the goal at that time."""

    state: Facts
    action: GroundAction
    outcome: Outcome
    goal: Facts

    @property
    def next_state(self) -> Facts:
        """The state after the action."""
        return progress(self.state, self.outcome)


@dataclass(frozen=True, slots=True)
class Trace:
    """Steps without a gap, and the types of the objects in them."""

    steps: tuple[TraceStep, ...]
    objects: Mapping[str, str]


def segments(trace: Trace) -> Iterator[tuple[Atom, tuple[TraceStep, ...]]]:
    """Yield each goal fact that becomes newly true, with the steps to it from the last goal achieved before it."""
    start = 0
    for index, step in enumerate(trace.steps, 1):
        achieved = sorted(step.goal & (step.next_state - step.state))
        for fact in achieved:
            yield fact, trace.steps[start:index]
        if achieved:
            start = index


@dataclass(frozen=True, slots=True)
class Change:
    """One state follows on another: the step at which it does, and the actions that explain it: none, one or several.

    `outcome` is what nature made of the first of these.
    """

    step: int
    before: Facts
    after: Facts
    actions: tuple[Action, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Abstraction:
    """What a sequence of labelled states says at the high level.

    `actions` gives each low-level step the action it helped to bring about, or `None` where none is known: before an
    exogenous change, and after the last action. `flickers` are changes that were undone after a few steps.
    """

    traces: tuple[Trace, ...]
    actions: tuple[Action | None, ...]
    changes: tuple[Change, ...] = ()
    flickers: tuple[Change, ...] = ()

    @property
    def exogenous(self) -> int:
        """How many changes no action explains."""
        return sum(not change.actions for change in self.changes)

    @property
    def ambiguous(self) -> int:
        """How many changes several actions explain, or several outcomes of one."""
        return sum(len(change.actions) > 1 for change in self.changes)


def traces_from_states(
    domain: Domain,
    states: Sequence[Facts],
    goals: Sequence[Facts],
    objects: Mapping[str, str],
    settling: int = 5,
    recorded: Sequence[Action | None] = (),
) -> Abstraction:
    """Explain the changes in a sequence of states, one per low-level step, by actions.

    A state that lasts at most `settling` steps may be looked past; `goals` holds the goal at each step. Objects that
    `objects` does not list have the types that their facts imply. If what the demonstrator was doing at each step is
    `recorded`, it stands for the steps before an exogenous change, which no action explains. Of a domain in ADL there
    are actions, and no traces, as there can be no rules; where a domain has no actions yet, nothing is explained.
    """
    if len(goals) != len(states) or len(recorded) not in (0, len(states)):
        raise BadInput(
            f"{len(states)} states need as many goals and recorded actions, not {len(goals)}, {len(recorded)}"
        )
    if not domain.schemas:
        return Abstraction((), tuple(recorded) or (None,) * len(states))
    if domain.adl and states:
        plain, _ = compiled(domain, Problem("seen", domain.name, objects, states[0], NO_FACTS))
        found = traces_from_states(plain, states, goals, objects, settling, recorded)
        in_adl = tuple(replace(each, actions=tuple(map(users_action, each.actions))) for each in found.changes)
        return Abstraction((), tuple(each and users_action(each) for each in found.actions), in_adl, found.flickers)
    groups = ((state, [step for step, _ in group]) for state, group in groupby(enumerate(states), itemgetter(1)))
    runs = [(state, steps[0], len(steps)) for state, steps in groups]
    objects = {**implied_types(domain, [state for state, _, _ in runs]), **objects}
    runs = _before_arrivals(domain, runs, objects)
    actions: list[Action | None] = [None] * len(states)
    traces: list[list[TraceStep]] = [[]]
    changes: list[Change] = []
    flickers: list[Change] = []
    here = 0
    while here < len(runs) - 1:
        state, start, _ = runs[here]
        there, explanations = _next_change(domain, runs, here, settling, objects)
        if not explanations and runs[there][0] != state:
            # Begin anew at the first state, even a short-lived one, from which an action leads on.
            between = range(here + 1, there)
            there = next((run for run in between if _next_change(domain, runs, run, settling, objects)[1]), there)
        after, end, length = runs[there]
        if explanations:
            action, outcome = explanations[0]
            traces[-1].append(TraceStep(state, action, outcome, goals[end]))
            actions[start:end] = [action.action] * (end - start)
            changes.append(Change(end, state, after, tuple(each.action for each, _ in explanations), outcome))
        elif after != state:
            changes.append(Change(end, state, after))
            actions[start:end] = recorded[start:end] or actions[start:end]
            traces.append([])
        else:  # a flicker: the same state again, so the run goes on
            flickers.append(Change(runs[here + 1][1], state, runs[here + 1][0]))
            runs[there] = (state, start, length + end - start)
        here = there
    whole = tuple(Trace(tuple(steps), objects) for steps in traces if steps)
    return Abstraction(whole, tuple(actions), tuple(changes), tuple(flickers))


Run = tuple[Facts, int, int]  # a state, the index at which it begins, how many steps it lasts
Explanation = tuple[GroundAction, Outcome]


def _before_arrivals(domain: Domain, runs: Sequence[Run], objects: Mapping[str, str]) -> list[Run]:
    """Return the runs, with a state of no length before objects that arrive at the very step that ends an action.

    Without the facts about the newcomers that action explains the change; their arrival is then a change of its own.
    """
    result = [runs[0]] if runs else []
    for (before, _, _), (after, start, length) in pairwise(runs):
        known = _terms(before)
        without = frozenset(fact for fact in after if known.issuperset(fact.terms))
        arrival = without not in (before, after) and not explain_change(domain, before, after, objects)
        if arrival and explain_change(domain, before, without, objects):
            result.append((without, start, 0))
        result.append((after, start, length))
    return result


def _terms(facts: Facts) -> set[str]:
    return {term for fact in facts for term in fact.terms}


def implied_types(domain: Domain, states: Sequence[Facts]) -> dict[str, str]:
    """Return for each object in the states the narrowest type that a predicate it occurs in declares."""
    types: dict[str, str] = {}
    for fact in sorted(frozenset().union(*states)):
        predicate = domain.predicates.get(fact.predicate)
        for name, parameter in zip(fact.terms, predicate.parameters, strict=True) if predicate else ():
            if domain.is_subtype(parameter.type, types.setdefault(name, parameter.type)):
                types[name] = parameter.type
    return types


def _next_change(
    domain: Domain, runs: Sequence[Run], here: int, settling: int, objects: Mapping[str, str]
) -> tuple[int, list[Explanation]]:
    """Return the next run that an action explains, else the first that repeats this state or outlasts the settling.

    Where all that comes is short-lived and unexplained, it is the very next.
    """
    state = runs[here][0]
    for there in range(here + 1, min(here + 1 + MOST_LOOKED_PAST, len(runs))):
        after, _, length = runs[there]
        if after == state:
            return there, []
        explanations = explain_change(domain, state, after, objects)
        if explanations:
            return there, explanations
        if length > settling:
            return there, []
    return min(here + 1, len(runs) - 1), []


def explain_change(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> list[Explanation]:
    """Return every action and outcome that turns one state into the other, in a fixed order.

    Nature's choices are read off the new state, so objects that appear in it for the first time are allowed.
    """
    found: dict[tuple[Action, Outcome], Explanation] = {}
    for schema in domain.schemas.values() if before != after else ():
        for outcome in schema.outcomes:
            for binding in _explaining_bindings(domain, schema, outcome, before, after, objects):
                action = ground(schema, tuple(binding[parameter.name] for parameter in schema.parameters))
                bound = bind_outcome(outcome, binding)
                if action and action.condition.holds(before):
                    bound = outcome_in(before, bound, domain, objects)
                    if progress(before, bound) == after:
                        found[action.action, bound] = (action, bound)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], sorted(key[1].add), sorted(key[1].delete)))]


def _explaining_bindings(
    domain: Domain, schema: Schema, outcome: Outcome, before: Facts, after: Facts, objects: Mapping[str, str]
) -> Iterator[Binding]:
    """Yield bindings under which the precondition holds before, what is added after, and a changed fact is an effect.

    Parameters that this leaves open range over the objects of their type, the first combinations of them.
    """
    changed = min(fact for fact in before ^ after if fact.predicate not in domain.derived)
    starts = (unify(effect, changed) for effect in sorted(outcome.add if changed in after else outcome.delete))
    conditions = [(atom, after) for atom in sorted(outcome.add)]
    conditions += [(atom, before) for atom in sorted(schema.precondition) if atom.predicate != EQUALITY]
    seen = _terms(before) if outcome.new else set()

    def fits(name: str, variable: Parameter) -> bool:
        """Return whether an object is of the variable's type and, where it shall be new, has not been seen before."""
        is_known = variable.name in outcome.new and name in seen
        return domain.is_subtype(objects.get(name, variable.type), variable.type) and not is_known

    for binding in chain.from_iterable(join(conditions, start) for start in starts if start is not None):
        if all(fits(binding.get(variable.name, ""), variable) for variable in outcome.chosen):
            candidates = (
                [name for name in ([binding[p.name]] if p.name in binding else sorted(objects)) if fits(name, p)]
                for p in schema.parameters
            )
            for arguments in islice(product(*candidates), MOST_ARGUMENTS):
                yield binding | dict(zip((p.name for p in schema.parameters), arguments, strict=True))


# Plan for the goals of problems one at a time, act, and keep what happened

# A planner gives ground actions with the outcomes it counts on, or `None` where it finds no plan in time.
GroundPlan = Sequence[tuple[GroundAction, Outcome]]
PlanFor = Callable[[Domain, Problem], GroundPlan | None]

MOST_REPLANNED = 100  # times that nature does not do what the plan counts on, per goal, before giving up on it


class ProblemTraces(NamedTuple):
    """The traces of some problems, and the goals that could not be planned for, by the problem's place in the list."""

    traces: tuple[Trace, ...]
    skipped: dict[int, tuple[Atom, ...]]


def traces_from_problems(
    domain: Domain,
    problems: Sequence[Problem],
    plan_for: PlanFor,
    *,
    orders: int = 3,
    seed: int = 0,
    callback: Callback = silent,
) -> ProblemTraces:
    """Return the traces of plans for each problem's goals, taken one at a time in a few random orders.

    Each goal is planned for from the state reached so far. What is random depends on the seed and the problem's place.
    """
    traces: list[Trace] = []
    skipped: dict[int, dict[Atom, None]] = {}
    for number, problem in enumerate(problems):
        callback(Progress("planning", number, len(problems)))
        plan = cache(partial(_plan, domain, problem, plan_for))
        for order in range(orders):
            rng = random.Random(f"{seed} {number} {order}")
            goals = sorted(problem.goal)
            rng.shuffle(goals)
            nature = Nature(domain, problem.all_objects(domain), rng)
            state = problem.state
            for goal in goals:
                steps, state = _pursue(domain, state, frozenset({goal}), plan, nature)
                if goal not in state:
                    skipped.setdefault(number, {})[goal] = None
                elif steps:
                    traces.append(Trace(tuple(steps), dict(nature.objects)))
    return ProblemTraces(tuple(traces), {number: tuple(goals) for number, goals in skipped.items()})


Objects = tuple[tuple[str, str], ...]


def _plan(
    domain: Domain, problem: Problem, plan_for: PlanFor, state: Facts, goal: Facts, objects: Objects
) -> GroundPlan | None:
    return plan_for(domain, replace(problem, state=state, goal=goal, objects=dict(objects)))


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
            steps.append(TraceStep(state, action, outcome_in(state, outcome, domain, nature.objects), goal))
            state = steps[-1].next_state
            if outcome != hoped:
                break
    return steps, state

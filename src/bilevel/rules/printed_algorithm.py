"""Algorithm 1 of the paper exactly as it is printed: the whole goal is regressed, over every outcome of every action.

It is here to be compared with `learning`, which cuts traces at every goal, regresses over what was observed, and keeps
each rule once. Line 10 of the algorithm is left out, as line 11 makes no use of its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from bilevel.rules.lifting import lift
from bilevel.rules.rule import Rule
from bilevel.rules.traces import Trace, TraceStep
from bilevel.symbolic.domain import BadInput, Domain, Facts, Outcome, Parameter
from bilevel.symbolic.semantics import Condition, bind_outcome, makes_object, new_object

MOST_CONDITIONS = 5_000  # at one step of a trace; there are up to twice as many after each action of several outcomes


class Exploded(BadInput):
    """There are more conditions than anybody could make use of."""


def printed_rules(traces: Iterable[Trace], domain: Domain) -> tuple[Rule, ...]:
    """Return the rules of all traces, by priority and then by text.

    Priorities are counted from 1, as in the paper's appendix. `Exploded` where a trace has too many conditions.
    """
    for schema in domain.schemas.values():
        if schema.negative_precondition:
            raise BadInput(f"Algorithm 1 knows no negative preconditions, but '{schema.name}' has one")
    rules = {rule for trace in traces for rule in _rules_of(trace, domain)}
    return tuple(sorted(rules, key=lambda rule: (rule.priority, str(rule))))


def _rules_of(trace: Trace, domain: Domain) -> Iterator[Rule]:
    goal = trace.steps[-1].goal
    types = {**domain.constants, **trace.objects}
    conditions = {goal}
    for distance, step in enumerate(reversed(trace.steps), 1):
        outcomes = _outcomes(step, domain, types)
        conditions = {before for condition in conditions for before in _regressors(condition, step, outcomes)}
        if len(conditions) > MOST_CONDITIONS:
            raise Exploded(
                f"Algorithm 1 as printed follows every outcome of every action: {distance} actions before the end of a "
                f"trace of {len(trace.steps)} it has more than {MOST_CONDITIONS:,} conditions, and is given up"
            )
        for condition in conditions:
            yield lift(distance, Condition(condition), goal, step.action, types, domain)


def _regressors(condition: Facts, step: TraceStep, outcomes: Iterable[Outcome]) -> Iterator[Facts]:
    """Yield the paper's regr: what must hold before each outcome; nothing where one of them deletes what must hold."""
    if not any(outcome.delete & condition for outcome in outcomes):
        for outcome in outcomes:
            yield (condition - outcome.add) | step.action.condition.positive


def _outcomes(step: TraceStep, domain: Domain, types: Mapping[str, str]) -> list[Outcome]:
    """Return all that could have come of an action: what nature can choose are the objects of the trace.

    Where she makes an object, it is the one that she has made.
    """
    seen = {term for fact in step.state for term in fact.terms}
    made = [term for fact in sorted(step.outcome.add) for term in fact.terms if term not in seen]

    def candidates(variable: Parameter, outcome: Outcome) -> list[str]:
        if makes_object(variable, outcome, domain, types):
            return [name for name in made if domain.is_subtype(types[name], variable.type)][:1] or [
                new_object(variable, types)
            ]
        return [name for name, kind in types.items() if domain.is_subtype(kind, variable.type)]

    found: dict[tuple[Facts, Facts], Outcome] = {}
    for outcome in step.action.outcomes:
        names = [variable.name for variable in outcome.chosen]
        for values in product(*(candidates(variable, outcome) for variable in outcome.chosen)):
            bound = bind_outcome(outcome, dict(zip(names, values, strict=True)))
            found[bound.add, bound.delete] = bound
    return list(found.values())

"""The action that comes nearest to a change which none explains, and what it lacks, to mend labels and domains by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import NamedTuple

from bilevel.rules.matching import Binding, unify
from bilevel.symbolic.domain import Action, Domain, Facts, Outcome, Schema
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, ground_action, progress, substitute

MOST_BINDINGS = 500  # of parameters that the change does not tell, for each way to begin


class Difference(NamedTuple):
    """What would have to be otherwise for an action to explain a change."""

    unmet: Facts  # conditions that did not hold
    hindering: Facts  # facts that held and should not have
    not_come: Facts
    not_gone: Facts
    others: Facts  # that changed as well
    arrivals: Facts  # the same, about objects that nobody had seen before

    def __str__(self) -> str:
        said = (
            "did not hold before",
            "held before",
            "did not become true",
            "did not become false",
            "changed as well",
            "appeared at the same step",
        )
        parts = [
            f"{', '.join(map(str, sorted(facts)))} {what}" for facts, what in zip(self, said, strict=True) if facts
        ]
        return "; ".join(parts) or "the labels came to that in several steps"


def difference(action: GroundAction, outcome: Outcome, before: Facts, after: Facts) -> Difference:
    """Return how a change differs from this outcome of an action."""
    known = {term for fact in before for term in fact.terms}
    others = (before ^ after) - outcome.add - outcome.delete
    arrivals = frozenset(fact for fact in others if not known.issuperset(fact.terms))
    condition, gone = action.condition, outcome.delete - outcome.add
    unmet, hindering = condition.positive - before, condition.negative & before
    return Difference(unmet, hindering, outcome.add - after, gone & after, others - arrivals, arrivals)


class Nearest(NamedTuple):
    """The action that comes nearest to a change, and what its likest outcome lacks."""

    action: GroundAction
    lacks: Difference


def nearest_action(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> Nearest | None:
    """Return the action whose preconditions and effects differ least from a change.

    There is none if more facts would be wrong about it than there are facts that changed.
    """
    best: tuple[int, Action] | None = None
    found: Nearest | None = None
    outcomes = [(schema, outcome) for schema in domain.schemas.values() for outcome in schema.outcomes]
    for schema, outcome in outcomes:
        for binding in _partial_bindings(domain, schema, outcome, before, after, {**domain.constants, **objects}):
            action = ground(schema, tuple(binding[parameter.name] for parameter in schema.parameters))
            if action is None:
                continue
            bound = bind_outcome(outcome, binding)
            unmet = (action.condition.positive - before) | (action.condition.negative & before)
            wrong = len(unmet) + len(after ^ progress(before, bound))
            if wrong <= len(before ^ after) and (best is None or (wrong, action.action) < best):
                best, found = (wrong, action.action), Nearest(action, difference(action, bound, before, after))
    return found


def _partial_bindings(
    domain: Domain, schema: Schema, outcome: Outcome, before: Facts, after: Facts, objects: Mapping[str, str]
) -> Iterator[Binding]:
    """Yield bindings under which the outcome accounts for one of the facts that changed and, if it can, for others."""
    changes = [(fact, effect) for fact in sorted(after - before) for effect in sorted(outcome.add)]
    changes += [(fact, effect) for fact in sorted(before - after) for effect in sorted(outcome.delete)]
    for fact, effect in changes:
        binding = unify(effect, fact)
        if binding is None:
            continue
        for other, another in changes:
            binding |= unify(substitute(another, binding), other) or {}
        choices = []
        for parameter in schema.parameters:
            names = [binding[parameter.name]] if parameter.name in binding else sorted(objects)
            kinds = ((name, objects.get(name, parameter.type)) for name in names)
            choices.append([name for name, kind in kinds if domain.is_subtype(kind, parameter.type)])
        for arguments in islice(product(*choices), MOST_BINDINGS):
            yield binding | dict(zip((p.name for p in schema.parameters), arguments, strict=True))


def how_it_differs(domain: Domain, action: Action, before: Facts, after: Facts) -> str:
    """Say how what came of an action differs from the likest of its outcomes."""
    grounded = ground_action(domain, action)
    changed = before ^ after
    outcome = min(grounded.outcomes, key=lambda outcome: len(changed ^ (outcome.add | outcome.delete)))
    return str(difference(grounded, outcome, before, after))

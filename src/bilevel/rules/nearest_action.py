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
        parts = [
            (self.unmet, "did not hold before"),
            (self.hindering, "held before"),
            (self.not_come, "did not become true"),
            (self.not_gone, "did not become false"),
            (self.others, "changed as well"),
            (self.arrivals, "appeared at the same step"),
        ]
        said = [f"{', '.join(map(str, sorted(facts)))} {what}" for facts, what in parts if facts]
        return "; ".join(said) or "the labels came to that in several steps"


def difference(action: GroundAction, outcome: Outcome, before: Facts, after: Facts) -> Difference:
    """Return how a change differs from this outcome of an action."""
    known = {term for fact in before for term in fact.terms}
    others = (before ^ after) - outcome.add - outcome.delete
    arrivals = frozenset(fact for fact in others if not known.issuperset(fact.terms))
    return Difference(
        unmet=action.condition.positive - before,
        hindering=action.condition.negative & before,
        not_come=outcome.add - after,
        not_gone=(outcome.delete - outcome.add) & after,
        others=others - arrivals,
        arrivals=arrivals,
    )


class Nearest(NamedTuple):
    """The action that comes nearest to a change, the outcome with what nature chose in it, and what both lack."""

    action: GroundAction
    outcome: Outcome
    lacks: Difference


def nearest_action(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> Nearest | None:
    """Return the action whose preconditions and effects differ least from a change.

    There is none if more facts would be wrong about it than there are facts that changed.
    """
    everything = {**domain.constants, **objects}
    worst = len(before ^ after)
    best: tuple[int, Action] | None = None
    found: tuple[GroundAction, Outcome] | None = None
    for schema in domain.schemas.values():
        for outcome in schema.outcomes:
            for binding in _partial_bindings(domain, schema, outcome, before, after, everything):
                action = ground(schema, tuple(binding[parameter.name] for parameter in schema.parameters))
                if action is None:
                    continue
                bound = bind_outcome(outcome, binding)
                score = _distance(action, bound, before, after)
                if score <= worst and (best is None or (score, action.action) < best):
                    best, found = (score, action.action), (action, bound)
    return Nearest(*found, difference(*found, before, after)) if found else None


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
        choices = (
            [
                name
                for name in ([binding[p.name]] if p.name in binding else sorted(objects))
                if domain.is_subtype(objects.get(name, p.type), p.type)
            ]
            for p in schema.parameters
        )
        for arguments in islice(product(*choices), MOST_BINDINGS):
            yield binding | dict(zip((p.name for p in schema.parameters), arguments, strict=True))


def _distance(action: GroundAction, outcome: Outcome, before: Facts, after: Facts) -> int:
    """Return how many facts did not hold as the action needs them, or did not change as it changes them."""
    unmet = (action.condition.positive - before) | (action.condition.negative & before)
    return len(unmet) + len(after ^ progress(before, outcome))


def how_it_differs(domain: Domain, action: Action, before: Facts, after: Facts) -> str:
    """Say how what came of an action differs from the likest of its outcomes."""
    grounded = ground_action(domain, action)
    changed = before ^ after
    outcome = min(grounded.outcomes, key=lambda outcome: len(changed ^ (outcome.add | outcome.delete)))
    return str(difference(grounded, outcome, before, after))

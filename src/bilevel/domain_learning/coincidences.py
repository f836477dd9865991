"""Changes in which several things happen at the same step: events, and perhaps one action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bilevel.rules.matching import join
from bilevel.rules.traces import Explanation, explain_change
from bilevel.symbolic.domain import EQUALITY, Action, Atom, Domain, Facts
from bilevel.symbolic.semantics import applicable, bind_outcome, ground, progress

MOST_EVENTS = 4  # at the same step


def explain_by_events(
    domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str], most: int = MOST_EVENTS
) -> list[Explanation]:
    """Return events that turn one state into the other, with at most one action after them; none if there are none."""
    for event in sorted(_parts(domain, before, after, objects), key=_rank):
        between = progress(before, event[1])
        if between == after:
            return [event]
        rest = explain_change(domain, between, after, objects)[:1]
        if not rest and most > 1:
            rest = explain_by_events(domain, between, after, objects, most - 1)
        if rest:
            return [event, *rest]
    return []


def _rank(explanation: Explanation) -> tuple[Action, list[Atom], list[Atom]]:
    event, outcome = explanation
    return event.action, sorted(outcome.add), sorted(outcome.delete)


def _parts(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> Iterator[Explanation]:
    """Give the events all of whose effects are among the facts that changed, in no fixed order."""
    came, went = after - before, before - after
    known = {term for fact in before for term in fact.terms}
    for event in domain.events.values():
        conditions = [(atom, before) for atom in sorted(event.precondition) if atom.predicate != EQUALITY]
        for outcome in event.outcomes:
            effects = [(atom, came) for atom in sorted(outcome.add)] + [(atom, went) for atom in sorted(outcome.delete)]
            for binding in join(effects + conditions, {}) if effects else ():
                types = {p.name: p.type for p in (*event.parameters, *outcome.chosen)}
                fits = types.keys() <= binding.keys() and all(
                    domain.is_subtype(objects.get(binding[name], kind), kind) for name, kind in types.items()
                )
                if not fits or any(binding[variable] in known for variable in outcome.new):
                    continue
                grounded = ground(event, tuple(binding[parameter.name] for parameter in event.parameters))
                if grounded is not None and applicable(before, grounded):
                    yield grounded, bind_outcome(outcome, binding)

"""Types and predicates, where nobody declared them: as the facts and the types of their objects show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from bilevel.domain_learning.episodes import Episode
from bilevel.symbolic.domain import ROOT_TYPE, BadInput, Domain, Parameter, Predicate

LEARNED = "learned"


def inferred_frame(episodes: Sequence[Episode], name: str = LEARNED) -> Domain:
    """Return a domain with the predicates of all facts, and no actions.

    Where one argument of a predicate takes objects of several types, these get a common type above them, called after
    its members. `BadInput` where a predicate has facts of different arity.
    """
    seen: dict[str, list[set[str]]] = {}
    kinds: set[str] = set()
    for episode in episodes:
        kinds.update(episode.objects.values())
        for fact in sorted(frozenset().union(*set(episode.states), *set(episode.goals))):
            places = seen.setdefault(fact.predicate, [set() for _ in fact.terms])
            if len(places) != len(fact.terms):
                arities = f"{len(places)} and of {len(fact.terms)} objects"
                raise BadInput(
                    f"the labels have facts of '{fact.predicate}' of {arities}: give one of them another name"
                )
            for place, term in zip(places, fact.terms, strict=True):
                place.add(episode.objects.get(term, ROOT_TYPE))
    parents = _common_types([place for places in seen.values() for place in places if place != kinds])
    domain = Domain(name, {}, {}, {kind: parents.get(kind, ROOT_TYPE) for kind in sorted(kinds | {*parents.values()})})
    predicates = {
        predicate: Predicate(
            predicate, tuple(Parameter(f"?x{i}", common_type(domain, k)) for i, k in enumerate(places))
        )
        for predicate, places in sorted(seen.items())
    }
    return Domain(name, predicates, {}, domain.types)


def _common_types(sets: Sequence[set[str]]) -> dict[str, str]:
    """Return for each type that shares an argument with others the one above all of these."""
    above: dict[str, set[str]] = {}
    for kinds in sets:
        if len(kinds) > 1 and ROOT_TYPE not in kinds:
            together = set(kinds).union(*(above.get(kind, set()) for kind in kinds))
            above |= dict.fromkeys(together, together)
    return {kind: "-or-".join(sorted(together)) for kind, together in above.items()}


def ancestors(domain: Domain, kind: str) -> list[str]:
    """Return the type itself and those above it, up to the one above all."""
    found = [kind]
    while found[-1] != ROOT_TYPE:
        found.append(domain.types.get(found[-1], ROOT_TYPE))
    return found


def common_type(domain: Domain, kinds: set[str] | Mapping[str, object] | Sequence[str]) -> str:
    """Return the least type above all of these."""

    def above(one: str, other: str) -> str:
        others = ancestors(domain, other)
        return next(kind for kind in ancestors(domain, one) if kind in others)

    return reduce(above, sorted(kinds)) if kinds else ROOT_TYPE

"""Closures: `on+(?x, ?y)` in a rule says that ?x is on ?y, or on something that is, however many steps that takes.

So one rule speaks of towers of any height. The facts of a closure follow from those of its predicate; no action and no
label names them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from bilevel.rules.paths import path_predicates
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Predicate

MARK = "+"


def closure(atom: Atom) -> Atom:
    """Return the atom that says the same in one or more steps."""
    return Atom(atom.predicate + MARK, atom.terms)


def predicate_of(name: str, domain: Domain) -> Predicate:
    """Return the predicate of this name, or that whose closure it names, or that of the paths over one."""
    return domain.predicates.get(name) or derived_predicates(domain)[name]


def derived_predicates(domain: Domain) -> dict[str, Predicate]:
    """Return what a rule's state condition may be made of beside the domain's predicates, by name."""
    chained = {name + MARK: p for name, p in domain.predicates.items() if can_be_chained(p, domain)}
    return chained | path_predicates(domain)


def can_be_chained(predicate: Predicate, domain: Domain) -> bool:
    """Return whether one fact of the predicate can go on where another ends."""
    types = [parameter.type for parameter in predicate.parameters]
    return len(types) == 2 and (domain.is_subtype(*types) or domain.is_subtype(*reversed(types)))


def closures_in(rules: Iterable[Rule], domain: Domain) -> frozenset[str]:
    """Return the predicates whose closures the rules ask about."""
    asked = {atom.predicate for rule in rules for atom in rule.state_condition | rule.absent}
    return frozenset(name.removesuffix(MARK) for name in asked if name.endswith(MARK) and name not in domain.predicates)


@lru_cache(maxsize=64)
def with_closures(facts: Facts, predicates: frozenset[str]) -> Facts:
    """Return the facts and those of the closures of these predicates."""
    found = set(facts)
    for name in predicates:
        found.update(Atom(name + MARK, pair) for pair in chains(fact.terms for fact in facts if fact.predicate == name))
    return frozenset(found)


def chains(links: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return the pairs of which one or more links lead from the first to the second: the transitive closure."""
    steps: dict[Any, list[Any]] = {}
    for start, end in links:
        steps.setdefault(start, []).append(end)
    found = set[tuple[Any, ...]]()
    for start in steps:
        queue, seen = [*steps[start]], set[Any]()
        for here in queue:  # which grows meanwhile
            if here not in seen:
                seen.add(here)
                queue += steps.get(here, ())
        found.update((start, there) for there in seen)
    return found

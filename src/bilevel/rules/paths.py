"""Paths: `road>(?here, ?next, ?there)` in a rule says that a shortest way from ?here to ?there begins with ?next.

So one rule goes to a place however far it is. Of several places that the rule allows, it goes to the nearest: of a
rule's instances, those with the shorter path fire first. Paths lead along facts that never change; whatever arguments a
predicate has before the last two are the same all the way, as the rover in `can_traverse>(?r, ?here, ?next, ?there)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import NO_FACTS, Atom, Domain, Facts, Parameter, Predicate

PATH = ">"


def static_predicates(domain: Domain) -> list[str]:
    """Return the predicates whose facts no action changes."""
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    changing = {atom.predicate for outcome in outcomes for atom in outcome.add | outcome.delete}
    return [name for name in domain.predicates if name not in changing]


def path_predicates(domain: Domain) -> dict[str, Predicate]:
    """Return what there can be paths over, by the name of the path: static predicates that link things of one type."""
    found: dict[str, Predicate] = {}
    for name in static_predicates(domain):
        parameters = domain.predicates[name].parameters
        if len(parameters) > 1 and parameters[-1].type == parameters[-2].type:
            there = Parameter("?there", parameters[-1].type)
            found[name + PATH] = Predicate(name + PATH, (*parameters, there))
    return found


def path_of(rule: Rule) -> Atom | None:
    """Return the path in a rule's condition, of which there is one at most."""
    return next((atom for atom in sorted(rule.state_condition) if atom.predicate.endswith(PATH)), None)


@lru_cache(maxsize=16)
def path_lengths(facts: Facts) -> Mapping[Atom, int]:
    """Return the path facts over the facts of one predicate, each with the length of its path."""
    links: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for fact in sorted(facts):
        *_, start, end = fact.terms
        links.setdefault(fact.terms[:-2], {}).setdefault(end, []).append(start)
    found: dict[Atom, int] = {}
    name = min(facts, default=Atom("")).predicate + PATH
    for first, before in links.items():
        for destination in sorted(before):
            distances, queue = {destination: 0}, [destination]
            for here in queue:  # grows while it is read
                length = distances[here] + 1
                for start in before.get(here, ()):
                    if start not in distances:
                        distances[start] = length
                        queue.append(start)
                    if distances[start] == length:
                        found[Atom(name, (*first, start, here, destination))] = length
    return found


def paths_for(rule: Rule, state: Collection[Atom]) -> Mapping[Atom, int]:
    """Return the path facts that a rule asks about in a state, with the lengths of the paths."""
    path = path_of(rule)
    if path is None:
        return {}
    name = path.predicate.removesuffix(PATH)
    return path_lengths(frozenset(fact for fact in state if fact.predicate == name))


def without_paths(
    rules: Iterable[Rule], domain: Domain, state: Collection[Atom]
) -> tuple[list[tuple[Rule, Rule]], Domain, Facts]:
    """Return rules that say the same without paths, each with its original, a domain for them, and facts they need.

    There is a rule for each length of a path, and a predicate for the paths of that length.
    """
    found: list[tuple[Rule, Rule]] = []
    predicates: dict[str, Predicate] = {}
    facts: set[Atom] = set()
    for rule in rules:
        path, lengths = path_of(rule), paths_for(rule, state)
        if path is None:
            found.append((rule, rule))
            continue
        facts.update(Atom(f"{fact.predicate}{length}", fact.terms) for fact, length in lengths.items())
        for length in sorted(set(lengths.values())):
            name = f"{path.predicate}{length}"
            predicates[name] = replace(path_predicates(domain)[path.predicate], name=name)
            condition = rule.state_condition - {path} | {Atom(name, path.terms)}
            found.append((replace(rule, state_condition=condition), rule))
    if not predicates:
        return found, domain, NO_FACTS
    return found, replace(domain, predicates={**domain.predicates, **predicates}), frozenset(facts)

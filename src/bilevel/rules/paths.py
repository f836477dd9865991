"""Paths: `road>(?here, ?next, ?there)` in a rule says that a shortest way from ?here to ?there begins with ?next.

So one rule goes to a place however far it is. Of several places that the rule allows, it goes to the nearest: of a
rule's instances, those with the shorter path fire first. Paths lead along facts that never change; whatever arguments a
predicate has before the last two are the same all the way, as the rover in `can_traverse>(?r, ?here, ?next, ?there)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, repeat
from typing import NamedTuple

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Parameter, Predicate

PATH = ">"
MOST_PATHS = 5_000_000  # first steps of shortest paths


class PathRows(NamedTuple):
    """Path facts of one length: how many, and the terms of one after another."""

    size: int
    terms: list[str]


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


def _links(facts: Iterable[Atom]) -> dict[tuple[str, ...], dict[str, list[str]]]:
    """Return for the first terms of a predicate's facts from where each place is reached in one step, in order."""
    links: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for fact in sorted(facts):
        *_, start, end = fact.terms
        links.setdefault(fact.terms[:-2], {}).setdefault(end, []).append(start)
    return links


def _shortest(before: Mapping[str, list[str]]) -> Iterator[tuple[int, str, str, str]]:
    """Yield the first steps of all shortest paths: length, start, next place and destination."""
    for destination in sorted(before):
        distances, queue = {destination: 0}, [destination]
        for here in queue:  # grows while it is read
            length = distances[here] + 1
            for start in before.get(here, ()):
                if start not in distances:
                    distances[start] = length
                    queue.append(start)
                if distances[start] == length:
                    yield length, start, here, destination


@lru_cache(maxsize=16)
def path_lengths(facts: Facts) -> Mapping[Atom, int]:
    """Return the path facts over the facts of one predicate, each with the length of its path."""
    name = min(facts, default=Atom("")).predicate + PATH
    return {
        Atom(name, (*first, *terms)): length
        for first, before in _links(facts).items()
        for length, *terms in _shortest(before)
    }


@lru_cache(maxsize=16)
def path_rows(facts: Facts) -> Mapping[int, PathRows]:
    """Return the terms of the same path facts by the length of their paths; `BadInput` where they are too many."""
    found: dict[int, PathRows] = {}
    shared: dict[frozenset[tuple[str, tuple[str, ...]]], dict[int, list[tuple[str, str, str]]]] = {}
    for first, before in _links(facts).items():
        graph = frozenset((end, tuple(starts)) for end, starts in before.items())  # often that of others, too
        if graph not in shared:
            shared[graph] = {}
            for length, *step in _shortest(before):
                shared[graph].setdefault(length, []).append((step[0], step[1], step[2]))
        for length, steps in shared[graph].items():
            count, terms = found.setdefault(length, PathRows(0, []))
            terms += chain.from_iterable(zip(*map(repeat, first), *zip(*steps, strict=True), strict=False))
            found[length] = PathRows(count + len(steps), terms)
        if sum(rows.size for rows in found.values()) > MOST_PATHS:
            predicate = min(facts).predicate
            raise BadInput(
                f"the shortest paths over the {len(facts):,} facts of '{predicate}' begin in more than "
                f"{MOST_PATHS:,} ways; take a smaller problem, or rules without '{predicate}{PATH}'"
            )
    return found


def _bases(rules: Iterable[Rule], state: Iterable[Atom]) -> dict[str, Facts]:
    """Return the facts that the paths in rules are over, by the predicate of the path."""
    paths = {path.predicate for path in map(path_of, rules) if path is not None}
    found: dict[str, set[Atom]] = {name: set() for name in sorted(paths)}
    for fact in state if paths else ():
        if fact.predicate + PATH in found:
            found[fact.predicate + PATH].add(fact)
    return {name: frozenset(facts) for name, facts in found.items()}


def paths_for(rule: Rule, state: Iterable[Atom]) -> Mapping[Atom, int]:
    """Return the path facts that a rule asks about in a state, with the lengths of the paths."""
    return next((path_lengths(facts) for facts in _bases([rule], state).values()), {})


def without_paths(
    rules: Iterable[Rule], domain: Domain, state: Iterable[Atom]
) -> tuple[list[tuple[Rule, Rule]], Domain, dict[str, PathRows]]:
    """Return rules that say the same without paths, each with its original, a domain for them, and facts they need.

    There is a rule for each length of a path, and a predicate for the paths of that length, by which the facts are.
    """
    rules = tuple(rules)
    rows = {name: path_rows(facts) for name, facts in _bases(rules, state).items()}
    if not rows:
        return [(rule, rule) for rule in rules], domain, {}
    found: list[tuple[Rule, Rule]] = []
    for rule in rules:
        path = path_of(rule)
        if path is None:
            found.append((rule, rule))
            continue
        for length in sorted(rows[path.predicate]):
            condition = rule.state_condition - {path} | {Atom(f"{path.predicate}{length}", path.terms)}
            found.append((replace(rule, state_condition=condition), rule))
    kinds = path_predicates(domain)
    named = {f"{name}{length}": (name, each) for name, lengths in rows.items() for length, each in lengths.items()}
    predicates = {new: replace(kinds[name], name=new) for new, (name, _) in named.items()}
    facts = {new: each for new, (_, each) in named.items()}
    return found, replace(domain, predicates={**domain.predicates, **predicates}), facts

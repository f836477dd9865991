"""Facts that follow from those of a state, which rules may ask about: closures and paths.

A closure `on+(?x, ?y)` in a rule says that ?x is on ?y, or on something that is, however many steps that takes. So one
rule speaks of towers of any height. The facts of a closure follow from those of its predicate; no action and no label
names them.

A path `road>(?here, ?next, ?there)` says that a shortest way from ?here to ?there begins with ?next. So one rule goes
to a place however far it is. Of several places that the rule allows, it goes to the nearest: of a rule's instances,
those with the shorter path fire first. Paths lead along facts that never change; whatever arguments a predicate has
before the last two are the same all the way, as the rover in `can_traverse>(?r, ?here, ?next, ?there)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import itemgetter

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts, Parameter, Predicate

MARK = "+"
PATH = ">"
MOST_PATHS = 5_000_000  # first steps of shortest paths


def closure(atom: Atom) -> Atom:
    """Return the atom that says the same in one or more steps."""
    return Atom(atom.predicate + MARK, atom.terms)


def can_be_chained(predicate: Predicate, domain: Domain) -> bool:
    """Return whether one fact of the predicate can go on where another ends."""
    types = [parameter.type for parameter in predicate.parameters]
    return len(types) == 2 and (domain.is_subtype(*types) or domain.is_subtype(*reversed(types)))


def closures_in(rules: Iterable[Rule], domain: Domain) -> frozenset[str]:
    """Return the predicates whose closures the rules ask about."""
    asked = {atom.predicate for rule in rules for atom in rule.state_condition | rule.absent}
    return frozenset(name.removesuffix(MARK) for name in asked if name.endswith(MARK) and name not in domain.predicates)


def with_derived(facts: Facts, rules: Iterable[Rule], domain: Domain) -> Facts:
    """Return the facts and all that the rules need derived from them, paths included."""
    rules = tuple(rules)
    return with_closures(facts, closures_in(rules, domain)).union(*(paths_for(rule, facts) for rule in rules))


@lru_cache(maxsize=64)
def with_closures(facts: Facts, predicates: frozenset[str]) -> Facts:
    """Return the facts and those of the closures of these predicates."""
    found = set(facts)
    for name in predicates:
        found.update(Closure(name).update(facts, ())[0])
    return frozenset(found)


def derived_predicates(domain: Domain) -> dict[str, Predicate]:
    """Return what a rule's state condition may be made of beside the domain's predicates, by name."""
    chained = {name + MARK: p for name, p in domain.predicates.items() if can_be_chained(p, domain)}
    return chained | path_predicates(domain)


def predicate_of(name: str, domain: Domain) -> Predicate:
    """Return the predicate of this name, or that whose closure it names, or that of the paths over one."""
    return domain.predicates.get(name) or derived_predicates(domain)[name]


# Closures


class Closure:
    """The facts of the closure of a predicate, which follow from its own; at first there are none of either."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._links: dict[str, set[str]] = {}  # where each thing leads in one step
        self._ends: dict[str, set[str]] = {}  # and in any number of steps
        self._starts: dict[str, set[str]] = {}  # and the other way round

    def update(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[list[Atom], list[Atom]]:
        """Return which facts of the closure come and go now that facts, which were not there or were, did."""
        changed = set[str]()
        for name, terms in came:
            if name == self.name:
                changed.add(terms[0])
                self._links.setdefault(terms[0], set()).add(terms[1])
        for name, terms in went:
            if name == self.name:
                changed.add(terms[0])
                self._links[terms[0]].remove(terms[1])
        added, deleted = list[Atom](), list[Atom]()
        for start in changed.union(*(self._starts.get(each, ()) for each in changed)):
            before, ends = self._ends.get(start, set()), self._reached(start)
            self._ends[start] = ends
            for end in ends - before:
                self._starts.setdefault(end, set()).add(start)
                added.append(Atom(self.name + MARK, (start, end)))
            for end in before - ends:
                self._starts[end].remove(start)
                deleted.append(Atom(self.name + MARK, (start, end)))
        return added, deleted

    def _reached(self, start: str) -> set[str]:
        """Return where one or more steps lead."""
        found, queue = set[str](), [*self._links.get(start, ())]
        for here in queue:  # grows while it is read
            if here not in found:
                found.add(here)
                queue += self._links.get(here, ())
        return found


# Paths


def static_predicates(domain: Domain) -> list[str]:
    """Return the predicates whose facts no action changes."""
    static = domain.static
    return [name for name in domain.predicates if name in static]


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
def _first_steps(links: frozenset[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the first steps of all shortest paths: start, next place, destination, and the path's length."""
    before: dict[str, set[str]] = {}
    for start, end in links:
        before.setdefault(end, set()).add(start)
    starts, found = {start for start, _ in links}, list[tuple[str, ...]]()
    for destination in sorted(before):
        left, length, reached = starts - {destination}, 0, {destination}
        while reached:
            length += 1
            steps = [(s, here) for here in sorted(reached) for s in sorted(left.intersection(before.get(here, ())))]
            found += [(start, here, destination, f"{length:08}") for start, here in steps]
            reached = {start for start, _ in steps}
            left -= reached
    return found


@lru_cache(maxsize=16)
def path_rows(links: Facts) -> list[tuple[str, ...]]:
    """Return the terms of the path facts over the facts of one predicate, and after them the length of the path.

    It has leading zeros, so that the order of lengths is that of names.
    """
    by_first: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for _, terms in links:
        by_first.setdefault(terms[:-2], set()).add(terms[-2:])
    found: list[tuple[str, ...]] = []
    for first in sorted(by_first):
        found += [first + step for step in _first_steps(frozenset(by_first[first]))]
        if len(found) > MOST_PATHS:
            predicate = min(links).predicate
            raise BadInput(
                f"the shortest paths over the {len(links):,} facts of '{predicate}' begin in more than "
                f"{MOST_PATHS:,} ways; take a smaller problem, or rules without '{predicate}{PATH}'"
            )
    return found


@lru_cache(maxsize=16)
def path_lengths(links: Facts) -> Mapping[Atom, int]:
    """Return the path facts over the facts of one predicate, each with the length of its path; short ones first."""
    name = min(links, default=Atom("")).predicate + PATH
    return {Atom(name, row[:-1]): int(row[-1]) for row in sorted(path_rows(links), key=itemgetter(-1))}


def links_of(path: str, state: Iterable[Atom]) -> Facts:
    """Return the facts that paths with this name are over."""
    return frozenset(fact for fact in state if fact.predicate + PATH == path)


def paths_for(rule: Rule, state: Iterable[Atom]) -> Mapping[Atom, int]:
    """Return the path facts that a rule asks about in a state, with the lengths of the paths."""
    path = path_of(rule)
    return path_lengths(links_of(path.predicate, state)) if path else {}

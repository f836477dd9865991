"""Facts that follow from those of a state: paths, and closures, which are kept up to date as facts come and go.

A closure `on+(?x, ?y)` in a rule says that ?x is on ?y, or on something that is, however many steps that takes. So one
rule speaks of towers of any height. The facts of a closure follow from those of its predicate; no action and no label
names them. To the executors of the rule engine they are like any others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from bilevel.rules.paths import path_predicates, paths_for
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Predicate

MARK = "+"


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

"""Derived facts: what follows from the facts of a state, and is kept up to date as these come and go.

To add another kind, write a `Derivation`, let `derivations` return it where rules need it, `with_derived` use it, and
`derived_predicates` tell the predicates of its facts. The definition in `matching` and the rule engine ask for no more:
to the executors a derived fact is like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Protocol

from bilevel.rules.closures import MARK, Closure, can_be_chained, closures_in
from bilevel.rules.paths import path_predicates, paths_for
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts, Predicate

Changes = tuple[Collection[Atom], Collection[Atom]]  # what came and what went


class Derivation(Protocol):
    """Facts that follow from others; at first there are none of either."""

    sources: frozenset[str]  # the predicates of the facts from which they follow

    def update(self, came: Collection[Atom], went: Collection[Atom]) -> Changes:
        """Return which derived facts come and go now that facts of the sources, which were not there or were, did."""
        ...


def derivations(rules: Iterable[Rule], domain: Domain) -> list[Derivation]:
    """Return what the rules need derived; each may follow from facts that those before it derive."""
    return [Closure(name) for name in sorted(closures_in(rules, domain))]


def with_derived(facts: Facts, rules: Iterable[Rule], domain: Domain) -> Facts:
    """Return the facts and all that the rules need derived from them, paths included."""
    rules = tuple(rules)
    return with_closures(facts, closures_in(rules, domain)).union(*(paths_for(rule, facts) for rule in rules))


@lru_cache(maxsize=64)
def with_closures(facts: Facts, predicates: frozenset[str]) -> Facts:
    """Return the facts and those of the closures of these predicates."""
    found = set(facts)
    for name in predicates:
        found.update(Closure(name).update([fact for fact in facts if fact.predicate == name], ())[0])
    return frozenset(found)


def derived_predicates(domain: Domain) -> dict[str, Predicate]:
    """Return what a rule's state condition may be made of beside the domain's predicates, by name."""
    chained = {name + MARK: p for name, p in domain.predicates.items() if can_be_chained(p, domain)}
    return chained | path_predicates(domain)


def predicate_of(name: str, domain: Domain) -> Predicate:
    """Return the predicate of this name, or that whose closure it names, or that of the paths over one."""
    return domain.predicates.get(name) or derived_predicates(domain)[name]


class GoalsInTurn:
    """The open goals that wait for no other; `waits` says for which each waits, and `facts` what holds at first.

    A goal is settled when it is achieved and all it waits for is settled.
    """

    def __init__(self, goals: Facts, waits: Mapping[Atom, Collection[Atom]], facts: Collection[Atom]) -> None:
        self.sources = frozenset(goal.predicate for goal in goals)
        self.open = {goal for goal in goals if goal not in facts}
        self._unsettled = dict.fromkeys(goals, 0)  # how many there are of those that a goal waits for
        self._followers: dict[Atom, list[Atom]] = {goal: [] for goal in goals}
        for goal, others in waits.items():
            for other in others:
                self._followers[other].append(goal)
                if other in self.open or self._unsettled[other]:
                    self._tell([goal], False)
        self.in_turn = {goal for goal in self.open if not self._unsettled[goal]}

    def update(self, came: Collection[Atom], went: Collection[Atom]) -> Changes:
        """Return which goals have come to be in turn, and which have ceased to be, now that facts came and went."""
        changed = [goal for goal in came if goal in self.open]
        changed += [goal for goal in went if goal in self._unsettled and goal not in self.open]
        affected = {*changed}
        for goal in changed:
            is_achieved = goal in self.open
            (self.open.remove if is_achieved else self.open.add)(goal)
            if not self._unsettled[goal]:
                affected |= self._tell(self._followers[goal], is_achieved)
        now = {goal for goal in affected if goal in self.open and not self._unsettled[goal]}
        begun, ceased = now - self.in_turn, (affected & self.in_turn) - now
        self.in_turn -= ceased
        self.in_turn |= begun
        return begun, ceased

    def _tell(self, goals: Collection[Atom], is_settled: bool) -> set[Atom]:
        """Let something that each of the goals waits for be settled, or no longer; return all that hear of it."""
        told = [*goals]
        for goal in told:  # grows while it is read
            was_waiting = self._unsettled[goal] > 0
            self._unsettled[goal] += -1 if is_settled else 1
            if goal not in self.open and was_waiting != (self._unsettled[goal] > 0):
                told += self._followers[goal]
        return {*told}

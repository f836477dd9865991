"""Closures: `on+(?x, ?y)` in a rule says that ?x is on ?y, or on something that is, however many steps that takes.

So one rule speaks of towers of any height. The facts of a closure follow from those of its predicate; no action and no
label names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Predicate

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


class Closure:
    """The facts of the closure of a predicate, which follow from its own."""

    def __init__(self, name: str) -> None:
        self.sources = frozenset({name})
        self._name = name + MARK
        self._links: dict[str, set[str]] = {}  # where each thing leads in one step
        self._ends: dict[str, set[str]] = {}  # and in any number of steps
        self._starts: dict[str, set[str]] = {}  # and the other way round

    def update(self, came: Collection[Atom], went: Collection[Atom]) -> tuple[list[Atom], list[Atom]]:
        """Return which facts of the closure come and go now that facts of the predicate did."""
        for _, (start, end) in came:
            self._links.setdefault(start, set()).add(end)
        for _, (start, end) in went:
            self._links[start].remove(end)
        changed = {fact.terms[0] for fact in (*came, *went)}
        added, deleted = list[Atom](), list[Atom]()
        for start in changed.union(*(self._starts.get(each, ()) for each in changed)):
            before, ends = self._ends.get(start, set()), self._reached(start)
            self._ends[start] = ends
            for end in ends - before:
                self._starts.setdefault(end, set()).add(start)
                added.append(Atom(self._name, (start, end)))
            for end in before - ends:
                self._starts[end].remove(start)
                deleted.append(Atom(self._name, (start, end)))
        return added, deleted

    def _reached(self, start: str) -> set[str]:
        """Return where one or more steps lead."""
        found, queue = set[str](), [*self._links.get(start, ())]
        for here in queue:  # grows while it is read
            if here not in found:
                found.add(here)
                queue += self._links.get(here, ())
        return found

"""Literals of two or more variables, as links between the domains of a search.

When a domain has changed, a link yields what that leaves of the domains of its other variables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bilevel.rules.engine.indexed_relations import Table
from bilevel.rules.engine.views import UNEQUAL, Literal

Domains = dict[str, set[str]]


class Link(ABC):
    """What some variables have to do with each other."""

    def __init__(self, variables: Sequence[str]) -> None:
        self.variables = variables

    @abstractmethod
    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        """Yield the variables whose domains become smaller because another's did, and what is left of them."""


class Unequal(Link):
    """Two variables that differ."""

    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        if len(domains[changed]) == 1:
            other = self.variables[self.variables[0] == changed]
            if not domains[changed].isdisjoint(domains[other]):
                yield other, domains[other] - domains[changed]


class AllDifferent(Link):
    """Variables of which any two differ: are there values enough for all? That settled ones differ, pairs see to."""

    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        found = sorted((domains[v] for v in self.variables if len(domains[v]) > 1), key=len)
        if any(len(domain) < number for number, domain in enumerate(found, 1)) and not _can_be_matched(found):
            yield changed, set()


def _can_be_matched(domains: Sequence[set[str]]) -> bool:
    """Return whether each domain can be given a value of its own (a matching, found by augmenting paths)."""
    owner: dict[str, int] = {}

    def place(number: int, seen: set[str]) -> bool:
        for value in domains[number]:
            if value not in seen:
                seen.add(value)
                if value not in owner or place(owner[value], seen):
                    owner[value] = number
                    return True
        return False

    return all(place(number, set()) for number in range(len(domains)))


def all_different(literals: Iterable[Literal]) -> list[str]:
    """Return variables of which any two differ, as many as are found by adding one after the other."""
    pairs = {literal.variables for literal in literals if literal.relation == UNEQUAL and len(literal.variables) == 2}
    number = Counter(variable for pair in pairs for variable in pair)
    found: list[str] = []
    for variable in sorted(number, key=lambda v: (-number[v], v)):
        if all(frozenset({variable, other}) in pairs for other in found):
            found.append(variable)
    return found if len(found) > 2 else []


class Tabled(Link):
    """A link that holds for what is in a table."""

    def __init__(self, variables: Sequence[str], table: Table) -> None:
        super().__init__(variables)
        self.table = table


class Pair(Tabled):
    """A fact about two variables."""

    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        place = int(self.variables[0] != changed)
        other = self.variables[1 - place]
        here, there = domains[changed], domains[other]
        if len(here) <= len(there):
            partners = self.table.partners[place]
            yield other, there.intersection(set().union(*(partners[value] for value in here)))
        else:
            partners = self.table.partners[1 - place]
            yield other, {value for value in there if not partners[value].isdisjoint(here)}


class LongFact(Tabled):
    """A fact about three or more variables."""

    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        place, values = min(enumerate(map(domains.__getitem__, self.variables)), key=lambda found: len(found[1]))
        column = self.table.columns[place]
        allowed = [domains[variable] for variable in self.variables]
        rows = [
            row for value in values for row in column.get(value, ())
            if all(value in domain for value, domain in zip(row, allowed, strict=True))
        ]  # fmt: skip
        for number, variable in enumerate(self.variables):
            yield variable, {row[number] for row in rows}


class Absence(Tabled):
    """A fact about two or more variables that must be absent: it says something when all but one are settled."""

    def narrowed(self, changed: str, domains: Domains) -> Iterator[tuple[str, set[str]]]:
        open_places = [i for i, variable in enumerate(self.variables) if len(domains[variable]) > 1]
        if len(open_places) > 1:
            return
        place = open_places[0] if open_places else 0
        settled = [(i, next(iter(domains[v]))) for i, v in enumerate(self.variables) if i != place]
        found = set.intersection(*(self.table.columns[i].get(value, set()) for i, value in settled))
        excluded = {row[place] for row in found}
        variable = self.variables[place]
        if not excluded.isdisjoint(domains[variable]):
            yield variable, domains[variable] - excluded


def link_of(literal: Literal, variables: Sequence[str], table: Table) -> Link:
    """Return the link of a literal that has a table."""
    if not literal.positive:
        return Absence(variables, table)
    return Pair(variables, table) if len(variables) == 2 else LongFact(variables, table)

"""Objects and facts as numbers, for the compiled executor."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

from bilevel.compiled import find
from bilevel.symbolic.domain import Atom
from bilevel.symbolic.packed import Names, Rows

COMPILED = "bilevel.rules.engine._compiled"


class Objects:
    """The numbers of the objects: their places in the order of their names; those that come later are numbered on."""

    def __init__(self, names: Names | list[str], size: int) -> None:
        self._at_first, self.size = names, size

    @cached_property
    def names(self) -> list[str]:
        """The names of the objects, each at the place that is its number."""
        return list(self._at_first.listed if isinstance(self._at_first, Names) else self._at_first)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each object, by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def by_number(self) -> Names:
        """Return all names in the order of the numbers."""
        if isinstance(self._at_first, Names) and "names" not in self.__dict__:
            return self._at_first
        return Names.of(self.names)

    def number(self, name: str, executor: Any) -> int:
        """Return an object's number, a new one if nobody has heard of it yet."""
        found = self.numbers.get(name)
        if found is None:
            found = executor.add_object(name, bisect(self.names, name, hi=self.size))
            self.names.append(name)
            self.numbers[name] = found
        return found

    def constant(self, name: str, executor: Any) -> int:
        """Return the number of one that the rules name, without making a table of all."""
        if isinstance(self._at_first, Names) and self._at_first.has(name):
            return self._at_first.number(name)
        return self.number(name, executor)


def numbered_facts(
    names: Iterable[str], sets: Iterable[Collection[Atom]], asked: Sequence[str]
) -> tuple[list[str], list[dict[str, Rows]]]:
    """Return the names sorted, and for each set of facts the rows of each predicate, as places among the names."""
    ordered = sorted(names)
    numbers = find(COMPILED).Numbers(ordered)
    found = [numbers.rows(facts, asked) for facts in sets]
    return ordered, [{name: Rows(*rows) for name, rows in each.items()} for each in found]


class Table:
    """Rows for statistics: of one column as plain numbers, of others as tuples."""

    def __init__(self, arity: int, *parts: Rows) -> None:
        self._arity, self._parts = arity, parts

    def __len__(self) -> int:
        return sum(rows.size for rows in self._parts)

    def __getitem__(self, part: slice) -> list[Any]:
        found: list[Any] = []
        for rows in self._parts:
            taken = [rows.terms[column :: self._arity * (part.step or 1)] for column in range(self._arity)]
            found += taken[0] if self._arity == 1 else zip(*taken, strict=True)
        return found

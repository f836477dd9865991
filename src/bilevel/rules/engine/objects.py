"""Objects and facts as executors keep them: by name in Python, as numbers for the compiled executor."""

from __future__ import annotations

from array import array
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any, NamedTuple

from bilevel.native import find
from bilevel.rules.engine.executor import MOST_WORK, Executor
from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.symbolic.packed import NUMBER, Names, PackedProblem, Rows

COMPILED = "bilevel.native.executor"


class NamedObjects:
    """Objects that stand for themselves, for the executor in Python."""

    executor = Executor
    values = names = staticmethod(tuple[str, ...])  # what the executor has for objects, and the names of what it has
    value = constant = staticmethod(str)  # what it has for one object, also where constants stand among places
    terms = staticmethod(list[str])  # the terms of many rows as it takes them


class NumberedObjects:
    """The numbers of the objects: their places in the order of their names; those that come later are numbered on."""

    def __init__(self, names: Names) -> None:
        self._at_first = names

    def executor(self, commits: bool) -> Any:
        """Return a new executor that keeps objects in this way."""
        self._size = self._at_first.text.count(b"\n")
        self._executor = find(COMPILED).Executor(self._size, commits, MOST_WORK)
        return self._executor

    @cached_property
    def listed(self) -> list[str]:
        """The names of the objects, each at the place that is its number."""
        return list(self._at_first.listed)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each object, by its name."""
        return {name: number for number, name in enumerate(self.listed)}

    def by_number(self) -> Names:
        """Return all names in the order of the numbers."""
        return Names.of(self.listed) if "listed" in self.__dict__ else self._at_first

    def values(self, names: Iterable[str]) -> list[int]:
        """Return what the executor has for these objects; new numbers for those that are new."""
        try:
            return [self.numbers[name] for name in names]
        except KeyError:
            return [self._number(name) for name in names]

    def _number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = self._executor.add_object(name, bisect(self.listed, name, hi=self._size))
            self.listed.append(name)
        return self.numbers[name]

    def names(self, values: Iterable[int]) -> tuple[str, ...]:
        """Return the names of what the executor has."""
        listed = self.listed
        return tuple([listed[number] for number in values])

    def value(self, name: str) -> int:
        """Return the number of an object that the rules name, without making a table of all."""
        number = self._at_first.number(name)
        return self._number(name) if number is None else number

    def constant(self, name: str) -> int:
        """Return what stands for an object among places of values."""
        return -1 - self.value(name)

    def terms(self, names: Iterable[str]) -> array[int]:
        """Return the terms of many rows as the executor takes them."""
        return array(NUMBER, map(self.numbers.__getitem__, names))


class EngineInput(NamedTuple):
    """Rows for each predicate of a state and of a goal, and for each type, as an executor takes them."""

    objects: NamedObjects | NumberedObjects
    state: Mapping[str, Rows]
    goal: Mapping[str, Rows]
    of_type: Callable[[str], Rows]


def contents_of_facts(
    domain: Domain,
    state: Collection[Atom],
    goal: Facts,
    kinds: Mapping[str, str],
    paths: Mapping[str, Sequence[tuple[str, ...]]],
    is_compiled: bool,
) -> EngineInput:
    """Return what facts as atoms and those of paths, and the objects with their types, are to an executor."""
    objects: Any = NamedObjects()
    if is_compiled:
        objects = NumberedObjects(
            Names.of(sorted({*kinds, *(term for facts in (state, goal) for _, terms in facts for term in terms)}))
        )

    def rows(found: Sequence[tuple[str, ...]]) -> Rows:
        return Rows(len(found), objects.terms(chain.from_iterable(found)))

    def by_predicate(facts: Iterable[Atom]) -> dict[str, Rows]:
        found: dict[str, list[tuple[str, ...]]] = {}
        for predicate, terms in facts:
            found.setdefault(predicate, []).append(terms)
        return {name: rows(each) for name, each in found.items()}

    def of_type(kind: str) -> Rows:
        return rows([(name,) for name, own in kinds.items() if domain.is_subtype(own, kind)])

    known = by_predicate(state) | {name: rows(found) for name, found in paths.items()}
    return EngineInput(objects, known, by_predicate(goal), of_type)


def contents_of_problem(domain: Domain, problem: PackedProblem) -> EngineInput:
    """Return what a problem that is numbers already is to the compiled executor."""

    def of_type(kind: str) -> Rows:
        wanted = [domain.is_subtype(own, kind) for own in problem.type_names]
        found = array(NUMBER, compress(range(len(problem.types)), map(wanted.__getitem__, problem.types)))
        return Rows(len(found), found)

    return EngineInput(NumberedObjects(problem.names), problem.state, problem.goal, of_type)

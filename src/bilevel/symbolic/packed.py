"""Problems as integers: no Python object for each object and fact, so that millions take little time and space.

An object's number is its place among all names in alphabetical order, so comparing numbers compares names. Terms are
32-bit integers in arrays: `array.array` has no need of NumPy, and whatever reads buffers can read it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, repeat
from os import PathLike
from typing import NamedTuple

from bilevel.compiled import find
from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, Problem
from bilevel.symbolic.pddl_problem import no_garbage_collection

NUMBER = "i"  # the type code of arrays: C's int


@dataclass(frozen=True)
class Names:
    """The names of all objects by number, as one text in which each is followed by a newline."""

    text: bytes

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Return these names, packed."""
        return cls("".join(f"{name}\n" for name in names).encode())

    @cached_property
    def listed(self) -> list[str]:
        """The names, one by one."""
        return self.text.decode("utf-8").split("\n")[:-1]

    def has(self, name: str) -> bool:
        """Return whether a name is among them."""
        return self.text.startswith(f"{name}\n".encode()) or f"\n{name}\n".encode() in self.text

    def number(self, name: str) -> int:
        """The number of one name, which must be there; for many, take `numbers`."""
        if self.text.startswith(f"{name}\n".encode()):
            return 0
        return self.text.count(b"\n", 0, self.text.index(f"\n{name}\n".encode())) + 1

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {name: number for number, name in enumerate(self.listed)}


class Rows(NamedTuple):
    """Facts of one predicate in ascending order, none twice: how many, and the terms of one after another."""

    size: int
    terms: array[int]


@dataclass(frozen=True)
class PackedProblem:
    """A problem as integers; `types` gives each object's place in `type_names`.

    `names` has the domain's constants, too; `declared` are the objects without them, in the order of the file. `state`
    and `goal` have rows for each predicate of the domain.
    """

    name: str
    domain_name: str
    names: Names
    type_names: tuple[str, ...]
    types: array[int]
    declared: array[int]
    state: Mapping[str, Rows]
    goal: Mapping[str, Rows]

    @cached_property
    def unpacked(self) -> Problem:
        """The ordinary problem, which is made when it is first asked for."""
        with no_garbage_collection():
            return Problem(self.name, self.domain_name, self.objects, self._facts(self.state), self._facts(self.goal))

    @cached_property
    def objects(self) -> dict[str, str]:
        """The objects with their types, without the domain's constants."""
        names = self.names.listed
        return {names[number]: self.type_names[self.types[number]] for number in self.declared}

    def all_objects(self, domain: Domain) -> dict[str, str]:
        """The domain's constants and the problem's objects, with their types."""
        return {**domain.constants, **self.objects}

    @property
    def goals(self) -> int:
        """How many facts the goal has."""
        return sum(rows.size for rows in self.goal.values())

    def _facts(self, relations: Mapping[str, Rows]) -> Facts:
        make = partial(tuple.__new__, Atom)  # which takes half the time of calling Atom
        atoms = (map(make, zip(repeat(name), self._terms(rows), strict=False)) for name, rows in relations.items())
        return frozenset(chain.from_iterable(atoms))

    def _terms(self, rows: Rows) -> Iterable[tuple[str, ...]]:
        words = list(map(self.names.listed.__getitem__, rows.terms))
        arity = len(words) // rows.size if rows.size else 0
        return zip(*(words[place::arity] for place in range(arity)), strict=True) if arity else repeat((), rows.size)


def read_packed(path: str | PathLike[str], domain: Domain) -> PackedProblem | None:
    """The problem of a file; `None` without the compiled parts, and where only `read_problem` can read or refuse it."""
    reader, data = find("bilevel.symbolic._reading"), contents_of(path)
    return None if reader is None or data is None else reader.packed_problem(data, domain)


def contents_of(path: str | PathLike[str]) -> bytes | None:
    """The bytes of a file, or `None` where they cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def pack(problem: Problem, domain: Domain) -> PackedProblem:
    """The problem, which has no negative goal, as integers."""
    objects = problem.all_objects(domain)
    names = Names.of(sorted(objects))
    type_names = types_of(domain)
    return PackedProblem(
        problem.name,
        problem.domain_name,
        names,
        type_names,
        array(NUMBER, [type_names.index(objects[name]) for name in names.listed]),
        array(NUMBER, [names.numbers[name] for name in problem.objects]),
        _relations(problem.state, domain, names),
        _relations(problem.goal, domain, names),
    )


def types_of(domain: Domain) -> tuple[str, ...]:
    """The names of the domain's types, by which packed problems number them."""
    return tuple(dict.fromkeys((ROOT_TYPE, *domain.types)))


def _relations(facts: Facts, domain: Domain, names: Names) -> dict[str, Rows]:
    rows: dict[str, list[list[int]]] = {predicate: [] for predicate in domain.predicates}
    for predicate, terms in facts:
        rows[predicate].append([names.numbers[term] for term in terms])
    return {p: Rows(len(r), array(NUMBER, [term for row in sorted(r) for term in row])) for p, r in rows.items()}

"""Problems as integers: no Python object for each object and fact, so that millions take little time and space.

An object's number is its place among all names in alphabetical order, so comparing numbers compares names. Terms are
32-bit integers in arrays: `array.array` has no need of NumPy, and whatever reads buffers can read it.
"""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice, repeat
from os import PathLike
from typing import NamedTuple, overload

from bilevel.compiled import find
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, Domain, Facts, Problem

NUMBER = "i"  # the type code of arrays: C's int


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Building millions of tuples sets off the cyclic collector again and again, for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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


@dataclass(frozen=True)
class PackedActions(Sequence[Action]):
    """The actions of a plan as integers: the number of each one's schema, and the arguments of one after another.

    A schema's number is its place in the domain. Whoever wants an ordinary action gets one.
    """

    domain: Domain
    names: Names
    schemas: array[int]
    arguments: array[int]

    @cached_property
    def listed(self) -> list[Action]:
        """The actions, one by one."""
        words = map(self.names.listed.__getitem__, self.arguments)
        schemas = [(schema.name, len(schema.parameters)) for schema in self.domain.schemas.values()]
        steps = map(schemas.__getitem__, self.schemas)
        return [Action(name, tuple(islice(words, arity))) for name, arity in steps]

    @overload
    def __getitem__(self, place: int) -> Action: ...

    @overload
    def __getitem__(self, place: slice) -> list[Action]: ...

    def __getitem__(self, place: int | slice) -> Action | list[Action]:
        return self.listed[place]

    def __len__(self) -> int:
        return len(self.schemas)


def read_packed(path: str | PathLike[str], domain: Domain) -> PackedProblem | None:
    """Return the problem of a file; `None` where only `read_problem` can read or refuse it."""
    try:
        with open(path, "rb") as file:
            return packed_problem(file.read(), domain)
    except OSError:
        return None


def packed_problem(data: bytes, domain: Domain) -> PackedProblem | None:
    """Return the problem of a text; `None` without the compiled parts, and where the text is not plainly written."""
    reader = find("bilevel.native.text")
    return reader.packed_problem(data, domain) if reader else None


def types_of(domain: Domain) -> tuple[str, ...]:
    """The names of the domain's types, by which packed problems number them."""
    return tuple(dict.fromkeys((ROOT_TYPE, *domain.types)))

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
from itertools import islice, repeat
from typing import Any, NamedTuple

from bilevel.native import find
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

    def number(self, name: str) -> int | None:
        """The number of one name, found without a list of all; `None` where it is not among them."""
        line = f"{name}\n".encode()
        if self.text.startswith(line):
            return 0
        place = self.text.find(b"\n" + line)
        return None if place < 0 else self.text.count(b"\n", 0, place) + 1


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

    @property
    def objects(self) -> dict[str, str]:
        """The objects with their types, without the domain's constants."""
        names = self.names.listed
        return {names[number]: self.type_names[self.types[number]] for number in self.declared}

    def _facts(self, relations: Mapping[str, Rows]) -> Facts:
        make, atoms = partial(tuple.__new__, Atom), set[Atom]()  # which takes half the time of calling Atom
        for predicate, rows in relations.items():
            words = map(self.names.listed.__getitem__, rows.terms)
            arity = len(rows.terms) // rows.size if rows.size else 0
            terms = zip(*[words] * arity, strict=True) if arity else repeat((), rows.size)
            atoms.update(map(make, zip(repeat(predicate), terms, strict=False)))
        return frozenset(atoms)


@dataclass(frozen=True)
class PackedActions(Sequence[Action]):
    """The actions of a plan as integers: the number of each one's schema, and the arguments of one after another.

    A schema's number is its place in the domain. Whoever wants an ordinary action gets one.
    """

    domain: Domain
    names: Names
    schemas: array[int]
    arguments: array[int]

    def __iter__(self) -> Iterator[Action]:
        words = map(self.names.listed.__getitem__, self.arguments)
        schemas = [(schema.name, len(schema.parameters)) for schema in self.domain.schemas.values()]
        for name, arity in map(schemas.__getitem__, self.schemas):
            yield Action(name, tuple(islice(words, arity)))

    @cached_property
    def listed(self) -> list[Action]:
        """The actions, one by one."""
        return list(self)

    def __getitem__(self, place: Any) -> Any:
        return self.listed[place]

    def __len__(self) -> int:
        return len(self.schemas)


def packed_problem(data: bytes, domain: Domain) -> PackedProblem | None:
    """Return the problem of a text; `None` without the compiled parts, and where the text is not plainly written."""
    reader = find("bilevel.native.text")
    return reader.packed_problem(data, domain) if reader and not domain.axioms else None


def types_of(domain: Domain) -> tuple[str, ...]:
    """The names of the domain's types, by which packed problems number them."""
    return tuple(dict.fromkeys((ROOT_TYPE, *domain.types)))

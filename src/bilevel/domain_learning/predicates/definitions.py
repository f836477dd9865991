"""What a predicate means: comparisons as Python text, for a person to read and for whole episodes to be measured by.

The one text serves both: its variables are things in a scene there, and here arrays of all timesteps and objects.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from types import CodeType
from typing import Any

import numpy as np

from bilevel.domain_learning.predicates.thresholds import Floats
from bilevel.domain_learning.predicates.tracks import Bools, Track
from bilevel.symbolic.domain import Atom, Facts
from bilevel.symbolic.domain import Parameter as DomainParameter
from bilevel.symbolic.domain import Predicate as DomainPredicate

AGENT = "agent"


@dataclass(frozen=True)
class Constant:
    """A named number of a definition, and what the data says about it."""

    value: float
    comment: str


@dataclass(frozen=True)
class Quantified:
    """That another predicate holds of nothing, or of `some` thing.

    With a `position`, these are things together with the argument of the number `about` at that place.
    """

    of: str
    position: int | None = None
    about: int = 0
    some: bool = False


@dataclass(frozen=True)
class Definition:
    """A predicate: all its `tests` are true, and so is what is said of others.

    A `static` one never changes within an episode; it is for goals alone.
    """

    name: str
    types: tuple[str, ...]
    tests: tuple[str, ...] = ()
    others: tuple[Quantified, ...] = ()
    constants: Mapping[str, Constant] = field(default_factory=dict, hash=False)
    comment: str = ""
    static: bool = False
    held: bool = False  # whether it says that a thing is in the hand
    is_weak: bool = False  # whether it often holds by chance
    word: str = ""  # what it would be called if no other were

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return variables_of(self.types)

    @property
    def signature(self) -> str:
        """The name with what it is about, such as on(block, place)."""
        return f"{self.name}({', '.join(self.variables)})"

    @property
    def predicate(self) -> DomainPredicate:
        """The predicate of a domain that it defines."""
        parameters = (DomainParameter(f"?{one}", kind) for one, kind in zip(self.variables, self.types, strict=True))
        return DomainPredicate(self.name, tuple(parameters))

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the predicates that it is defined by."""
        return tuple(dict.fromkeys(other.of for other in self.others))

    def with_constants(self, constants: Mapping[str, Constant]) -> Definition:
        """Return the same with further named numbers."""
        return replace(self, constants={**self.constants, **constants})

    def renamed(self, names: Mapping[str, str]) -> Definition:
        """Return the same with other names of predicates."""
        others = tuple(replace(other, of=names.get(other.of, other.of)) for other in self.others)
        name = names.get(self.name, self.name)
        return replace(self, name=name, word=self.word if name == self.name else name, others=others)


def variables_of(types: Sequence[str]) -> tuple[str, ...]:
    """Return what things of these types are called in Python: after their types, a second one `other_…`."""
    names: list[str] = []
    for kind in types:
        name = identifier(kind)
        names.append(f"other_{name}" if name in names else name)
    return tuple(names)


def identifier(text: str) -> str:
    """Return a name for Python that is like a given one."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text) or "_"
    return f"{name}_" if name[0].isdigit() or keyword.iskeyword(name) or name == AGENT else name


def feature(thing: str, name: str) -> str:
    """Return the Python text for a feature of a thing."""
    plain = name.isidentifier() and not keyword.iskeyword(name) and name not in ("name", "type")
    return f"{thing}.{name}" if plain else f'{thing}["{name}"]'


class _Columns:
    """Stands for a thing in a text that is evaluated for all timesteps and objects at once."""

    def __init__(self, columns: Mapping[str, int], values: Floats, numbers: Floats) -> None:
        self._columns, self._values, self._numbers = columns, values, numbers

    def __getattr__(self, name: str) -> Floats:
        return self[name]

    def __getitem__(self, name: str) -> Floats:
        return self._values[..., self._columns[name]]


def _remainder(value: Floats, whole: float) -> Floats:
    return np.asarray(value - whole * np.round(value / whole))


_FUNCTIONS: Mapping[str, Any] = {
    "abs": np.abs,
    "hypot": lambda *parts: np.sqrt(sum(part**2 for part in parts)),
    "remainder": _remainder,
    "number": lambda thing: thing._numbers,
}


def _number(name: str) -> float:
    """Return the number at the end of a name, or not a number."""
    digits = name[len(name.rstrip("0123456789")) :]
    return float(digits or "nan")


@lru_cache(maxsize=1000)
def _compiled(text: str) -> CodeType:
    return compile(text, "<definition>", "eval")


def measure(definition: Definition, track: Track, known: Mapping[str, Bools]) -> Bools:
    """(timesteps, objects of the first type, …): when a predicate holds; `known` has what it is defined by."""
    rows = [track.roster.rows(kind) for kind in definition.types]
    shape = (track.length, *(row.stop - row.start for row in rows))
    names: dict[str, Any] = {name: constant.value for name, constant in definition.constants.items()}
    ones = (1,) * len(rows)
    names[AGENT] = _Columns(
        track.spec.agent_column, track.agent.reshape(track.length, *ones, track.agent.shape[-1]), np.zeros(0)
    )
    holds = np.ones(shape, bool)
    for place, (variable, row) in enumerate(zip(definition.variables, rows, strict=True)):
        spread = (track.length, *(row.stop - row.start if place == here else 1 for here in range(len(rows))))
        numbers = np.array([_number(name) for name in track.roster.names[row]]).reshape(spread[1:])
        names[variable] = _Columns(
            track.spec.column, track.features[:, row].reshape(*spread, track.features.shape[-1]), numbers
        )
        holds &= track.visible[:, row].reshape(spread)
    for test in definition.tests:
        holds &= eval(_compiled(test), {**_FUNCTIONS, **names})
    for other in definition.others:
        of = known[other.of]
        kept = () if other.position is None else (1 + other.position,)
        any_of = of.any(axis=tuple(axis for axis in range(1, of.ndim) if axis not in kept))
        where = (any_of.shape[-1] if kept and other.about == here else 1 for here in range(len(rows)))
        holds &= any_of.reshape(track.length, *where) == other.some
    if len(definition.types) == 2 and definition.types[0] == definition.types[1]:
        holds &= ~np.eye(shape[1], dtype=bool)
    return holds


def in_order(definitions: Iterable[Definition]) -> list[Definition]:
    """Return definitions so that each comes after those that it is defined by."""
    left, done = {definition.name: definition for definition in definitions}, dict[str, Definition]()
    while left:
        ready = [one for one in left.values() if not any(name in left for name in one.needs)]
        done |= {one.name: one for one in ready}
        left = {name: one for name, one in left.items() if name not in done}
    return list(done.values())


def measure_all(definitions: Iterable[Definition], track: Track) -> dict[str, Bools]:
    """Return when each predicate holds, by their names."""
    known: dict[str, Bools] = {}
    for definition in in_order(definitions):
        known[definition.name] = measure(definition, track, known)
    return known


def states_of(definitions: Sequence[Definition], track: Track, known: Mapping[str, Bools]) -> list[Facts]:
    """Return the facts of every timestep; timesteps without a change share them."""
    columns, atoms = [], list[Atom]()
    for definition in definitions:
        names = [track.roster.of_type(kind) for kind in definition.types]
        found = known[definition.name]
        ever = found.any(axis=0)
        for index in map(tuple, np.argwhere(ever)) if definition.types else [()] * bool(ever):
            atoms.append(Atom(definition.name, tuple(names[place][row] for place, row in enumerate(index))))
            always = (slice(None), *index)
            columns.append(found[always])
    table = np.stack(columns, axis=1) if columns else np.zeros((track.length, 0), bool)
    states: list[Facts] = []
    changed = np.append(True, (table[1:] != table[:-1]).any(axis=1))
    for _, group in groupby(np.cumsum(changed)):
        length = len(list(group))
        now = frozenset(atom for atom, holds in zip(atoms, table[len(states)], strict=True) if holds)
        states += [now] * length
    return states

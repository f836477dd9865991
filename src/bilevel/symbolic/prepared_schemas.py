"""Action schemas made ready for being carried out millions of times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from bilevel.symbolic.domain import EQUALITY, Atom, Facts, Outcome, Schema, is_variable, schema_atoms


class Template(NamedTuple):
    """An atom of a schema; `terms` picks its terms from the values of parameters, constants and nature's choices."""

    predicate: str
    terms: Callable[[tuple[str, ...]], tuple[str, ...]]


def filled(templates: list[Template], values: tuple[str, ...]) -> list[Atom]:
    """The templates' atoms for these values."""
    make = tuple.__new__  # half the time of calling Atom
    return [make(Atom, (predicate, terms(values))) for predicate, terms in templates]


def templates(atoms: Iterable[Atom], positions: Mapping[str, int]) -> list[Template]:
    return [Template(atom.predicate, _picker([positions[term] for term in atom.terms])) for atom in sorted(atoms)]


def _picker(positions: list[int]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Picks the values at these positions, in C; a slice because one position alone would not give a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    start = positions[0] if positions else 0
    return itemgetter(slice(start, start + len(positions)))


class PreparedSchema:
    """A schema with its conditions and effects as templates."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.is_deterministic = schema.is_deterministic
        self.constants = tuple(sorted({t for a in schema_atoms(schema) for t in a.terms if not is_variable(t)}))
        names = [*(parameter.name for parameter in schema.parameters), *self.constants]
        self.positions = {name: position for position, name in enumerate(names)}
        self.needed = self.conditions(schema.precondition, equalities=False)
        self.barred = self.conditions(schema.negative_precondition, equalities=False)
        self.equal = self.conditions(schema.precondition, equalities=True)
        self.unequal = self.conditions(schema.negative_precondition, equalities=True)
        self.has_equalities = bool(self.equal or self.unequal)
        self.effects = [self.effect(outcome) for outcome in schema.outcomes]
        self.fitting_types: set[tuple[str | None, ...]] = set()  # of arguments, as far as met and found to fit

    def conditions(self, atoms: Facts, equalities: bool) -> list[Template]:
        return templates((atom for atom in atoms if (atom.predicate == EQUALITY) == equalities), self.positions)

    def effect(self, outcome: Outcome) -> tuple[list[Template], list[Template]]:
        """What the outcome adds and deletes; nature's choices come after the constants."""
        start = len(self.positions)
        chosen = {variable.name: start + i for i, variable in enumerate(outcome.chosen)}
        positions = {**self.positions, **chosen}
        return templates(outcome.add, positions), templates(outcome.delete, positions)

    def equalities_hold(self, values: tuple[str, ...]) -> bool:
        equal, unequal = filled(self.equal, values), filled(self.unequal, values)
        return all(a == b for _, (a, b) in equal) and all(a != b for _, (a, b) in unequal)

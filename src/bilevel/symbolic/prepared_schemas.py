"""Action schemas made ready for being carried out millions of times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Outcome, Schema, is_variable, schema_atoms


class Template(NamedTuple):
    """An atom of a schema; its terms are positions among the values of parameters, constants and nature's choices."""

    predicate: str
    positions: tuple[int, ...]


def filled(templates: list[Template], values: tuple[str, ...]) -> list[Atom]:
    """The templates' atoms for these values."""
    make = tuple.__new__  # half the time of calling Atom
    return [make(Atom, (predicate, tuple([values[i] for i in positions]))) for predicate, positions in templates]


def templates(atoms: Iterable[Atom], positions: Mapping[str, int]) -> list[Template]:
    return [Template(atom.predicate, tuple(positions[term] for term in atom.terms)) for atom in sorted(atoms)]


class PreparedSchema:
    """A schema with its conditions and effects as templates and the types that fit each parameter, out of `kinds`."""

    def __init__(self, schema: Schema, domain: Domain, kinds: Iterable[str]) -> None:
        self.schema = schema
        self.constants = tuple(sorted({t for a in schema_atoms(schema) for t in a.terms if not is_variable(t)}))
        names = [*(parameter.name for parameter in schema.parameters), *self.constants]
        self.positions = {name: position for position, name in enumerate(names)}
        self.needed = self.conditions(schema.precondition, equalities=False)
        self.barred = self.conditions(schema.negative_precondition, equalities=False)
        self.equal = self.conditions(schema.precondition, equalities=True)
        self.unequal = self.conditions(schema.negative_precondition, equalities=True)
        self.has_equalities = bool(self.equal or self.unequal)
        self.effects = [self.effect(outcome) for outcome in schema.outcomes]
        self.fitting = [frozenset(k for k in kinds if domain.is_subtype(k, p.type)) for p in schema.parameters]

    def conditions(self, atoms: Facts, equalities: bool) -> list[Template]:
        return templates((atom for atom in atoms if (atom.predicate == EQUALITY) == equalities), self.positions)

    def effect(self, outcome: Outcome) -> tuple[list[Template], list[Template]]:
        """What the outcome adds and deletes; nature's choices come after the constants."""
        start = len(self.positions)
        chosen = {variable.name: start + i for i, variable in enumerate(outcome.chosen)}
        positions = {**self.positions, **chosen}
        return templates(outcome.add, positions), templates(outcome.delete, positions)

    def accepts(self, arguments: tuple[str, ...], objects: Mapping[str, str]) -> bool:
        """Whether there are as many arguments as parameters, and all are known and of a fitting type."""
        if len(arguments) != len(self.fitting):
            return False
        misfits = [a for a, kinds in zip(arguments, self.fitting, strict=True) if objects.get(a) not in kinds]
        return not misfits

    def equalities_hold(self, values: tuple[str, ...]) -> bool:
        return all(values[i] == values[j] for _, (i, j) in self.equal) and all(
            values[i] != values[j] for _, (i, j) in self.unequal
        )

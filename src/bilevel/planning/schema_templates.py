"""Schemas made ready for grounding: atoms become places in a tuple of values, which makes an instance quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import NamedTuple

from bilevel.symbolic.domain import EQUALITY, Atom, Outcome, Schema, is_variable

Values = tuple[str, ...]


class AtomTemplate(NamedTuple):
    """An atom of a schema: where its terms stand among the schema's values, and a function that picks them out."""

    predicate: str
    places: tuple[int, ...]
    pick: Callable[[Values], Values]


class OutcomeTemplate(NamedTuple):
    """What an outcome adds and deletes; nature's variables stand among the values after the parameters."""

    outcome: Outcome
    add: list[AtomTemplate]
    delete: list[AtomTemplate]


class SchemaTemplate:
    """A schema over values: first the constants that it names, then the parameters, then nature's variables."""

    def __init__(self, schema: Schema, objects_of: Callable[[str], Mapping[str, None]]) -> None:
        self.schema = schema
        outcomes = [atom for outcome in schema.outcomes for atom in (*outcome.add, *outcome.delete)]
        atoms = sorted({*schema.precondition, *schema.negative_precondition, *outcomes})
        self.constants = tuple(dict.fromkeys(term for a in atoms for term in a.terms if not is_variable(term)))
        names = [*self.constants, *(parameter.name for parameter in schema.parameters)]
        place = {name: index for index, name in enumerate(names)}
        self.allowed = [{constant: None} for constant in self.constants]
        self.allowed += [dict(objects_of(parameter.type)) for parameter in schema.parameters]
        split = [(atom, atom.predicate == EQUALITY) for atom in atoms]
        plain, equal = ([atom for atom, is_equal in split if is_equal is kind] for kind in (False, True))
        self.positive = [_template(atom, place) for atom in plain if atom in schema.precondition]
        self.negative = [_template(atom, place) for atom in plain if atom in schema.negative_precondition]
        self.equal = [_template(atom, place).places for atom in equal if atom in schema.precondition]
        self.unequal = [_template(atom, place).places for atom in equal if atom in schema.negative_precondition]
        self.outcomes = []
        for outcome in schema.outcomes:
            chosen = {variable.name: len(names) + i for i, variable in enumerate(outcome.chosen)}
            add, delete = ([_template(a, place | chosen) for a in its] for its in (outcome.add, outcome.delete))
            self.outcomes.append(OutcomeTemplate(outcome, add, delete))
        self.open: list[str | None] = [*self.constants, *(None for _ in schema.parameters)]
        for a, b in self.equal:  # `(= ?x table)` settles ?x
            for one, other in ((a, b), (b, a)):
                value = self.open[other] if other < len(self.constants) else None
                if one >= len(self.constants) and value in self.allowed[one]:
                    self.open[one] = value

    def fits(self, values: Values) -> bool:
        """Whether the equations and inequations hold."""
        return all(values[a] == values[b] for a, b in self.equal) and all(
            values[a] != values[b] for a, b in self.unequal
        )


def _template(atom: Atom, place: Mapping[str, int]) -> AtomTemplate:
    places = tuple(place[term] for term in atom.terms)
    if len(places) > 1:
        return AtomTemplate(atom.predicate, places, itemgetter(*places))
    only = slice(places[0], places[0] + 1) if places else slice(0, 0)
    return AtomTemplate(atom.predicate, places, itemgetter(only))

"""What can be said about the objects of a change: the literals over its variables, and over others linked to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from bilevel.domain_learning.frames import ancestors
from bilevel.domain_learning.from_plans.rows import Rows
from bilevel.domain_learning.from_plans.steps import Steps, Table, type_atom
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, Domain

NEW = "?new"  # a variable that is about to be added
MOST_VARIABLES = 8  # of a change and of what is linked to its objects


def narrowest(kinds: Sequence[str], frame: Domain) -> str:
    """Return the type that is furthest below the others."""
    return max(kinds, key=lambda kind: (len(ancestors(frame, kind)), kind))


def least_type(table: Table, variable: str, steps: Steps) -> str:
    """Return the narrowest type of all objects that the variable stands for in a table."""
    kinds = [kind for kind in (*steps.frame.types, ROOT_TYPE) if steps.holds(table, type_atom(variable, kind)).all()]
    return narrowest(kinds, steps.frame)


def declared_types(atoms: Iterator[Atom] | Sequence[Atom], frame: Domain) -> dict[str, str]:
    """Return for each term the narrowest type that the predicates of the atoms ask of it."""
    asked: dict[str, list[str]] = {}
    for atom in atoms:
        for term, parameter in zip(atom.terms, frame.predicates[atom.predicate].parameters, strict=True):
            asked.setdefault(term, []).append(parameter.type)
    return {term: narrowest(kinds, frame) for term, kinds in asked.items()}


def related(one: str, other: str, frame: Domain) -> bool:
    """Return whether one type is above the other."""
    return frame.is_subtype(one, other) or frame.is_subtype(other, one)


def atoms_over(types: Mapping[str, str], frame: Domain, fresh: Sequence[str] = ()) -> Iterator[Atom]:
    """Yield all atoms over the variables and the constants whose types fit; `fresh` variables may be of any type."""
    terms = {**types, **frame.constants}
    for predicate in frame.predicates.values():
        fitting = [
            [*(term for term, kind in terms.items() if related(kind, parameter.type, frame)), *fresh]
            for parameter in predicate.parameters
        ]
        for chosen in product(*fitting):
            new = [term for term in dict.fromkeys(chosen) if term in fresh]
            if new == list(fresh[: len(new)]):
                yield Atom(predicate.name, chosen)


def equalities(types: Mapping[str, str], frame: Domain) -> Iterator[Atom]:
    """Yield the equalities between two variables, or a variable and a constant, whose types fit."""
    variables = list(types)
    for i, one in enumerate(variables):
        for other, kind in [*((v, types[v]) for v in variables[:i]), *frame.constants.items()]:
            if related(types[one], kind, frame):
                yield Atom(EQUALITY, (one, other))


def linked(rows: Rows, types: Mapping[str, str], steps: Steps) -> tuple[Rows, dict[str, str], list[Atom]]:
    """Add variables whose objects are determined: in each seen row a fact names exactly one, in others one at most.

    Where there is none, the variable stands for no object, and nothing holds of it. Returns the rows, the added
    variables' types, and the facts.
    """
    added, links = dict[str, str](), list[Atom]()
    for _ in range(2):
        for atom in list(atoms_over({**types, **added}, steps.frame, [NEW])):
            if NEW not in atom.terms or len(atom.terms) == 1 or len(types) + len(added) >= MOST_VARIABLES:
                continue
            table, origin = steps.join(rows.table, atom)
            found = np.bincount(origin, minlength=rows.size)
            if not (found[rows.seen] == 1).all() or (found > 1).any():
                continue
            objects = np.full(rows.size, steps.nothing)
            objects[origin] = table[NEW]
            if any(np.array_equal(objects, rows.table[variable]) for variable in (*types, *added)):
                continue
            name = f"?{chr(ord('a') + len(added))}"
            links.append(Atom(atom.predicate, tuple(name if term == NEW else term for term in atom.terms)))
            added |= {name: declared_types(links[-1:], steps.frame)[name]}
            rows = Rows({**rows.table, name: objects}, rows.counts, rows.visits)
    return rows, added, links

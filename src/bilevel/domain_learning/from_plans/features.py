"""Statements that hold in some rows and not in others: literals over variables, and facts about some further object."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.from_plans.language import atoms_over, declared_types, equalities
from bilevel.domain_learning.from_plans.rows import Rows, joined
from bilevel.domain_learning.from_plans.steps import Mask, Numbers, Steps, Table, is_type, type_atom
from bilevel.planning.grounding import Literal
from bilevel.symbolic.domain import EQUALITY, Atom, is_variable

WIDTH = 30  # how many statements about further objects are made longer, those that leave out most
LONGEST = 4  # facts in such a statement
SHORT = 2  # facts in one that holds of a part of the seen rows only
MOST_TRIED = 300  # seen rows, and as many others, on which such statements are tried
LARGEST = 100  # choices of further objects per row, on average, beyond which a statement is not made longer
ROW = "row"  # the name of a column of the rows' numbers

Columns = NDArray[np.bool_]  # features by rows


@dataclass(frozen=True)
class Feature:
    """A statement, the rows in which it holds, and the types of the further variables in it.

    What cannot be said in a condition (that there is no such object, or that one is not of a type) is not `sayable`.
    """

    literals: tuple[Literal, ...]
    holds: Mask
    types: Mapping[str, str]
    sayable: bool = True


def plain_features(rows: Rows, types: Mapping[str, str], steps: Steps, out: Mask) -> Iterator[Feature]:
    """Yield literals over the variables, and facts about another object that say the same as that one is absent."""
    literals = list(literal_features(rows, types, steps))
    yield from literals
    absent = {one.holds.tobytes() for one in literals if not one.literals[0].present}
    facts = _further_features(rows, types, steps, out, longest=1, always=False)
    yield from (one for one in facts if one.sayable and one.holds.tobytes() in absent)


def literal_features(rows: Rows, types: Mapping[str, str], steps: Steps) -> Iterator[Feature]:
    """Yield each literal over the variables that holds in some rows and not in others, and its opposite.

    Nothing is said of a variable where it stands for no object.
    """
    kinds = (type_atom(variable, kind) for variable in types for kind in steps.frame.types)
    for atom in [*atoms_over(types, steps.frame), *equalities(types, steps.frame), *kinds]:
        there = np.ones(rows.size, np.bool_)
        for variable in filter(is_variable, atom.terms):
            there &= rows.table[variable] != steps.nothing
        holds = steps.holds(rows.table, atom) & there
        for present, where in ((True, holds), (False, there & ~holds)):
            if where.any() and not where.all():
                yield Feature((Literal(atom, present),), where, {}, sayable=present or not is_type(atom))
                yield Feature((Literal(atom, present),), ~where, {}, sayable=False)


@dataclass(frozen=True)
class Branch:
    """A statement about further objects while it is made: every way to choose them, and of which row each is."""

    atoms: tuple[Atom, ...]
    types: Mapping[str, str]
    table: Table
    origin: Numbers
    holds: Mask


def lasting_features(rows: Rows, types: Mapping[str, str], steps: Steps, out: Mask) -> Iterator[Feature]:
    """Yield statements about further objects that hold in all seen rows, and their opposites."""
    yield from _further_features(rows, types, steps, out, LONGEST, always=True)


def telling_features(rows: Rows, types: Mapping[str, str], steps: Steps, out: Mask) -> Iterator[Feature]:
    """Yield short statements about further objects that may hold in a part of the seen rows, and their opposites."""
    yield from _further_features(rows, types, steps, out, SHORT, always=False)


def _further_features(
    rows: Rows, types: Mapping[str, str], steps: Steps, out: Mask, longest: int, always: bool
) -> Iterator[Feature]:
    """Yield statements that there are objects of which some facts hold together; they tell most of those tried.

    With `always` they hold in all seen rows. They are tried on some rows only, none of them `out`.
    """
    some = rows[~out].thinned(MOST_TRIED)
    beam = [Branch((), {}, some.table, np.arange(some.size), np.ones(some.size, np.bool_))]
    tried: set[frozenset[Atom]] = set()
    for _ in range(longest):
        found = [longer for branch in beam for longer in _longer(branch, some, types, steps, always, tried)]
        found.sort(key=lambda one: (_told(one.holds, some), -len(one.origin)), reverse=True)
        beam = found[:WIDTH]
        for branch in beam:
            holds = np.zeros(rows.size, np.bool_)
            holds[joined({**rows.table, ROW: np.arange(rows.size)}, branch.atoms, steps)[ROW]] = True
            if not holds.all() and (holds[rows.seen].all() or not always):
                literals = tuple(map(Literal, branch.atoms))
                yield Feature(literals, holds, branch.types)
                yield Feature(literals, ~holds, branch.types, sayable=False)


def _told(holds: Mask, rows: Rows) -> float:
    """Return how much a statement tells of where the change is seen: the mutual information, in nats."""
    seen, visits = rows.counts, rows.visits
    total = 0.0
    for mask in (holds, ~holds):
        count, size = float(seen[mask].sum()), float(visits[mask].sum())
        rate, usual = count / max(size, 1.0), float(seen.sum() / visits.sum())
        for part, its, all_ in ((count, rate, usual), (size - count, 1 - rate, 1 - usual)):
            total += part * log(its / all_) if part > 0 and all_ > 0 else 0.0
    return total


def _longer(
    branch: Branch, rows: Rows, types: Mapping[str, str], steps: Steps, always: bool, tried: set[frozenset[Atom]]
) -> Iterator[Branch]:
    """Yield the statement with one more fact; with `always`, as long as it holds in all seen rows."""
    fresh = [f"?z{len(branch.types) + i}" for i in range(1 if branch.types else 2)]
    for atom in atoms_over({**types, **branch.types}, steps.frame, fresh):
        new = [term for term in dict.fromkeys(atom.terms) if term in fresh]
        atoms = frozenset([*branch.atoms, atom])
        if atoms in tried or atom in branch.atoms or not (new or any(term in branch.types for term in atom.terms)):
            continue
        tried.add(atoms)
        if new:
            table, places = steps.join(branch.table, atom)
        else:
            places = np.flatnonzero(steps.holds(branch.table, atom))
            table = {name: column[places] for name, column in branch.table.items()}
        origin = branch.origin[places]
        holds = np.zeros(rows.size, np.bool_)
        holds[origin] = True
        if (holds[rows.seen].all() or not always) and len(origin) <= LARGEST * rows.size:
            asked = declared_types([*branch.atoms, atom], steps.frame)
            kinds = {v: asked[v] for v in (*branch.types, *new)}
            yield Branch((*branch.atoms, atom), kinds, table, origin, holds)


def distinct(features: Iterable[Feature], own: Collection[str]) -> list[Feature]:
    """Return the features without those that hold where a plainer one does.

    Plain is what can be said, with facts that hold rather than ones that do not or equality, about the change's `own`
    variables, in few literals.
    """

    def plainness(feature: Feature) -> tuple[bool, int, bool, int, int, list[tuple[tuple[str, ...], str]]]:
        absent = sum(not literal.present for literal in feature.literals)
        equal = feature.literals[0].atom.predicate == EQUALITY
        others = len(variables_of(feature.literals).difference(own))
        words = [(literal.atom.terms, literal.atom.predicate) for literal in feature.literals]
        return not feature.sayable, absent, equal, others, len(feature.literals), words

    kept: dict[bytes, Feature] = {}
    for feature in sorted(features, key=plainness):
        kept.setdefault(np.packbits(feature.holds).tobytes(), feature)
    return list(kept.values())


def matrix(features: Iterable[Feature], rows: Rows) -> Columns:
    """Return in which rows each feature holds, (features, rows)."""
    columns = [feature.holds for feature in features]
    return np.array(columns, np.bool_).reshape(len(columns), rows.size)


def variables_of(literals: Iterable[Literal]) -> set[str]:
    """Return the variables of these literals."""
    return {term for literal in literals for term in literal.atom.terms if is_variable(term)}

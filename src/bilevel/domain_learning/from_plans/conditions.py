"""Under which conditions a change happens: clauses that hold wherever it was seen, and nowhere where it cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count

import numpy as np

from bilevel.domain_learning.from_plans.effects import Change
from bilevel.domain_learning.from_plans.features import (
    Columns,
    Feature,
    distinct,
    lasting_features,
    literal_features,
    matrix,
    plain_features,
    telling_features,
)
from bilevel.domain_learning.from_plans.language import (
    atoms_over,
    declared_types,
    equalities,
    least_type,
    linked,
    related,
)
from bilevel.domain_learning.from_plans.regions import impossible, is_open
from bilevel.domain_learning.from_plans.rows import Rows, Weights, rows_of
from bilevel.domain_learning.from_plans.steps import STATE, Mask, Numbers, Steps, is_type, type_atom
from bilevel.planning.grounding import Literal
from bilevel.symbolic.domain import EQUALITY, Atom, is_variable
from bilevel.symbolic.semantics import substitute

MOST_ROWS = 1500  # seen ones, and as many others, that are looked at for one change
TOLL = 0.02  # the share of rows for which one more literal is not worth it


@dataclass(frozen=True)
class Clause:
    """One condition of a change: literals that all hold, and the types of the further variables in them."""

    literals: tuple[Literal, ...]
    types: Mapping[str, str]
    count: int  # of the steps to which it applies


def clauses_of(change: Change, steps: Steps) -> list[Clause]:
    """Return the conditions of a change: one of them at least holds wherever it was seen.

    First comes what always held when it was seen, then what tells where it never is, and at last, where that is not one
    condition, what tells the parts of a split.
    """
    own = [variable for variable in change.variables if variable not in change.new]
    asked = declared_types([*change.add, *change.delete], steps.frame)
    types = {variable: asked[variable] for variable in own}
    always = _always(change, types, steps)
    rows, added, links = linked(rows_of(change, always, steps).thinned(MOST_ROWS), types, steps)
    types |= added
    study = _Study(rows, own, links)
    common = [*always, *study.common(plain_features(rows, types, steps, study.out))]
    study.look(literal_features(study.rows, types, steps))
    if study.is_open:
        common += study.common(lasting_features(study.rows, types, steps, study.out))
    common = _needed(_unified(common, change, steps), [], change, steps)
    if study.is_open:
        study.look(telling_features(study.rows, types, steps, study.out))
    parts = [_unified([*common, *literals], change, steps) for literals, _ in study.cover(study.features, study.out)]
    whole = [_needed(part, [one for one in common if one in part], change, steps) for part in parts]
    return [_clause(literals, change, steps) for literals in _without_covered(whole, change, steps)]


def _without_covered(clauses: list[list[Literal]], change: Change, steps: Steps) -> list[list[Literal]]:
    """Return the clauses without those that hold in no seen row but where others do."""
    where = [set(map(tuple, _distinct(literals, change, steps)[0].T.tolist())) for literals in clauses]
    for i in reversed(range(len(clauses))):
        if where[i] <= set[tuple[int, ...]]().union(*where[:i], *where[i + 1 :]):
            del clauses[i], where[i]
    return clauses


def _always(change: Change, types: Mapping[str, str], steps: Steps) -> list[Literal]:
    """Return what held of the change's objects each time that it was seen: facts, types, and that they differ."""
    table = change.table(steps)
    facts = [Literal(atom) for atom in atoms_over(types, steps.frame) if steps.holds(table, atom).all()]
    kinds = [Literal(type_atom(variable, least_type(table, variable, steps))) for variable in types]
    pairs = [atom for atom in equalities(types, steps.frame) if all(map(is_variable, atom.terms))]
    pairs = [atom for atom in pairs if not steps.holds(table, atom).any()]
    return [*facts, *kinds, *(Literal(atom, False) for atom in pairs)]


class _Study:
    """Rows, what can be said of them, and what is known: in which of them the change cannot happen."""

    def __init__(self, rows: Rows, own: Sequence[str], links: Sequence[Atom]) -> None:
        self.rows, self.own, self.links = rows, own, links
        self.out = np.zeros(rows.size, np.bool_)
        self.numbers = count()
        self.features: list[Feature] = []

    @property
    def is_open(self) -> bool:
        return is_open(self.rows, self.out)

    def common(self, found: Iterable[Feature]) -> list[Literal]:
        """Return literals that hold in every seen row and not where the change cannot happen; keep where they hold."""
        seen = self.rows.seen
        features = [one for one in distinct(found, self.own) if one.holds[seen].all() or not one.sayable]
        out = impossible(features, self.rows, self.out, largest=1)
        literals, held = next(self.cover(features, out & ~self.out))
        self.rows, self.out = self.rows[held], self.out[held]
        self.features = [replace(one, holds=one.holds[held]) for one in self.features]
        return literals

    def look(self, found: Iterable[Feature]) -> None:
        """Take these features into account, to find more rows in which the change cannot happen."""
        self.features = distinct([*self.features, *found], self.own)
        self.out = impossible(self.features, self.rows, self.out)

    def cover(self, features: Sequence[Feature], out: Mask) -> Iterator[tuple[list[Literal], Mask]]:
        """Yield clauses, and where they hold: together in every seen row, and in none that is out."""
        usable = [feature for feature in features if feature.sayable]
        columns = matrix(usable, self.rows)
        prices = np.array([TOLL * len(feature.literals) for feature in usable])
        left = self.rows.seen
        while left.any():
            chosen, held = _one_clause(columns, prices, self.rows, left, out)
            literals = [literal for i in chosen for literal in _apart(usable[i], next(self.numbers))]
            yield [*self._links_to(literals), *literals], held
            left = left & ~held

    def _links_to(self, literals: Iterable[Literal]) -> list[Literal]:
        """Return the facts that lead to the variables of the literals."""
        wanted, found = {term for literal in literals for term in literal.atom.terms}, list[Literal]()
        for link in reversed(self.links):
            if wanted.intersection(link.terms).difference(self.own):
                found.append(Literal(link))
                wanted.update(link.terms)
        return found


def _apart(feature: Feature, number: int) -> Iterator[Literal]:
    """Yield the feature's literals with names for its further variables that no other feature has."""
    names = {variable: f"{variable}-{number}" for variable in feature.types}
    for literal in feature.literals:
        yield Literal(substitute(literal.atom, names), literal.present)


def _one_clause(columns: Columns, prices: Weights, rows: Rows, wanted: Mask, out: Mask) -> tuple[list[int], Mask]:
    """Return features that together hold in no row that is out, and in as many wanted rows as can be."""
    held, chosen = np.ones(rows.size, np.bool_), list[int]()
    while (held & out).any():
        kept = columns @ np.where(held & wanted, rows.counts, 0)
        left = columns @ np.where(held & out, rows.visits, 0)
        before = float(rows.counts[held & wanted].sum()), float(rows.visits[held & out].sum())
        score = kept / before[0] - left / before[1] - prices
        score[(kept == 0) | columns[:, held & out].all(axis=1)] = -np.inf
        best = int(score.argmax()) if len(score) else -1
        if best < 0 or score[best] == -np.inf:
            break
        chosen.append(best)
        held = held & columns[best]
    return chosen, held


def _unified(literals: Sequence[Literal], change: Change, steps: Steps) -> list[Literal]:
    """Return the literals with one variable in the place of two, wherever they hold then in all seen rows as before."""
    literals = list(dict.fromkeys(literals))
    own = {*change.variables, *steps.frame.constants}
    said = [literal.atom for literal in literals if literal.atom.predicate in steps.frame.predicates]
    types = declared_types(said, steps.frame)
    further = [variable for variable in types if variable not in own]
    seen = _distinct(literals, change, steps)[0].shape if len(further) > 1 else ()
    for one, other in combinations(further, 2):
        if related(types[one], types[other], steps.frame):
            fewer = [Literal(substitute(atom, {other: one}), present) for atom, present in literals]
            if _distinct(fewer, change, steps)[0].shape == seen:
                return _unified(fewer, change, steps)
    return literals


def _needed(literals: Iterable[Literal], fixed: Sequence[Literal], change: Change, steps: Steps) -> list[Literal]:
    """Return the fixed literals and, of the others, those without which rows that were never seen would be let in."""
    needed = sorted({*literals}.difference(fixed), key=lambda one: (one.atom.terms, one.atom.predicate), reverse=True)
    needed.sort(key=lambda one: _weight(one, change))
    unseen, tried = _unseen([*needed, *fixed], change, steps), 0
    while tried < len(needed):
        literal, rest = needed[tried], [*needed[:tried], *needed[tried + 1 :]]
        is_deleted = literal.present and literal.atom in change.delete
        if not is_deleted and _is_bound([*rest, *fixed], change) and _unseen([*rest, *fixed], change, steps) <= unseen:
            needed, tried = rest, 0
        else:
            tried += 1
    return [*needed, *fixed]


def _weight(literal: Literal, change: Change) -> tuple[bool, bool, bool]:
    """Sort first what a condition can best do without: what is about further objects, what is absent; types last."""
    is_own = all(not is_variable(term) or term in change.variables for term in literal.atom.terms)
    return is_type(literal.atom), is_own, literal.present


def _is_bound(literals: Iterable[Literal], change: Change) -> bool:
    """Return whether all variables still occur in what must hold."""
    literals = list(literals)
    held = {term for one in literals if one.present and one.atom.predicate != EQUALITY for term in one.atom.terms}
    asked = {term for one in literals for term in one.atom.terms if is_variable(term)}
    return asked <= held and all(variable in held for variable in change.variables if variable not in change.new)


def _unseen(literals: Iterable[Literal], change: Change, steps: Steps) -> int:
    """Return how many visits there were to distinct rows in which the literals hold and the change was never seen."""
    return int(steps.visits[_distinct(literals, change, steps)[1][0]].sum())


def _distinct(literals: Iterable[Literal], change: Change, steps: Steps) -> tuple[Numbers, Numbers]:
    """Return the rows, distinct in the state and the change's own variables, that were seen, and the others."""
    rows = rows_of(change, literals, steps)
    columns = np.stack([rows.table[STATE], *(rows.table[v] for v in change.variables if v not in change.new)])
    return np.unique(columns[:, rows.seen], axis=1), np.unique(columns[:, ~rows.seen], axis=1)


def _clause(literals: list[Literal], change: Change, steps: Steps) -> Clause:
    """Return the literals with the types of the further variables in them."""
    facts = [one.atom for one in literals if one.atom.predicate in steps.frame.predicates]
    types = declared_types(facts, steps.frame)
    own = {*change.variables, *steps.frame.constants}
    further = {variable: kind for variable, kind in types.items() if variable not in own}
    states = set(_distinct(literals, change, steps)[0][0].tolist())
    seen = sum(steps.counts[before, after] for before, after, _ in change.steps if before in states)
    return Clause(tuple(literals), further, seen)

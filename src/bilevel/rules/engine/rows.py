"""The rows of relations, of a state as atoms: to keep, or for estimates as in `explosion`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.engine.explosion import Tables
from bilevel.rules.engine.indexed_relations import Row
from bilevel.rules.engine.views import UNEQUAL, Relation, Table
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts


def rows_of(
    asked: Iterable[Relation], domain: Domain, state: Iterable[Atom], goal: Facts, objects: Mapping[str, str]
) -> dict[Relation, list[Row]]:
    """Return the rows of these relations: facts of the state, open goals, objects of types."""
    rows: dict[Relation, list[Row]] = {relation: [] for relation in asked}
    achieved = set()
    for atom in state:
        if ("state", atom.predicate) in rows:
            rows[Relation("state", atom.predicate)].append(atom.terms)
        if ("goal", atom.predicate) in rows and atom in goal:
            achieved.add(atom)
    for atom in goal:
        if ("goal", atom.predicate) in rows and atom not in achieved:
            rows[Relation("goal", atom.predicate)].append(atom.terms)
    for relation, found in rows.items():
        if relation.kind == "type":
            found += [(name,) for name, kind in objects.items() if domain.is_subtype(kind, relation.name)]
    return rows


def tables_for(
    rules: Sequence[Rule], domain: Domain, state: Collection[Atom], goal: Facts, objects: Mapping[str, str]
) -> Tables:
    """Return a function from relations to their rows; goals are among the facts, as they will be."""

    def tables(asked: set[Relation]) -> Mapping[Relation, Table]:
        present = with_closures(frozenset(state), closures_in(rules, domain))
        wanted = {Relation("goal", relation.name) for relation in asked if relation.kind == "state"}
        rows = {
            relation: [row[0] for row in found] if found and len(found[0]) == 1 else found
            for relation, found in rows_of(asked - {UNEQUAL} | wanted, domain, present, goal, objects).items()
        }
        future = {
            r: found + rows[Relation("goal", r.name)] if r.kind == "state" else found for r, found in rows.items()
        }
        return {UNEQUAL: [], **future}

    return tables

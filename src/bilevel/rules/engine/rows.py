"""The rows of relations, of a state as atoms or of a packed problem: to keep, or for estimates as in `explosion`."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence

from bilevel.rules.closures import MARK, closures_in, with_closures
from bilevel.rules.engine import compiled_executor
from bilevel.rules.engine.explosion import Tables
from bilevel.rules.engine.indexed_relations import Row
from bilevel.rules.engine.views import UNEQUAL, Relation, Table
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.symbolic.packed import NUMBER, PackedProblem, Rows


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


def packed_tables(rules: Sequence[Rule], domain: Domain, problem: PackedProblem) -> Tables:
    """Return the same for a packed problem, which is unpacked only if rules that may explode ask about closures."""
    none = Rows(0, array(NUMBER))

    def table(relation: Relation) -> Table:
        if relation.kind == "type":
            wanted = {n for n, kind in enumerate(problem.type_names) if domain.is_subtype(kind, relation.name)}
            return [number for number, kind in enumerate(problem.types) if kind in wanted]
        if relation == UNEQUAL:
            return []
        parts = [problem.goal.get(relation.name, none)]
        parts += [problem.state.get(relation.name, none)] if relation.kind == "state" else []
        return compiled_executor.Table(len(domain.predicates[relation.name].parameters), *parts)

    def tables(asked: set[Relation]) -> Mapping[Relation, Table]:
        if any(relation.name.endswith(MARK) and relation.name not in domain.predicates for relation in asked):
            whole = problem.unpacked
            return tables_for(rules, domain, whole.state, whole.goal, whole.all_objects(domain))(asked)
        return {relation: table(relation) for relation in asked}

    return tables

"""The rival of the rule engine: the same rules as SQL queries over an in-memory SQLite database.

Written to be fast. Objects are integers. Every predicate that a rule asks about is a table clustered by its columns,
with further indices on what the joins look up; the goals not yet achieved are tables too and are kept up to date. The
join order is forced with CROSS JOIN: the cheapest by the number of rows to expect, judged by a small problem of the
same shape when half of it is done. Facts without arguments are flags in Python that save the query. A step asks one
query per rule, by priority, for one row, and changes a few rows by primary key. Which of several applicable instances
fires is left to SQLite.

Made for the shapes of the benchmark: no constants, no absent facts in conditions, no goals without arguments.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlite_join_order import Literal, Relation, literals_of

from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Outcome, Problem, Schema
from bilevel.symbolic.plans import Nature, NaturesMove, Plan

Row = tuple[int, ...]


class Query(NamedTuple):
    """A rule as SQL: it applies if its flags are set and the query has a row, which is the action's arguments."""

    flags: frozenset[str]
    sql: str
    schema: Schema


class TableChange(NamedTuple):
    """A statement to run on the values at `places`, if `only` is `None` or holds them; `opens` counts goals."""

    sql: str
    places: tuple[int, ...]
    only: set[Row] | None
    opens: int


class Effect(NamedTuple):
    changes: list[TableChange]
    flags_off: frozenset[str]
    flags_on: frozenset[str]


class SqliteExecutor:
    """Follows the rules from a problem's initial state; `actions` and `moves` are what has been done so far."""

    def __init__(
        self, domain: Domain, problem: Problem, rules: Sequence[Rule], orders: Sequence[Sequence[Literal]], seed: int
    ) -> None:
        """`orders` are the rules' join orders (see `join_orders`); the rules come by priority, as learned ones do."""
        assert not domain.constants
        assert all(atom.terms for atom in problem.goal)
        assert not any(rule.absent for rule in rules)
        objects = problem.objects
        self.domain = domain
        self.nature = Nature(domain, objects, random.Random(seed))
        self.names = list(objects)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.arities = {x.relation: len(x.terms) for rule in rules for x in literals_of(rule, domain)}
        self.flags = {atom.predicate for atom in problem.state if not atom.terms}
        self.goals: dict[str, set[Row]] = {atom.predicate: set() for atom in problem.goal}
        for atom in problem.goal:
            self.goals[atom.predicate].add(self._row(atom))
        self.open_goals = len(problem.goal - problem.state)
        self.actions: list[Action] = []
        self.moves: dict[int, NaturesMove] = {}

        self.database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=1000)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "automatic_index=OFF"):
            self.database.execute(f"PRAGMA {setting}")
        self.database.execute("BEGIN")
        rows = self._rows(problem)
        self.indices: set[tuple[Relation, tuple[int, ...]]] = set()
        self.queries = [self._query(rule, order) for rule, order in zip(rules, orders, strict=True)]
        self._load(rows)
        self.effects = {
            (schema.name, index): self._effect(schema, outcome)
            for schema in domain.schemas.values()
            for index, outcome in enumerate(schema.outcomes)
        }

    @property
    def plan(self) -> Plan:
        return Plan(self.actions, self.moves)

    def run(self) -> bool:
        """Whether the goal was reached; otherwise no rule applies any more."""
        queries, flags, execute = self.queries, self.flags, self.database.cursor().execute
        while self.open_goals:
            for needed, sql, schema in queries:
                if needed <= flags:
                    row = execute(sql).fetchone()
                    if row is not None:
                        self._act(schema, row)
                        break
            else:
                return False
        return True

    def _act(self, schema: Schema, arguments: Row) -> None:
        index, values = 0, arguments
        if not schema.is_deterministic:
            move = self.nature.move(schema)
            index, values = move.outcome, arguments + self._chosen(schema.outcomes[move.outcome], move)
            self.moves[len(self.actions)] = move
        changes, flags_off, flags_on = self.effects[schema.name, index]
        self.flags -= flags_off
        self.flags |= flags_on
        execute = self.database.execute
        for sql, places, only, opens in changes:
            row = tuple([values[place] for place in places])
            if only is None:
                execute(sql, row)
            elif row in only:
                self.open_goals += opens * execute(sql, row).rowcount
        names = self.names
        self.actions.append(Action(schema.name, tuple([names[number] for number in arguments])))

    def _chosen(self, outcome: Outcome, move: NaturesMove) -> Row:
        """The numbers of what nature chose; new objects get the next ones."""
        for variable in outcome.chosen:
            name = move.binding[variable.name]
            if name not in self.numbers:
                self.numbers[name] = len(self.names)
                self.names.append(name)
                for relation in self.arities:
                    if relation.kind == "type" and self.domain.is_subtype(variable.type, relation.name):
                        self.database.execute(self._insert(relation), (self.numbers[name],))
        return tuple(self.numbers[move.binding[variable.name]] for variable in outcome.chosen)

    # --- Making the tables, the queries and the updates

    def _row(self, atom: Atom) -> Row:
        return tuple([self.numbers[term] for term in atom.terms])

    def _rows(self, problem: Problem) -> dict[Relation, list[Row]]:
        rows: dict[Relation, list[Row]] = {relation: [] for relation in self.arities}
        for kind, atoms in (("state", problem.state), ("goal", problem.goal - problem.state)):
            tables = {relation.name: rows[relation] for relation in rows if relation.kind == kind}
            for atom in atoms:
                if atom.predicate in tables:
                    tables[atom.predicate].append(self._row(atom))
        for relation in rows:
            if relation.kind == "type":
                objects = problem.objects.items()
                fitting = (name for name, kind in objects if self.domain.is_subtype(kind, relation.name))
                rows[relation] = [(self.numbers[name],) for name in fitting]
        return rows

    def _load(self, rows: Mapping[Relation, list[Row]]) -> None:
        for relation, arity in self.arities.items():
            columns = ", ".join(f"c{i} INTEGER" for i in range(arity))
            key = ", ".join(f"c{i}" for i in range(arity))
            if arity == 1:
                self.database.execute(f"CREATE TABLE {_table(relation)} (c0 INTEGER PRIMARY KEY)")
            elif arity > 1:
                self.database.execute(f"CREATE TABLE {_table(relation)} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
            if arity:
                self.database.executemany(self._insert(relation), sorted(rows[relation]))
        for number, (relation, bound) in enumerate(sorted(self.indices)):
            if bound != tuple(range(len(bound))):  # the primary key serves the others
                key = ", ".join(f"c{i}" for i in bound)
                self.database.execute(f"CREATE INDEX i{number} ON {_table(relation)} ({key})")

    def _insert(self, relation: Relation) -> str:
        return f"INSERT OR IGNORE INTO {_table(relation)} VALUES ({', '.join('?' * self.arities[relation])})"

    def _delete(self, relation: Relation) -> str:
        keys = " AND ".join(f"c{i} = ?" for i in range(self.arities[relation]))
        return f"DELETE FROM {_table(relation)} WHERE {keys}"

    def _query(self, rule: Rule, order: Sequence[Literal]) -> Query:
        columns: dict[str, str] = {}
        conditions: list[str] = []
        for place, literal in enumerate(order):
            self.indices.add((literal.relation, literal.bound(frozenset(columns))))
            for i, term in enumerate(literal.terms):
                column = f"t{place}.c{i}"
                if columns.setdefault(term, column) != column:
                    conditions.append(f"{column} = {columns[term]}")
        conditions += [f"{columns[a]} <> {columns[b]}" for a, b in sorted(rule.inequalities)]
        tables = " CROSS JOIN ".join(f"{_table(literal.relation)} t{i}" for i, literal in enumerate(order))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        selected = ", ".join(columns[term] for term in rule.action.arguments)
        flags = _flags(rule.state_condition)
        sql = f"SELECT {selected} FROM {tables}{where} LIMIT 1"
        return Query(flags, sql, self.domain.schemas[rule.action.name])

    def _effect(self, schema: Schema, outcome: Outcome) -> Effect:
        """What the outcome does: it deletes first, and what it adds as well it does not delete."""
        deleted = outcome.delete - outcome.add
        values = [parameter.name for parameter in (*schema.parameters, *outcome.chosen)]
        changes = [*self._changes(deleted, False, values), *self._changes(outcome.add, True, values)]
        return Effect(changes, _flags(deleted), _flags(outcome.add))

    def _changes(self, atoms: Facts, adds: bool, values: Sequence[str]) -> list[TableChange]:
        changes = []
        for atom in sorted(atoms):
            places = tuple(values.index(term) for term in atom.terms)
            state, goal = Relation("state", atom.predicate), Relation("goal", atom.predicate)
            if places and state in self.arities:
                changes.append(TableChange((self._insert if adds else self._delete)(state), places, None, 0))
            if places and atom.predicate in self.goals:
                sql = (self._delete if adds else self._insert)(goal)
                changes.append(TableChange(sql, places, self.goals[atom.predicate], -1 if adds else 1))
        return changes


def _table(relation: Relation) -> str:
    return f'"{relation.kind} {relation.name}"'


def _flags(atoms: Facts) -> frozenset[str]:
    return frozenset(atom.predicate for atom in atoms if not atom.terms)

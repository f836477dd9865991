"""The join orders of the SQLite executor: the fewest rows to expect, judged by a small problem that is half solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

from bilevel.rules.matching import checked_types, free_variables
from bilevel.rules.rule import Rule
from bilevel.rules.solving import final_state, solve
from bilevel.symbolic.domain import Domain, Facts, Problem
from bilevel.symbolic.plans import Plan


class Relation(NamedTuple):
    """Facts of the state, goals not yet achieved, or objects of a type (`kind`: state, goal or type)."""

    kind: str
    name: str


class Literal(NamedTuple):
    """A condition of a rule: a relation and variables."""

    relation: Relation
    terms: tuple[str, ...]

    def bound(self, variables: frozenset[str]) -> tuple[int, ...]:
        return tuple(i for i, term in enumerate(self.terms) if term in variables)


def literals_of(rule: Rule, domain: Domain) -> list[Literal]:
    types = {variable.name: variable.type for variable in rule.variables}
    ranging = {name: types[name] for name in free_variables(rule)} | checked_types(rule, domain)
    return [
        *(Literal(Relation("state", atom.predicate), atom.terms) for atom in sorted(rule.state_condition)),
        *(Literal(Relation("goal", atom.predicate), atom.terms) for atom in sorted(rule.goal_condition)),
        *(Literal(Relation("type", kind), (name,)) for name, kind in sorted(ranging.items())),
    ]


Terms = tuple[str, ...]


def join_orders(rules: Sequence[Rule], domain: Domain, example: Problem) -> list[Sequence[Literal]]:
    """For each rule the best order of its literals with arguments, judged by a small problem that is half solved."""
    plan = solve(domain, example, rules).plan
    half = len(plan.actions) // 2
    done = Plan(plan.actions[:half], {step: move for step, move in plan.moves.items() if step < half})
    state, objects = final_state(domain, example, done)
    literals = [[x for x in literals_of(rule, domain) if x.terms] for rule in rules]
    relations = {literal.relation for conditions in literals for literal in conditions}
    counts = RowCounts({x: _instances(x, state, example.goal, objects, domain) for x in relations})
    return [min(permutations(conditions), key=counts.expected) for conditions in literals]


def _instances(
    relation: Relation, state: Facts, goal: Facts, objects: Mapping[str, str], domain: Domain
) -> list[Terms]:
    if relation.kind == "type":
        return [(name,) for name, kind in objects.items() if domain.is_subtype(kind, relation.name)]
    facts = state if relation.kind == "state" else goal - state
    return [atom.terms for atom in facts if atom.predicate == relation.name]


class RowCounts:
    """How many rows to expect of a join over some tables."""

    def __init__(self, rows: Mapping[Relation, Sequence[Terms]]) -> None:
        self._rows = rows
        self._known: dict[tuple[Relation, tuple[int, ...]], float] = {}

    def expected(self, order: Sequence[Literal]) -> float:
        """The number of rows of a join in this order, summed over its prefixes."""
        expected, total, variables = 1.0, 0.0, frozenset[str]()
        for literal in order:
            expected *= max(self._agreeing(literal.relation, literal.bound(variables)), 0.5)  # 0.5: none just now
            total += expected
            variables |= frozenset(literal.terms)
        return total

    def _agreeing(self, relation: Relation, bound: tuple[int, ...]) -> float:
        """The mean number of rows that agree with a row in the bound positions."""
        if (relation, bound) not in self._known:
            rows = self._rows[relation]
            counts = Counter(tuple(row[i] for i in bound) for row in rows)
            self._known[relation, bound] = sum(n * n for n in counts.values()) / max(len(rows), 1)
        return self._known[relation, bound]

"""What a rule asks of the data: literals over relations, and what the relations are like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, is_variable
from bilevel.symbolic.packed import Rows
from bilevel.symbolic.semantics import is_trivial_equality, substitute_all

SAMPLE = 2000


class Relation(NamedTuple):
    """Facts of the state, goals not yet achieved, the goal fact being served, objects of a type, or a view's keys."""

    kind: str
    name: str


UNEQUAL = Relation("unequal", "!=")


class Literal(NamedTuple):
    """A condition of a rule, or that a view has something for a key."""

    relation: Relation
    terms: tuple[str, ...]
    positive: bool = True

    @property
    def variables(self) -> frozenset[str]:
        """The variables among its terms."""
        return variables_of(self.terms)

    @property
    def enumerable(self) -> bool:
        """Whether its instances can be listed: not those of an absence or an inequality."""
        return self.positive and self.relation is not UNEQUAL

    def bound_positions(self, bound: frozenset[str]) -> tuple[int, ...]:
        """Return the places of the terms that are known once these variables are."""
        return tuple(i for i, term in enumerate(self.terms) if term in bound or not is_variable(term))


@cache
def variables_of(terms: tuple[str, ...]) -> frozenset[str]:
    """Return the variables among these terms."""
    return frozenset(term for term in terms if is_variable(term))


def rule_literals(rule: Rule, domain: Domain) -> Iterator[Literal]:
    """Yield the rule's conditions, its checks of types and the inequalities of its terms."""
    yield from (Literal(Relation("state", atom.predicate), atom.terms) for atom in sorted(rule.state_condition))
    yield from (Literal(Relation("goal", atom.predicate), atom.terms) for atom in sorted(rule.goal_condition))
    yield from (Literal(Relation("state", atom.predicate), atom.terms, False) for atom in sorted(rule.absent))
    asked = sorted(asked_types(rule, domain).items())
    yield from (Literal(Relation("type", kind), (variable,)) for variable, kind in asked)
    yield from (Literal(UNEQUAL, pair) for pair in sorted(rule.inequalities))


def required_relations(rules: Sequence[Rule], domain: Domain) -> dict[Relation, int]:
    """Return the relations to keep with their arities: what rules ask about, and what unsafe rules' actions need."""
    arities: dict[Relation, int] = {}
    for rule in rules:
        schema, literals = domain.schemas[rule.action.name], rule_literals(rule, domain)
        arities |= {each.relation: len(each.terms) for each in literals if each.relation != UNEQUAL}
        if not is_safe(rule, domain):
            needed: set[Atom] = {*schema.precondition, *schema.negative_precondition}
            arities |= {Relation("state", a.predicate): len(a.terms) for a in needed if a.predicate != EQUALITY}
    return arities


def is_safe(rule: Rule, domain: Domain) -> bool:
    """Return whether the rule's conditions imply its action's precondition, as those of learned rules do."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    required, forbidden = (substitute_all(a, binding) for a in (schema.precondition, schema.negative_precondition))
    absent = rule.absent | rule.goal_condition  # an open goal is an absent fact
    absent |= {Atom(EQUALITY, terms) for one, other in rule.inequalities for terms in ((one, other), (other, one))}
    return forbidden <= absent and all(a in rule.state_condition or is_trivial_equality(a) for a in required)


class Statistics:
    """How many rows relations have, and how many rows agree in some columns, estimated from samples."""

    def __init__(self) -> None:
        self._sizes: dict[Relation, int] = {}
        self._samples: dict[Relation, list[Any]] = {}
        self.degree = cache(self._degree)

    def add(self, relation: Relation, arity: int, *parts: Rows) -> None:
        """Count these rows as those of a relation."""
        size = sum(rows.size for rows in parts)
        step = max(1, size // SAMPLE) * arity
        self._sizes[relation] = size
        self._samples[relation] = [
            tuple(rows.terms[place : place + arity])
            for rows in parts
            for place in range(0, rows.size * arity, step or 1)
        ]

    def _degree(self, relation: Relation, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that agree with a random row in the bound positions."""
        size, sample = self._sizes.get(relation, 0), self._samples.get(relation, ())
        if not bound:
            return float(size)
        if len(sample) < 2 or len(sample[0]) < 2:
            return 1.0
        counts = Counter(tuple(row[i] for i in bound) for row in sample)
        agreeing_pairs = sum(n * (n - 1) for n in counts.values())
        return 1.0 + (size - 1) * agreeing_pairs / (len(sample) * (len(sample) - 1))

    def magnitudes(self) -> frozenset[object]:
        """Return sizes, and degrees by each argument, in powers of eight: data that agree in these are joined alike."""

        def magnitude(number: float) -> int:
            return int(number).bit_length() // 3

        def degrees(relation: Relation) -> tuple[int, ...]:
            columns = range(len(self._samples[relation][0]) if self._samples[relation] else 0)
            return tuple(magnitude(self.degree(relation, (column,))) for column in columns)

        return frozenset((relation, magnitude(size), degrees(relation)) for relation, size in self._sizes.items())

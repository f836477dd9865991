"""What a plan for a rule is made of: literals, views, how an instance is read off them, and what the data are like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Domain, is_variable

SAMPLE = 2000


class Relation(NamedTuple):
    """Facts of the state, goals not yet achieved, objects of a type, or the keys of a view."""

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


@cache
def variables_of(terms: tuple[str, ...]) -> frozenset[str]:
    """Return the variables among these terms."""
    return frozenset(term for term in terms if is_variable(term))


@dataclass(frozen=True)
class View:
    """For each value of `key`, the values of `variable` that satisfy the literals.

    Rules share views: a rule's own copy has the same name, and the rule's variables in the key and the literals.
    """

    name: str
    key: tuple[str, ...]
    variable: str
    literals: tuple[Literal, ...]

    @property
    def relation(self) -> Relation:
        """The relation that the view is kept as."""
        return Relation("view", self.name)


@dataclass(frozen=True)
class RulePlan:
    """A rule's guards (ground literals and views without a key), its views, and how to read off an instance.

    `outputs` are the variables an instance must name, in the order that decides ties. `uses` maps each variable to its
    view. `filters` are absences and inequalities that tie variables of different views; they are checked when an
    instance is read off, as a view of all the variables would be a product, and `read` adds to the outputs the
    variables that must be read for that.
    """

    rule: Rule
    outputs: tuple[str, ...]
    read: tuple[str, ...]
    uses: dict[str, View]
    guards: tuple[Literal, ...]
    filters: tuple[Literal, ...]


def reading_order(outputs: Sequence[str], uses: Mapping[str, View]) -> list[str]:
    """Return the outputs, each after the variables its view's key needs, otherwise in the order that decides ties."""
    order: list[str] = []
    while len(order) < len(outputs):
        order.append(next(v for v in outputs if v not in order and set(uses[v].key) <= set(order)))
    return order


def inverted(outputs: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return the outputs read before one that decides ties earlier; all values of such an output must be compared."""
    rank = {variable: i for i, variable in enumerate(outputs)}
    return [v for i, v in enumerate(order) if any(rank[later] < rank[v] for later in order[i + 1 :])]


class JoinStep(NamedTuple):
    """List the instances of a literal given some bound positions, or check it when all are bound."""

    literal: Literal
    bound: tuple[int, ...]


class ServingPlan(NamedTuple):
    """How to find the instances of a rule that serve a goal fact: check, join, and read the rest off the views.

    `known` are the variables to be read that have values after the join; the others are read in `order`, and `filters`
    are left to be checked.
    """

    guards: tuple[Literal, ...]
    steps: tuple[JoinStep, ...]
    known: tuple[str, ...]
    order: tuple[str, ...]
    filters: tuple[Literal, ...]


def bound_positions(literal: Literal, bound: frozenset[str]) -> tuple[int, ...]:
    """Return the places of the terms that are known once these variables are."""
    return tuple(i for i, term in enumerate(literal.terms) if term in bound or not is_variable(term))


def rule_literals(rule: Rule, domain: Domain, typed: bool) -> Iterator[Literal]:
    """Yield the rule's conditions, its checks of types and the inequalities of its terms.

    `typed` says that all facts there will ever be have arguments of the declared types.
    """
    yield from (Literal(Relation("state", atom.predicate), atom.terms) for atom in sorted(rule.state_condition))
    yield from (Literal(Relation("goal", atom.predicate), atom.terms) for atom in sorted(rule.goal_condition))
    yield from (Literal(Relation("state", atom.predicate), atom.terms, False) for atom in sorted(rule.absent))
    asked = sorted(asked_types(rule, domain).items())
    yield from (Literal(Relation("type", kind), (variable,)) for variable, kind in asked)
    for pair in sorted(rule.inequalities):
        kinds = [rule.types.get(term) or domain.constants.get(term, ROOT_TYPE) for term in pair]
        related = domain.is_subtype(kinds[0], kinds[1]) or domain.is_subtype(kinds[1], kinds[0])
        if related or not typed:  # objects of unrelated types differ anyway
            yield Literal(UNEQUAL, pair)


# What the data are like


class SlicedRows(Protocol):
    """Rows of a relation: of one column as plain values, of others as tuples."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Sequence[Any]: ...


class Statistics:
    """Estimates from samples of the rows of each relation."""

    def __init__(self, rows: Mapping[Relation, SlicedRows]) -> None:
        self._sizes = {relation: len(found) for relation, found in rows.items()}
        self._samples = {relation: found[:: max(1, len(found) // SAMPLE)] for relation, found in rows.items()}
        self.degree = cache(self._degree)

    def _degree(self, relation: Relation, bound: tuple[int, ...]) -> float:
        """Return the expected number of rows that agree with a random row in the bound positions."""
        size, sample = self._sizes.get(relation, 0), self._samples.get(relation, ())
        if not bound:
            return float(size)
        if len(sample) < 2 or not isinstance(sample[0], tuple):
            return 1.0
        counts = Counter(tuple(row[i] for i in bound) for row in sample)
        agreeing_pairs = sum(n * (n - 1) for n in counts.values())
        return 1.0 + (size - 1) * agreeing_pairs / (len(sample) * (len(sample) - 1))

    def distinct(self, relation: Relation, column: int) -> float:
        """Return at most how many values to expect in a column."""
        size, sample = self._sizes.get(relation, 0), self._samples.get(relation, ())
        if not sample or not isinstance(sample[0], tuple):
            return float(size)
        return len({row[column] for row in sample}) * size / len(sample)

    def size(self, relation: Relation) -> int:
        """Return how many rows a relation has at first."""
        return self._sizes.get(relation, 0)

    def goals(self) -> int:
        """Return how many goals there are."""
        return sum(size for relation, size in self._sizes.items() if relation.kind == "goal")

    def magnitudes(self) -> frozenset[tuple[Relation, int, tuple[int, ...]]]:
        """Return sizes, and degrees by each argument, in powers of eight: data that agree in these are joined alike."""

        def magnitude(number: float) -> int:
            return int(number).bit_length() // 3

        return frozenset(
            (relation, magnitude(size), tuple(magnitude(self.degree(relation, (i,))) for i in self._columns(relation)))
            for relation, size in self._sizes.items()
        )

    def _columns(self, relation: Relation) -> range:
        sample = self._samples[relation]
        return range(len(sample[0]) if sample and isinstance(sample[0], tuple) else 0)

"""What a plan for a rule is made of: literals, views, and how an instance is read off them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from bilevel.rules.engine.statistics import Relation
from bilevel.rules.matching import asked_types
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Domain, is_variable

UNEQUAL = Relation("unequal", "!=")


class Literal(NamedTuple):
    """A condition of a rule, or that a view has something for a key."""

    relation: Relation
    terms: tuple[str, ...]
    positive: bool = True

    @property
    def variables(self) -> frozenset[str]:
        return variables_of(self.terms)

    @property
    def enumerable(self) -> bool:
        """Whether its instances can be listed: not those of an absence or an inequality."""
        return self.positive and self.relation is not UNEQUAL


@cache
def variables_of(terms: tuple[str, ...]) -> frozenset[str]:
    return frozenset(term for term in terms if is_variable(term))


@dataclass(frozen=True)
class View:
    """For each value of `key`, the values of `variable` that satisfy the literals."""

    name: str
    key: tuple[str, ...]
    variable: str
    literals: tuple[Literal, ...]

    @property
    def relation(self) -> Relation:
        return Relation("view", self.name)


class ViewUse(NamedTuple):
    """A view in a rule: which of the rule's variables stand for the view's key and variable."""

    view: View
    key: tuple[str, ...]
    variable: str
    literals: tuple[Literal, ...]  # over the rule's variables


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
    uses: dict[str, ViewUse]
    guards: tuple[Literal, ...]
    filters: tuple[Literal, ...]


def reading_order(outputs: Sequence[str], uses: Mapping[str, ViewUse]) -> list[str]:
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


def bound_positions(literal: Literal, bound: frozenset[str]) -> tuple[int, ...]:
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

"""Which conditions of an action the data could have told: where all others held and this one did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import NamedTuple

from bilevel.rules.matching import Binding, join
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Atom, Domain, Facts, Parameter, Schema
from bilevel.symbolic.semantics import is_trivial_equality, substitute

MOST_BINDINGS = 10_000  # of a schema's parameters that are looked at in one state


class Literal(NamedTuple):
    """A fact that shall hold, or shall not."""

    atom: Atom
    wanted: bool = True

    def __str__(self) -> str:
        return str(self.atom) if self.wanted else f"not {self.atom}"

    def holds(self, state: Facts, binding: Binding) -> bool:
        """Whether it holds in a state for these objects."""
        atom = substitute(self.atom, binding)
        return (atom in state or is_trivial_equality(atom)) == self.wanted


class Situation(NamedTuple):
    """The facts of a state by their predicates, and the objects in it with their types."""

    state: Facts
    by_predicate: Mapping[str, Facts]
    objects: Mapping[str, str]


def situation(state: Facts, objects: Mapping[str, str]) -> Situation:
    """Return a state, ready to be asked."""
    found: dict[str, set[Atom]] = {}
    for fact in state:
        found.setdefault(fact.predicate, set()).add(fact)
    return Situation(state, {name: frozenset(facts) for name, facts in found.items()}, objects)


def conditions_of(schema: Schema) -> list[Literal]:
    """Return the conditions of an action, in a fixed order."""
    positive = [Literal(atom) for atom in sorted(schema.precondition)]
    return positive + [Literal(atom, wanted=False) for atom in sorted(schema.negative_precondition)]


def untested(schema: Schema, domain: Domain, situations: Iterable[Situation]) -> list[Literal]:
    """Return the conditions that held in every state in which all others did, for whatever objects.

    What an outcome deletes is left out: it has to be there, whatever else holds.
    """
    conditions = conditions_of(schema)
    deleted = NO_FACTS.union(*(outcome.delete for outcome in schema.outcomes))
    mentioned = {term for condition in conditions for term in condition.atom.terms}
    parameters = [parameter for parameter in schema.parameters if parameter.name in mentioned]
    left = {condition: None for condition in conditions if condition.atom not in deleted or not condition.wanted}
    for where in situations:
        for condition in [*left]:
            rest = [other for other in conditions if other is not condition]
            if not all(condition.holds(where.state, found) for found in bindings(parameters, rest, domain, where)):
                del left[condition]
    return [*left]


def telling(atoms: Iterable[Atom], schema: Schema, domain: Domain, situations: Iterable[Situation]) -> list[Atom]:
    """Return those atoms that did not hold in some state in which all conditions did, for the same objects."""
    silent = dict.fromkeys(sorted(atoms))
    found: list[Atom] = []
    for where in situations if silent else ():
        for binding in bindings(schema.parameters, conditions_of(schema), domain, where):
            found += (atom for atom in silent if substitute(atom, binding) not in where.state)
            silent = {atom: None for atom in silent if atom not in found}
        if not silent:
            break
    return sorted(found)


def bindings(
    parameters: Sequence[Parameter], conditions: Iterable[Literal], domain: Domain, where: Situation
) -> Iterator[Binding]:
    """Give the objects for parameters, of their types, for which the conditions hold."""
    facts: list[tuple[Atom, Facts]] = []
    others: list[Literal] = []
    for literal in conditions:
        atom, wanted = literal
        if wanted and atom.predicate != EQUALITY:
            facts.append((atom, where.by_predicate.get(atom.predicate, NO_FACTS)))
        else:
            others.append(literal)
    for found in join(facts, {}):
        choices = (
            [
                name
                for name in ([found[parameter.name]] if parameter.name in found else where.objects)
                if domain.is_subtype(where.objects.get(name, parameter.type), parameter.type)
            ]
            for parameter in parameters
        )
        for arguments in islice(product(*choices), MOST_BINDINGS):
            binding = dict(zip((parameter.name for parameter in parameters), arguments, strict=True))
            if all(literal.holds(where.state, binding) for literal in others):
                yield binding

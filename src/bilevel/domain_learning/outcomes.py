"""Operators with the same conditions and the same controls that end otherwise are outcomes of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from bilevel.domain_learning.approach import same_controls
from bilevel.domain_learning.learned import Operator
from bilevel.domain_learning.lifting import Occurrence
from bilevel.symbolic.domain import Outcome
from bilevel.symbolic.semantics import substitute_all

MOST_PARAMETERS = 5


def joined_outcomes(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators, the most frequent first; those that differ in nothing but what comes of them are joined."""
    result: list[Operator] = []
    for operator in sorted(operators, key=lambda operator: -operator.count):
        for number, other in enumerate(result):
            joined = _joined(other, operator)
            if joined is not None:
                result[number] = joined
                break
        else:
            result.append(operator)
    return result


def _joined(one: Operator, other: Operator) -> Operator | None:
    """Return both as one operator; `None` where conditions, controls or parameters differ."""
    if len(one.types) != len(other.types) or not same_controls(one.approach, other.approach):
        return None
    if (one.approach.beside or ("",))[0] != (other.approach.beside or ("",))[0]:
        return None
    for names in _renamings(other, one):
        linked = {names[variable]: substitute_all(said, names) for variable, said in other.linked.items()}
        if substitute_all(other.raw, names) == one.raw and linked == one.linked:
            outcomes = [(_renamed(outcome, names), count) for outcome, count in other.outcomes]
            moved = [
                Occurrence(each.change, {names[variable]: name for variable, name in each.binding.items()})
                for each in other.occurrences
            ]
            return replace(one, outcomes=[*one.outcomes, *outcomes], occurrences=[*one.occurrences, *moved])
    return None


def _renamings(one: Operator, other: Operator) -> Iterator[Mapping[str, str]]:
    """Yield every way to call an operator's parameters by another's names for parameters of the same types."""
    if len(one.types) > MOST_PARAMETERS:
        return
    for names in permutations(other.types):
        pairs = zip(one.types.items(), names, strict=True)
        if all(other.types[name] == kind for (_, kind), name in pairs):
            yield dict(zip(one.types, names, strict=True))


def _renamed(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    """Return the outcome with other names; those of nature's variables may not clash with them."""
    taken = {variable.name: f"{variable.name}n" for variable in outcome.chosen if variable.name in names.values()}
    every = {**names, **taken}
    return Outcome(
        substitute_all(outcome.add, every),
        substitute_all(outcome.delete, every),
        tuple(replace(variable, name=every.get(variable.name, variable.name)) for variable in outcome.chosen),
        frozenset(every.get(name, name) for name in outcome.new),
    )

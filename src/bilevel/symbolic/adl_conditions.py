"""Conditions in ADL as plain ones: `or`, `imply`, `not`, `forall` and `exists` spelt out case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from bilevel.symbolic.domain import EQUALITY, Atom, Facts, is_variable
from bilevel.symbolic.expressions import Expression, Group, Misread, arguments_of, as_group, bounded
from bilevel.symbolic.pddl_domain import Scope, quantified
from bilevel.symbolic.pddl_parts import read_literal
from bilevel.symbolic.semantics import Condition, substitute

MOST_BINDINGS = 100_000  # of the quantifiers around one atom

TRUE = Condition()


@dataclass(frozen=True, kw_only=True)
class Context(Scope):
    """What can be said where a condition or an effect stands.

    Variables in `binding` stand for these objects. `static` are the predicates that no action changes: `state` tells
    which of their facts hold.
    """

    objects: Mapping[str, str]
    state: Facts
    static: frozenset[str]
    binding: Mapping[str, str] = field(default_factory=dict)
    bindings: int = 1  # that the quantifiers around have

    def truth(self, atom: Atom) -> bool | None:
        """Whether the atom holds, if that never changes."""
        if any(map(is_variable, atom.terms)):
            return None
        if atom.predicate == EQUALITY:
            return atom.terms[0] == atom.terms[1]
        return atom in self.state if atom.predicate in self.static else None

    def quantified(self, group: Group, what: str) -> tuple[list[Context], Expression]:
        """A context for each way to choose objects in `(forall (?x - t) part)`, and the part."""
        variables, _, part = quantified(group, self.domain, what)
        return self.instances(group, variables), part

    def instances(self, group: Group, variables: Mapping[str, str]) -> list[Context]:
        """Return a context for each way to bind these variables; `Misread` where there are too many."""
        fitting = [self.fitting(kind) for kind in variables.values()]
        count = self.bindings * prod(map(len, fitting))
        if count > MOST_BINDINGS:
            raise Misread(group.offset, f"the objects make more than {MOST_BINDINGS} cases of this '{group.head}'")
        terms = {**self.terms, **variables}
        bindings = ({**self.binding, **dict(zip(variables, values, strict=True))} for values in product(*fitting))
        return [replace(self, terms=terms, binding=binding, bindings=count) for binding in bindings]

    def fitting(self, kind: str) -> list[str]:
        """The objects of a type."""
        return [name for name, its in self.objects.items() if self.domain.is_subtype(its, kind)]


def cases(expression: Expression, context: Context, wanted: bool = True) -> list[Condition]:
    """Plain conditions of which one holds wherever the condition does or, where it is not `wanted`, does not."""
    group = as_group(expression, "a condition")
    match group.head if group.items else "and":
        case "and" | "or":
            parts = [cases(part, context, wanted) for part in group.arguments]
            return _all_of(group, parts) if (group.head != "or") == wanted else _any_of(group, parts)
        case "imply":
            premise, conclusion = arguments_of(group, 2, "2 conditions")
            parts = [cases(premise, context, not wanted), cases(conclusion, context, wanted)]
            return _any_of(group, parts) if wanted else _all_of(group, parts)
        case "not":
            return cases(arguments_of(group, 1, "one condition")[0], context, not wanted)
        case "forall" | "exists":
            contexts, part = context.quantified(group, "condition")
            parts = [cases(part, each, wanted) for each in contexts]
            return _all_of(group, parts) if (group.head == "forall") == wanted else _any_of(group, parts)
    atom = substitute(read_literal(group, context.domain, context.terms), context.binding)
    holds = context.truth(atom)
    if holds is not None:
        return [TRUE] if holds == wanted else []
    return [Condition(frozenset({atom})) if wanted else Condition(negative=frozenset({atom}))]


def _any_of(group: Group, parts: Iterable[Sequence[Condition]]) -> list[Condition]:
    found = dict.fromkeys(case for part in parts for case in part)
    return [TRUE] if TRUE in found else bounded(group, list(found), "cases")


def _all_of(group: Group, parts: Iterable[Sequence[Condition]]) -> list[Condition]:
    found = [TRUE]
    for part in sorted(parts, key=len):
        found = list(dict.fromkeys(narrow for case in found for narrow in narrowed(case, part)))
        bounded(group, found, "cases")
    return found


def narrowed(case: Condition, alternatives: Iterable[Condition]) -> list[Condition]:
    """The case and each of the alternatives, but for contradictions; the case itself where it implies one of them."""
    found = dict.fromkeys(joined(case, other) for other in alternatives)
    return [case] if case in found else [both for both in found if not both.positive & both.negative]


def joined(case: Condition, other: Condition) -> Condition:
    """Return the condition that holds where both do."""
    return Condition(case.positive | other.positive, case.negative | other.negative)

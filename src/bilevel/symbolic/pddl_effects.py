"""Effects: conjunctions, `oneof` and the existential effect, expanded into the outcomes an action may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, Domain, Outcome, Parameter
from bilevel.symbolic.expressions import Expression, Group, Misread, Word, as_group, suggestion
from bilevel.symbolic.pddl_parts import negated, read_atom, read_typed

MOST_OUTCOMES = 4096
TOTAL_COST = "total-cost"
NEW = "new"

NOTHING = Outcome(NO_FACTS, NO_FACTS)


@dataclass(frozen=True)
class Scope:
    """What an effect may mention: terms with their types, the variables that nature binds here, numeric functions."""

    domain: Domain
    terms: Mapping[str, str]
    functions: frozenset[str]
    chosen: frozenset[str] = frozenset()


def read_effect(expression: Expression, scope: Scope) -> list[Outcome]:
    """The outcomes of an effect, in the order in which they are written; of two choices the last varies fastest."""
    group = as_group(expression, "an effect")
    if not group.items:
        return [NOTHING]
    if group.head == "and":
        return read_conjunction(group, scope)
    if group.head == "oneof":
        return read_choice(group, scope)
    if group.head == "exists":
        return read_existential(group, scope)
    if group.head == "not":
        inner = negated(group)
        if inner.head == NEW and NEW not in scope.domain.predicates:
            raise Misread(inner.offset, "'new' marks an object that nature makes and cannot be negated")
        return [Outcome(NO_FACTS, frozenset({read_atom(inner, scope.domain, scope.terms)}))]
    if group.head not in scope.domain.predicates:
        if group.head == NEW:
            return [Outcome(NO_FACTS, NO_FACTS, new=frozenset({read_new(group, scope)}))]
        if group.head == "increase":
            check_cost(group, scope)
            return [NOTHING]
        if group.head == EQUALITY:
            raise Misread(group.offset, "'=' cannot be an effect")
    return [Outcome(frozenset({read_atom(group, scope.domain, scope.terms)}), NO_FACTS)]


def read_conjunction(group: Group, scope: Scope) -> list[Outcome]:
    return conjunction(group, group.arguments, [read_effect(part, scope) for part in group.arguments])


def conjunction(group: Group, arguments: Sequence[Expression], parts: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    """One outcome for each choice from the parts; two existential effects that happen together need other variables."""
    if prod(map(len, parts)) > MOST_OUTCOMES:
        raise Misread(group.offset, f"this effect has more than {MOST_OUTCOMES} outcomes")
    chosen: set[str] = set()
    for argument, outcomes in zip(arguments, parts, strict=True):
        names = {variable.name for outcome in outcomes for variable in outcome.chosen}
        if chosen & names:
            clash = min(chosen & names)
            raise Misread(argument.offset, f"'{clash}' is chosen twice in one outcome; rename one of the two")
        chosen |= names
    return [together(outcomes) for outcomes in product(*parts)]


def together(parts: Sequence[Outcome]) -> Outcome:
    """One outcome that does all that the parts do."""
    return Outcome(
        add=NO_FACTS.union(*(part.add for part in parts)),
        delete=NO_FACTS.union(*(part.delete for part in parts)),
        chosen=tuple(variable for part in parts for variable in part.chosen),
        new=frozenset().union(*(part.new for part in parts)),
    )


def read_choice(group: Group, scope: Scope) -> list[Outcome]:
    outcomes = [outcome for part in group.arguments for outcome in read_effect(part, scope)]
    if not outcomes:
        raise Misread(group.offset, "'oneof' needs at least one effect")
    return bounded(group, outcomes)


def bounded(group: Group, outcomes: list[Outcome]) -> list[Outcome]:
    if len(outcomes) > MOST_OUTCOMES:
        raise Misread(group.offset, f"this effect has more than {MOST_OUTCOMES} outcomes")
    return outcomes


def read_existential(group: Group, scope: Scope) -> list[Outcome]:
    if len(group.arguments) != 2:
        raise Misread(group.offset, "'exists' takes a list of variables and one effect")
    declared = as_group(group.arguments[0], "a list of variables")
    variables = read_typed(declared.items, "a variable", scope.domain.types)
    for item in declared.items:
        if isinstance(item, Word) and item.text in variables and item.text in scope.terms:
            raise Misread(item.offset, f"variable {item} is already bound; choose another name")
    inner = Scope(scope.domain, {**scope.terms, **variables}, scope.functions, scope.chosen | variables.keys())
    chosen = tuple(Parameter(name, kind) for name, kind in variables.items())
    return [
        Outcome(outcome.add, outcome.delete, chosen + outcome.chosen, outcome.new)
        for outcome in read_effect(group.arguments[1], inner)
    ]


def read_new(group: Group, scope: Scope) -> str:
    if len(group.arguments) == 1:
        argument = group.arguments[0]
        if isinstance(argument, Word) and argument.text in scope.chosen:
            return argument.text
    raise Misread(group.offset, "'new' takes one variable of an 'exists' around it, such as (exists (?x) (new ?x))")


def check_cost(group: Group, scope: Scope) -> None:
    """Costs are ignored, but only of a declared function, so that a misspelt predicate does not pass for one."""
    if len(group.arguments) != 2:
        raise Misread(group.offset, f"'increase' takes a function and an amount, not {len(group.arguments)} arguments")
    function = as_group(group.arguments[0], "a numeric function")
    if function.head != TOTAL_COST and function.head not in scope.functions:
        found = function.items[0] if function.items else function
        raise Misread(found.offset, f"undeclared function {found}{suggestion(function.head, sorted(scope.functions))}")

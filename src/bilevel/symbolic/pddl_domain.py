"""Reads the text of a PDDL domain.

Effects are conjunctions, `oneof` and the existential effect, expanded into the outcomes an action may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod

from bilevel.symbolic.domain import EQUALITY, NO_FACTS, ROOT_TYPE, Domain, Outcome, Parameter, Predicate, Schema
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    arguments_of,
    as_group,
    as_name,
    bounded,
    suggestion,
)
from bilevel.symbolic.pddl_parts import (
    RESERVED,
    contents,
    negated,
    read_atom,
    read_condition,
    read_definition,
    read_typed,
    refusal,
    split_sections,
    typed_list,
)

DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action", ":event")
ACTION_KEYS = (":parameters", ":precondition", ":effect")
NOTHING_WRITTEN = Group((), 0)
TOTAL_COST = "total-cost"
NEW = "new"

NOTHING = Outcome(NO_FACTS, NO_FACTS)


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions, functions = domain_frame(text)
    return replace(frame, schemas=read_schemas(actions, frame, functions))


def domain_frame(text: str) -> tuple[Domain, list[Group], frozenset[str]]:
    """The domain with events but without actions, the actions as they are written, and the numeric functions."""
    name, parts = read_definition(text, "domain")
    sections = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(contents(sections, ":types"))
    constants = read_typed(contents(sections, ":constants"), "a constant", types)
    predicates = read_predicates(contents(sections, ":predicates"), types)
    functions = read_functions(contents(sections, ":functions"))
    frame = Domain(name, predicates, {}, types, constants)
    actions = sections[":action"]
    events = read_schemas(sections[":event"], frame, functions)
    for action in actions:
        called = schema_name(action)
        if called.text in events:
            raise Misread(called.offset, f"{called} is the name of an event, too; rename one of the two")
    return replace(frame, events=events), actions, functions


def read_types(items: Sequence[Expression]) -> dict[str, str]:
    """Each type's parent; a parent that is not declared itself is a child of `object`."""
    parents: dict[str, str] = {}
    declared: dict[str, Word] = {}
    for name, parent in typed_list(items, "a type"):
        if name.text in declared:
            raise Misread(name.offset, f"type {name} is declared twice")
        declared[name.text] = name
        parents[name.text] = parent.text if parent else ROOT_TYPE
    if parents.pop(ROOT_TYPE, ROOT_TYPE) != ROOT_TYPE:
        raise Misread(declared[ROOT_TYPE].offset, f"'{ROOT_TYPE}' is above all types and cannot have a parent")
    for parent_name in list(parents.values()):
        if parent_name != ROOT_TYPE:
            parents.setdefault(parent_name, ROOT_TYPE)
    try:
        TopologicalSorter({kind: [parent] for kind, parent in parents.items()}).prepare()
    except CycleError as error:
        above = declared[error.args[1][0]]
        raise Misread(above.offset, f"type {above} is above itself") from None
    return parents


def read_predicates(items: Sequence[Expression], types: Mapping[str, str]) -> dict[str, Predicate]:
    """The predicates of `:predicates`, by their names."""
    predicates: dict[str, Predicate] = {}
    for item in items:
        group = as_group(item, "a predicate")
        if not group.items:
            raise Misread(group.offset, "expected a predicate such as (p ?x) but found '()'")
        name = group.items[0]
        if group.head in RESERVED:
            raise Misread(name.offset, f"{name} is a word of PDDL and cannot name a predicate")
        if as_name(name, "a predicate").text in predicates:
            raise Misread(name.offset, f"predicate {name} is declared twice")
        predicates[group.head] = Predicate(group.head, read_parameters(group.arguments, types))
    return predicates


def read_parameters(items: Sequence[Expression], types: Mapping[str, str]) -> tuple[Parameter, ...]:
    """The variables of a typed list."""
    return tuple(Parameter(name, kind) for name, kind in read_typed(items, "a variable", types).items())


def read_functions(items: Sequence[Expression]) -> frozenset[str]:
    """The names of numeric functions; all that is known of them is that they do not matter."""
    groups = [item for item in items if isinstance(item, Group)]
    kinds = [item for item in items if isinstance(item, Word) and item.text not in {"-", "number"}]
    if kinds:
        raise refusal(kinds[0].text, kinds[0].offset, "functions that are not numbers")
    return frozenset(as_name(group.items[0], "a function").text for group in groups if group.items)


def schema_name(section: Group) -> Word:
    """The name of an action or an event."""
    what = f"an {section.head[1:]}"
    if len(section.items) < 2:
        raise Misread(section.offset, f"expected the name of {what} after '{section.head}'")
    return as_name(section.items[1], what)


def read_schemas(sections: Sequence[Group], domain: Domain, functions: frozenset[str]) -> dict[str, Schema]:
    """The actions, or the events, by their names."""
    schemas: dict[str, Schema] = {}
    for section in sections:
        name = schema_name(section)
        if name.text in schemas:
            raise Misread(name.offset, f"{section.head[1:]} {name} is declared twice")
        schemas[name.text] = read_action(name.text, action_parts(section), domain, functions)
    return schemas


def action_parts(action: Group) -> dict[str, Group]:
    """What follows `:parameters`, `:precondition` and `:effect`, in any order."""
    parts: dict[str, Group] = {}
    remaining = iter(action.items[2:])
    for key in remaining:
        if not isinstance(key, Word) or key.text not in ACTION_KEYS:
            near = suggestion(key.text, ACTION_KEYS) if isinstance(key, Word) else ""
            raise Misread(key.offset, f"expected one of {', '.join(ACTION_KEYS)} but found {key}{near}")
        if key.text in parts:
            raise Misread(key.offset, f"{key} is given twice in one {action.head[1:]}")
        value = next(remaining, None)
        if value is None:
            raise Misread(key.offset, f"nothing follows {key}")
        parts[key.text] = as_group(value, f"what follows {key}")
    return {**dict.fromkeys(ACTION_KEYS, NOTHING_WRITTEN), **parts}


def read_action(name: str, parts: Mapping[str, Group], domain: Domain, functions: frozenset[str]) -> Schema:
    """The schema of an action, or of an event, from its parts."""
    parameters = read_parameters(parts[":parameters"].items, domain.types)
    terms = {**domain.constants, **{parameter.name: parameter.type for parameter in parameters}}
    condition = list(read_condition(parts[":precondition"], domain, terms))
    positive, negative = (frozenset(atom for atom, its, _ in condition if its is truth) for truth in (True, False))
    outcomes = read_effect(parts[":effect"], Scope(domain, terms, functions))
    return Schema(name, parameters, positive, tuple(outcomes), negative)


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
        return conjunction(group, group.arguments, [read_effect(part, scope) for part in group.arguments])
    if group.head == "oneof":
        if not group.arguments:
            raise Misread(group.offset, "'oneof' needs at least one effect")
        return bounded(group, [outcome for part in group.arguments for outcome in read_effect(part, scope)], "outcomes")
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


def conjunction(group: Group, arguments: Sequence[Expression], parts: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    """One outcome for each choice from the parts; two existential effects that happen together need other variables."""
    bounded(group, range(prod(map(len, parts))), "outcomes")
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


def quantified(group: Group, domain: Domain, what: str) -> tuple[dict[str, str], Group, Expression]:
    """The variables of `(forall (?x - t) part)` with their types, their list as it is written, and the part."""
    variables, part = arguments_of(group, 2, f"a list of variables and one {what}")
    declared = as_group(variables, "a list of variables")
    return read_typed(declared.items, "a variable", domain.types), declared, part


def read_existential(group: Group, scope: Scope) -> list[Outcome]:
    """The outcomes of `(exists (?x - t) effect)`: nature chooses the variables."""
    variables, declared, effect = quantified(group, scope.domain, "effect")
    for item in declared.items:
        if isinstance(item, Word) and item.text in variables and item.text in scope.terms:
            raise Misread(item.offset, f"variable {item} is already bound; choose another name")
    inner = replace(scope, terms={**scope.terms, **variables}, chosen=scope.chosen | variables.keys())
    chosen = tuple(Parameter(name, kind) for name, kind in variables.items())
    return [
        Outcome(outcome.add, outcome.delete, chosen + outcome.chosen, outcome.new)
        for outcome in read_effect(effect, inner)
    ]


def read_new(group: Group, scope: Scope) -> str:
    """The variable of `(new ?x)`."""
    if len(group.arguments) == 1:
        argument = group.arguments[0]
        if isinstance(argument, Word) and argument.text in scope.chosen:
            return argument.text
    raise Misread(group.offset, "'new' takes one variable of an 'exists' around it, such as (exists (?x) (new ?x))")


def check_cost(group: Group, scope: Scope) -> None:
    """Costs are ignored, but only of a declared function, so that a misspelt predicate does not pass for one."""
    function = as_group(arguments_of(group, 2, "a function and an amount")[0], "a numeric function")
    if function.head != TOTAL_COST and function.head not in scope.functions:
        found = function.items[0] if function.items else function
        raise Misread(found.offset, f"undeclared function {found}{suggestion(function.head, sorted(scope.functions))}")

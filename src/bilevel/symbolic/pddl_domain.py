"""Reads the text of a PDDL domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Parameter, Predicate, Schema
from bilevel.symbolic.expressions import Expression, Group, Misread, Word, as_group, as_name, suggestion
from bilevel.symbolic.pddl_effects import NOTHING, Scope, read_effect
from bilevel.symbolic.pddl_parts import (
    RESERVED,
    contents,
    read_condition,
    read_definition,
    read_typed,
    refusal,
    split_sections,
    typed_list,
)

DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action")
ACTION_KEYS = (":parameters", ":precondition", ":effect")


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions, functions = domain_frame(text)
    return replace(frame, schemas=read_actions(actions, frame, functions))


def domain_frame(text: str) -> tuple[Domain, list[Group], frozenset[str]]:
    """The domain without actions, the actions as they are written, and the numeric functions."""
    name, parts = read_definition(text, "domain")
    sections = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(contents(sections, ":types"))
    constants = read_typed(contents(sections, ":constants"), "a constant", types)
    predicates = read_predicates(contents(sections, ":predicates"), types)
    functions = read_functions(contents(sections, ":functions"))
    for action in sections[":action"]:
        if len(action.items) < 2:
            raise Misread(action.offset, "expected the name of an action after ':action'")
    return Domain(name, predicates, {}, types, constants), sections[":action"], functions


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
    check_acyclic(parents, declared)
    return parents


def check_acyclic(parents: Mapping[str, str], declared: Mapping[str, Word]) -> None:
    sound = {ROOT_TYPE}
    for start in parents:
        path: dict[str, None] = {}
        kind = start
        while kind not in sound:
            if kind in path:
                raise Misread(declared[kind].offset, f"type {declared[kind]} is above itself")
            path[kind] = None
            kind = parents[kind]
        sound.update(path)


def read_predicates(items: Sequence[Expression], types: Mapping[str, str]) -> dict[str, Predicate]:
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
    return tuple(Parameter(name, kind) for name, kind in read_typed(items, "a variable", types).items())


def read_functions(items: Sequence[Expression]) -> frozenset[str]:
    """The names of numeric functions; all that is known of them is that they do not matter."""
    groups = [item for item in items if isinstance(item, Group)]
    kinds = [item for item in items if isinstance(item, Word) and item.text not in {"-", "number"}]
    if kinds:
        raise refusal(kinds[0].text, kinds[0].offset, "functions that are not numbers")
    return frozenset(as_name(group.items[0], "a function").text for group in groups if group.items)


def read_actions(groups: Sequence[Group], domain: Domain, functions: frozenset[str]) -> dict[str, Schema]:
    schemas: dict[str, Schema] = {}
    for group in groups:
        name = as_name(group.items[1], "an action")
        if name.text in schemas:
            raise Misread(name.offset, f"action {name} is declared twice")
        schemas[name.text] = read_action(name.text, action_parts(group), domain, functions)
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
            raise Misread(key.offset, f"{key} is given twice in one action")
        value = next(remaining, None)
        if value is None:
            raise Misread(key.offset, f"nothing follows {key}")
        parts[key.text] = as_group(value, f"what follows {key}")
    return parts


def read_action(name: str, parts: Mapping[str, Group], domain: Domain, functions: frozenset[str]) -> Schema:
    parameters = read_parameters(parts[":parameters"].items if ":parameters" in parts else (), domain.types)
    terms = {**domain.constants, **{parameter.name: parameter.type for parameter in parameters}}
    positive: set[Atom] = set()
    negative: set[Atom] = set()
    if ":precondition" in parts:
        read_condition(parts[":precondition"], domain, terms, positive, negative)
    outcomes = [NOTHING]
    if ":effect" in parts:
        outcomes = read_effect(parts[":effect"], Scope(domain, terms, functions))
    return Schema(name, parameters, frozenset(positive), tuple(outcomes), frozenset(negative))

"""Reads the text of PDDL domains and problems, with care for the position of every word.

Numeric functions and what actions cost are read and ignored. What is wrong is a `Misread` that names its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import zip_longest
from math import prod

from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    ROOT_TYPE,
    Atom,
    Domain,
    Facts,
    Parameter,
    Predicate,
    Problem,
    Schema,
)
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    arguments_of,
    as_group,
    as_name,
    bounded,
    is_number,
    parse_group,
    read_typed,
    suggestion,
)
from bilevel.symbolic.formulas import (
    ADL_WORDS,
    UNSUPPORTED,
    Scope,
    branches,
    cases,
    plain_condition,
    read_atom,
    refusal,
)

RESERVED = frozenset({*ADL_WORDS, "and", "not", "oneof", EQUALITY})  # which cannot name a predicate

DOMAIN_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action", ":event")
PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")
REPEATED = (":action", ":event")  # sections of which there may be many
ACTION_KEYS = (":parameters", ":precondition", ":effect")
NOTHING_WRITTEN = Group((), 0)
MOST_ACTIONS = 20_000  # that a domain is spelt out into
MOST_ARGUMENTS = 10_000  # of one action that are looked at one by one


def read_definition(text: str, kind: str) -> tuple[str, tuple[Expression, ...]]:
    """The name and the sections of `(define (domain NAME) ...)` or `(define (problem NAME) ...)`."""
    definition = parse_group(text)
    if definition.head != "define" or len(definition.items) < 2:
        raise Misread(definition.offset, f"expected '(define ({kind} NAME) ...)' but found {definition}")
    header = as_group(definition.items[1], f"'{kind}' and its name")
    if header.head != kind or len(header.items) != 2:
        raise Misread(header.offset, f"expected '({kind} NAME)' but found {header}")
    return as_name(header.items[1], f"the {kind}").text, definition.items[2:]


def split_sections(parts: Sequence[Expression], known: Collection[str]) -> tuple[dict[str, Group], list[Group]]:
    """The sections by keyword, empty where there is none, and the actions and events, of which there may be many."""
    sections, repeated = dict.fromkeys(known, NOTHING_WRITTEN), list[Group]()
    for part in parts:
        section = as_group(part, "a section such as (:keyword ...)")
        keyword = section.head
        if keyword in UNSUPPORTED and keyword.startswith(":"):
            raise refusal(keyword, section.items[0].offset)
        if keyword not in sections:
            found = section.items[0] if keyword else section
            raise Misread(found.offset, f"unknown section {found}{suggestion(keyword, known)}")
        if keyword in REPEATED:
            repeated.append(section)
        elif sections[keyword].items:
            raise Misread(section.offset, f"section '{keyword}' is given twice")
        else:
            sections[keyword] = section
    return sections, repeated


# Domains


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions = domain_frame(text)
    return replace(frame, schemas=read_schemas(actions, Scope(domain=frame, terms=frame.constants)))


def domain_frame(text: str) -> tuple[Domain, list[Group]]:
    """The domain with events but without actions, and the actions as they are written."""
    name, parts = read_definition(text, "domain")
    sections, repeated = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(sections[":types"])
    constants = read_typed(sections[":constants"].arguments, "a constant", types)
    frame = Domain(name, read_predicates(sections[":predicates"].arguments, types), {}, types, constants)
    actions = [section for section in repeated if section.head == ":action"]
    events = [section for section in repeated if section.head == ":event"]
    frame = replace(frame, events=read_schemas(events, Scope(domain=frame, terms=constants)))
    for called in map(schema_name, actions):
        if called.text in frame.events:
            raise Misread(called.offset, f"{called} is the name of an event, too; rename one of the two")
    return frame, actions


def read_types(section: Group) -> dict[str, str]:
    """Each type's parent; a parent that is not declared itself is a child of `object`."""
    parents = read_typed(section.arguments, "a type", None)
    if parents.pop(ROOT_TYPE, ROOT_TYPE) != ROOT_TYPE:
        raise Misread(section.offset, f"'{ROOT_TYPE}' is above all types and cannot have a parent")
    parents |= {parent: ROOT_TYPE for parent in parents.values() if parent not in (ROOT_TYPE, *parents)}
    try:
        TopologicalSorter({kind: [parent] for kind, parent in parents.items()}).prepare()
    except CycleError as error:
        raise Misread(section.offset, f"type '{error.args[1][0]}' is above itself") from None
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


def schema_name(section: Group) -> Word:
    """The name of an action or an event."""
    what = f"an {section.head[1:]}"
    if len(section.items) < 2:
        raise Misread(section.offset, f"expected the name of {what} after '{section.head}'")
    return as_name(section.items[1], what)


def action_parts(action: Group) -> dict[str, Group]:
    """What follows `:parameters`, `:precondition` and `:effect`, in any order."""
    parts: dict[str, Group] = {}
    for key, value in zip_longest(action.items[2::2], action.items[3::2]):
        if not isinstance(key, Word) or key.text not in ACTION_KEYS:
            near = suggestion(key.text, ACTION_KEYS) if isinstance(key, Word) else ""
            raise Misread(key.offset, f"expected one of {', '.join(ACTION_KEYS)} but found {key}{near}")
        if key.text in parts or value is None:
            fault = "is given twice in one" if key.text in parts else "is followed by nothing in this"
            raise Misread(key.offset, f"{key} {fault} {action.head[1:]}")
        parts[key.text] = as_group(value, f"what follows {key}")
    return {**dict.fromkeys(ACTION_KEYS, NOTHING_WRITTEN), **parts}


def read_schemas(sections: Sequence[Group], scope: Scope) -> dict[str, Schema]:
    """The actions, or the events, by their names; those that have to be spelt out in several cases are numbered."""
    found: list[tuple[Group, Schema]] = []
    for section in sections:
        found += ((section, schema) for schema in _cases_of(section, scope))
        if len(found) > MOST_ACTIONS:
            raise Misread(section.offset, f"with this action the domain has more than {MOST_ACTIONS} cases")
    namesakes, numbers = Counter(schema.name for _, schema in found), Counter[str]()
    schemas: dict[str, Schema] = {}
    for section, schema in found:
        name = schema.name
        if namesakes[name] > 1 and scope.objects is None:
            raise Misread(section.offset, f"{section.head[1:]} '{name}' is declared twice")
        numbers[name] += 1
        named = replace(schema, name=f"{name}:{numbers[name]}") if namesakes[name] > 1 else schema
        schemas[named.name] = named
    return schemas


def _cases_of(section: Group, scope: Scope) -> Iterator[Schema]:
    """Yield a schema for each case of the action; there is one unless it is spelt out."""
    name, parts = schema_name(section).text, action_parts(section)
    parameters = read_parameters(parts[":parameters"].items, scope.domain.types)
    types = {parameter.name: parameter.type for parameter in parameters}
    precondition, effect = parts[":precondition"], parts[":effect"]
    for bound in _bound_scopes(section, effect, types, scope.with_terms(types)):
        settled = frozenset(Atom(EQUALITY, pair) for pair in bound.binding.items())
        spelt_out = scope.objects is not None
        conditions = cases(precondition, bound) if spelt_out else [plain_condition(precondition, bound)]
        found = [branch for each in conditions for branch in branches(effect, bound, each)]
        bounded(section, found, "cases")
        found.sort(key=lambda branch: len(branch[0].negative))  # the same order for `p` and for `not p`
        for case, outcomes in found:
            if not (spelt_out and case.positive & case.negative):
                yield Schema(name, parameters, case.positive | settled, tuple(outcomes), case.negative)


def _bound_scopes(group: Group, effect: Expression, types: Mapping[str, str], scope: Scope) -> list[Scope]:
    """Objects for the parameters about which `when` asks what never changes: that settles it once and for all."""
    conditions = [when.arguments[0] for when in _groups(effect) if when.head == "when" and when.arguments]
    atoms = [atom for condition in conditions for atom in _groups(condition)]
    decided = [atom for atom in atoms if atom.head in (EQUALITY, *scope.static)]
    asked = {word.text for atom in decided for word in atom.arguments if isinstance(word, Word)}
    variables = {name: kind for name, kind in types.items() if name in asked}
    if scope.objects is None or prod(len(scope.fitting(kind)) for kind in variables.values()) > MOST_ARGUMENTS:
        return [scope]
    return [replace(each, bindings=1) for each in scope.instances(group, variables)]


def _groups(expression: Expression) -> Iterator[Group]:
    if isinstance(expression, Group):
        yield expression
        for item in expression.items:
            yield from _groups(item)


# Problems


def problem_from_text(text: str, domain: Domain) -> Problem:
    """The problem that the text defines; `Misread` where it does not define one for this domain."""
    problem, goal = problem_frame(text, domain)
    wanted = plain_condition(goal, Scope(domain=domain, terms=problem.all_objects(domain)))
    if wanted.negative or any(atom.predicate == EQUALITY for atom in wanted.positive):
        raise Misread(goal.offset, "only `bilevel plan` reads negative goals and equality in goals")
    return replace(problem, goal=wanted.positive)


def problem_frame(text: str, domain: Domain) -> tuple[Problem, Expression]:
    """The problem without its goal, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections, _ = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword].items:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    wanted = as_name(arguments_of(sections[":domain"], 1, "the name of the domain")[0], "the domain")
    if wanted.text != domain.name:
        near = suggestion(wanted.text, [domain.name])
        raise Misread(wanted.offset, f"the problem is for domain {wanted}, not for '{domain.name}'{near}")
    objects = read_objects(sections[":objects"], domain)
    problem = Problem(name, domain.name, objects, NO_FACTS, NO_FACTS)
    state = read_state(sections[":init"], Scope(domain=domain, terms=problem.all_objects(domain)))
    return replace(problem, state=state), arguments_of(sections[":goal"], 1, "one condition")[0]


def read_objects(section: Group, domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(section.arguments, "an object", domain.types)
    for name, kind in domain.constants.items():
        if objects.pop(name, kind) != kind:
            raise Misread(section.offset, f"object '{name}' is a constant of type '{kind}' in the domain")
    return objects


def read_state(section: Group, scope: Scope) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts, absent = set[Atom](), set[Atom]()
    for item in section.arguments:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent.add(read_atom(as_group(arguments_of(group, 1, "one fact")[0], "a fact"), scope))
        elif group.head == EQUALITY:
            check_numeric_value(group)
        elif group.head == "at" and isinstance(group.items[-1], Group):
            raise Misread(group.offset, "a timed initial literal: facts that change at a time cannot be read")
        else:
            facts.add(read_atom(group, scope))
    for atom in sorted(facts & absent):
        raise Misread(section.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which is ignored."""
    function, value = arguments_of(group, 2, "a function and its value, as in (= (total-cost) 0)")
    if not (isinstance(function, Group) and function.head and isinstance(value, Word) and is_number(value.text)):
        raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")

"""Reads the text of PDDL domains and problems, with care for the position of every word.

Numeric functions and what actions cost are read and ignored. What is wrong is a `Misread` that names its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
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


def split_sections(parts: Sequence[Expression], known: Collection[str]) -> dict[str, list[Group]]:
    """The sections by keyword; only actions and events may come more than once."""
    sections: dict[str, list[Group]] = {keyword: [] for keyword in known}
    for part in parts:
        section = as_group(part, "a section such as (:keyword ...)")
        keyword = section.head
        if keyword in UNSUPPORTED and keyword.startswith(":"):
            raise refusal(keyword, section.items[0].offset)
        if keyword not in sections:
            found = section.items[0] if keyword else section
            raise Misread(found.offset, f"unknown section {found}{suggestion(keyword, known)}")
        if sections[keyword] and keyword not in REPEATED:
            raise Misread(section.offset, f"section '{keyword}' is given twice")
        sections[keyword].append(section)
    return sections


def contents(sections: Mapping[str, list[Group]], keyword: str) -> tuple[Expression, ...]:
    """What stands in the section, nothing where there is no such section."""
    return sections[keyword][0].arguments if sections[keyword] else ()


# Domains


def domain_from_text(text: str) -> Domain:
    """The domain that the text defines; `Misread` where it does not define one."""
    frame, actions = domain_frame(text)
    return replace(frame, schemas=read_schemas(actions, Scope(domain=frame, terms=frame.constants)))


def domain_frame(text: str) -> tuple[Domain, list[Group]]:
    """The domain with events but without actions, and the actions as they are written."""
    name, parts = read_definition(text, "domain")
    sections = split_sections(parts, DOMAIN_SECTIONS)
    types = read_types(sections[":types"])
    constants = read_typed(contents(sections, ":constants"), "a constant", types)
    frame = Domain(name, read_predicates(contents(sections, ":predicates"), types), {}, types, constants)
    events = read_schemas(sections[":event"], Scope(domain=frame, terms=constants))
    for called in map(schema_name, sections[":action"]):
        if called.text in events:
            raise Misread(called.offset, f"{called} is the name of an event, too; rename one of the two")
    return replace(frame, events=events), sections[":action"]


def read_types(sections: Sequence[Group]) -> dict[str, str]:
    """Each type's parent; a parent that is not declared itself is a child of `object`."""
    parents: dict[str, str] = {}
    for section in sections:
        parents = read_typed(section.arguments, "a type", None)
        if parents.pop(ROOT_TYPE, ROOT_TYPE) != ROOT_TYPE:
            raise Misread(section.offset, f"'{ROOT_TYPE}' is above all types and cannot have a parent")
        above = [parent for parent in parents.values() if parent not in (ROOT_TYPE, *parents)]
        parents |= dict.fromkeys(above, ROOT_TYPE)
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
    for atom in sorted(wanted.negative | wanted.positive):
        if atom in wanted.negative or atom.predicate == EQUALITY:
            raise Misread(
                goal.offset,
                f"that {atom} shall hold or shall not is not supported here: only `bilevel plan` reads such goals",
            )
    return replace(problem, goal=wanted.positive)


def problem_frame(text: str, domain: Domain) -> tuple[Problem, Expression]:
    """The problem without its goal, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword]:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    wanted = as_name(arguments_of(sections[":domain"][0], 1, "the name of the domain")[0], "the domain")
    if wanted.text != domain.name:
        near = suggestion(wanted.text, [domain.name])
        raise Misread(wanted.offset, f"the problem is for domain {wanted}, not for '{domain.name}'{near}")
    objects = read_objects(contents(sections, ":objects"), domain)
    problem = Problem(name, domain.name, objects, NO_FACTS, NO_FACTS)
    state = read_state(contents(sections, ":init"), Scope(domain=domain, terms=problem.all_objects(domain)))
    return replace(problem, state=state), arguments_of(sections[":goal"][0], 1, "one condition")[0]


def read_objects(items: Sequence[Expression], domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(items, "an object", domain.types)
    for item in items:
        if isinstance(item, Word) and item.text in domain.constants and item.text in objects:
            kind = domain.constants[item.text]
            if objects.pop(item.text) != kind:
                raise Misread(item.offset, f"object {item} is a constant of type '{kind}' in the domain")
    return objects


def read_state(items: Sequence[Expression], scope: Scope) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts: set[Atom] = set()
    absent: dict[Atom, Group] = {}
    for item in items:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent[read_atom(as_group(arguments_of(group, 1, "one fact")[0], "a fact"), scope)] = group
        elif group.head == EQUALITY:
            check_numeric_value(group)
        else:
            facts.add(read_atom(group, scope))
    for atom, group in absent.items():
        if atom in facts:
            raise Misread(group.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which is ignored."""
    function, value = arguments_of(group, 2, "a function and its value, as in (= (total-cost) 0)")
    if not (isinstance(function, Group) and function.head and isinstance(value, Word) and is_number(value.text)):
        raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")

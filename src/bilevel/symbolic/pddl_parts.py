"""What PDDL domains and problems have in common: definitions with sections, typed lists, atoms, conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, Domain, is_variable
from bilevel.symbolic.expressions import (
    Expression,
    Group,
    Misread,
    Word,
    arguments_of,
    as_group,
    as_name,
    as_variable,
    is_number,
    parse_group,
    suggestion,
)

REPEATED = (":action", ":event")  # sections of which there may be many

# Words of PDDL that cannot name a predicate.
RESERVED = frozenset({"and", "not", "or", "imply", "forall", "exists", "when", "oneof", EQUALITY})

UNSUPPORTED = {
    "or": "disjunctions",
    "imply": "implications",
    "forall": "universal quantifiers",
    "exists": "quantifiers outside effects",
    "when": "conditional effects",
    "oneof": "choices outside effects",
    "preference": "preferences",
    "probabilistic": "probabilistic effects",
    "unknown": "partial observability",
    **dict.fromkeys(("<", ">", "<=", ">="), "numeric conditions"),
    **dict.fromkeys(("increase", "decrease", "assign", "scale-up", "scale-down"), "numeric fluents"),
    **dict.fromkeys((":derived", ":axiom"), "derived predicates"),
    ":durative-action": "durative actions",
    ":constraints": "constraints",
}


def refusal(word: str, offset: int, feature: str) -> Misread:
    """What to raise for a feature that is not supported."""
    return Misread(offset, f"'{word}' is not supported: {feature} cannot be read")


def read_definition(text: str, kind: str) -> tuple[str, tuple[Expression, ...]]:
    """The name and the sections of `(define (domain NAME) ...)` or `(define (problem NAME) ...)`."""
    definition = parse_group(text)
    if definition.head != "define":
        raise Misread(definition.offset, f"expected '(define ...)' but found {definition}")
    if len(definition.items) < 2:
        raise Misread(definition.offset, f"expected '({kind} NAME)' after 'define'")
    header = as_group(definition.items[1], f"'{kind}' and its name")
    if header.head in {"domain", "problem"} - {kind}:
        raise Misread(header.offset, f"this file defines a {header.head}; expected a {kind}")
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
            raise refusal(keyword, section.items[0].offset, UNSUPPORTED[keyword])
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


def typed_list(items: Sequence[Expression], what: str) -> list[tuple[Word, Word | None]]:
    """The names of `a b - t c` with their types, `None` where no type is given; `?x` where `what` is a variable."""
    typed: list[tuple[Word, Word | None]] = []
    untyped: list[Word] = []
    remaining = iter(items)
    for item in remaining:
        if isinstance(item, Word) and item.text == "-":
            kind = next(remaining, None)
            if kind is None or not untyped:
                raise Misread(item.offset, f"'-' needs {'a type after it' if untyped else 'names before it'}")
            if isinstance(kind, Group) and kind.head == "either":
                raise refusal("either", kind.offset, "types that are one of several")
            typed += ((name, as_name(kind, "a type")) for name in untyped)
            untyped = []
        else:
            untyped.append(as_variable(item) if what == "a variable" else as_name(item, what))
    return typed + [(name, None) for name in untyped]


def read_typed(items: Sequence[Expression], what: str, types: Mapping[str, str]) -> dict[str, str]:
    """A typed list as a mapping from each name to its type, which must be known."""
    typed: dict[str, str] = {}
    for name, kind in typed_list(items, what):
        if name.text in typed:
            raise Misread(name.offset, f"{name} is declared twice")
        if kind is not None and kind.text != ROOT_TYPE and kind.text not in types:
            raise Misread(kind.offset, f"unknown type {kind}{suggestion(kind.text, [*types, ROOT_TYPE])}")
        typed[name.text] = ROOT_TYPE if kind is None else kind.text
    return typed


def read_atom(group: Group, domain: Domain, terms: Mapping[str, str]) -> Atom:
    """A declared predicate with arguments that fit it; `terms` holds the types of all variables and objects at hand."""
    predicate = domain.predicates.get(group.head)
    if predicate is None:
        raise unknown_predicate(group, domain)
    if len(group.arguments) != predicate.arity:
        raise Misread(
            group.offset, f"predicate '{predicate.name}' takes {predicate.arity} arguments, not {len(group.arguments)}"
        )
    names = tuple(known_term(argument, terms) for argument in group.arguments)
    for index, (argument, name) in enumerate(zip(group.arguments, names, strict=True)):
        kind, wanted = terms[name], predicate.parameters[index].type
        # A variable fits where some object of its type may; an object fits where its type does.
        if not (domain.is_subtype(kind, wanted) or (is_variable(name) and domain.is_subtype(wanted, kind))):
            raise Misread(
                argument.offset,
                f"{argument} is of type '{kind}' but argument {index + 1} of '{predicate.name}' is of type '{wanted}'",
            )
    return Atom(predicate.name, names)


def unknown_predicate(group: Group, domain: Domain) -> Misread:
    """What to raise for a group that should be an atom and is none."""
    if group.head in UNSUPPORTED:
        return refusal(group.head, group.items[0].offset, UNSUPPORTED[group.head])
    if not group.head:
        return Misread(group.offset, "expected a predicate and its arguments such as (p a b)")
    return Misread(
        group.items[0].offset, f"undeclared predicate {group.items[0]}{suggestion(group.head, domain.predicates)}"
    )


def known_term(argument: Expression, terms: Mapping[str, str]) -> str:
    """The object or variable that an argument names, which must be known."""
    if isinstance(argument, Group):
        raise Misread(argument.offset, f"expected an object or a variable but found {argument}")
    if argument.text not in terms:
        what = "unbound variable" if is_variable(argument.text) else "unknown object"
        alike = (term for term in terms if is_variable(term) == is_variable(argument.text))
        raise Misread(argument.offset, f"{what} {argument}{suggestion(argument.text, alike)}")
    return argument.text


def read_equality(group: Group, terms: Mapping[str, str]) -> Atom:
    """The atom of `(= a b)`."""
    if any(isinstance(item, Group) or (is_number(item.text) and item.text not in terms) for item in group.arguments):
        raise refusal(EQUALITY, group.offset, "numeric conditions")
    return Atom(EQUALITY, tuple(known_term(argument, terms) for argument in arguments_of(group, 2, "2 arguments")))


def read_condition(
    expression: Expression, domain: Domain, terms: Mapping[str, str]
) -> Iterator[tuple[Atom, bool, Group]]:
    """The atoms of a conjunction, whether they shall hold or stand under `not`, and where."""
    group = as_group(expression, "a condition")
    if group.head == "and":
        for part in group.arguments:
            yield from read_condition(part, domain, terms)
    elif group.head == "not":
        yield read_literal(negated(group), domain, terms), False, group
    elif group.items:
        yield read_literal(group, domain, terms), True, group


def negated(group: Group) -> Group:
    """The atom under a `not`."""
    inner = as_group(arguments_of(group, 1, "one condition or effect")[0], "an atom")
    if inner.head in {"and", "not"}:
        raise refusal(inner.head, inner.offset, f"'{inner.head}' inside 'not'")
    return inner


def read_literal(group: Group, domain: Domain, terms: Mapping[str, str]) -> Atom:
    """The atom of a group, or its equality."""
    return read_equality(group, terms) if group.head == EQUALITY else read_atom(group, domain, terms)

"""Reads the text of a PDDL problem with care for positions.

`bulk_reading` reads the same language many times faster; it leaves to this reader whatever is written unusually.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Problem
from bilevel.symbolic.expressions import Expression, Group, Misread, Word, as_group, as_name, is_number, suggestion
from bilevel.symbolic.pddl_parts import (
    contents,
    negated,
    read_atom,
    read_condition,
    read_definition,
    read_typed,
    refusal,
    split_sections,
)

PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")


def problem_from_text(text: str, domain: Domain) -> Problem:
    """The problem that the text defines; `Misread` where it does not define one for this domain."""
    name, objects, state, goal = problem_frame(text, domain)
    return Problem(name, domain.name, objects, state, read_goal(goal, domain, {**domain.constants, **objects}))


def problem_frame(text: str, domain: Domain) -> tuple[str, dict[str, str], Facts, Group]:
    """The name, the objects without the domain's constants, the first state, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword]:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    check_domain_name(sections[":domain"][0], domain)
    objects = read_objects(contents(sections, ":objects"), domain)
    state = read_state(contents(sections, ":init"), domain, {**domain.constants, **objects})
    return name, objects, state, sections[":goal"][0]


def check_domain_name(section: Group, domain: Domain) -> None:
    if len(section.arguments) != 1:
        raise Misread(section.offset, "expected '(:domain NAME)'")
    name = as_name(section.arguments[0], "the domain")
    if name.text != domain.name:
        raise Misread(
            name.offset,
            f"the problem is for domain {name}, not for '{domain.name}'{suggestion(name.text, [domain.name])}",
        )


def read_objects(items: Sequence[Expression], domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(items, "an object", domain.types)
    for item in items:
        if isinstance(item, Word) and item.text in domain.constants and item.text in objects:
            kind = domain.constants[item.text]
            if objects.pop(item.text) != kind:
                raise Misread(item.offset, f"object {item} is a constant of type '{kind}' in the domain")
    return objects


def read_state(items: Sequence[Expression], domain: Domain, terms: Mapping[str, str]) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts: set[Atom] = set()
    absent: dict[Atom, Group] = {}
    for item in items:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent[read_atom(negated(group), domain, terms)] = group
        elif group.head == EQUALITY:
            check_numeric_value(group)
        elif is_timed(group):
            raise refusal("at", group.offset, "timed initial literals")
        else:
            facts.add(read_atom(group, domain, terms))
    for atom, group in absent.items():
        if atom in facts:
            raise Misread(group.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def is_timed(group: Group) -> bool:
    return (
        group.head == "at"
        and len(group.items) == 3
        and isinstance(group.items[1], Word)
        and is_number(group.items[1].text)
        and isinstance(group.items[2], Group)
    )


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which is ignored."""
    if len(group.arguments) == 2:
        function, value = group.arguments
        if isinstance(function, Group) and function.items and isinstance(value, Word) and is_number(value.text):
            for item in function.items:
                as_name(item, "a function or an object")
            return
    raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")


def read_goal(section: Group, domain: Domain, terms: Mapping[str, str]) -> Facts:
    if len(section.arguments) != 1:
        raise Misread(section.offset, f"':goal' takes one condition, not {len(section.arguments)}")
    goal = set()
    for atom, wanted, group in read_condition(section.arguments[0], domain, terms):
        if not wanted or atom.predicate == EQUALITY:
            raise refusal(group.head, group.offset, "equality in goals" if wanted else "negative goals")
        goal.add(atom)
    return frozenset(goal)

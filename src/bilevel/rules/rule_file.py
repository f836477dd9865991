"""Rules in a text file that a person can read, edit and load again.

    # Rules for the domain blocks
    # learned from 5 problems, seed 0
    variables: ?x - block, ?l - place

    1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
    2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)

A variable means the same type in the whole file; one that is not declared is an `object`. `not p(?x)` asks for an
absent fact, `?x != ?y` for different objects; a name without `?` is a constant. `rule_file_syntax` has the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file_syntax import Token, WrittenAtom, WrittenFile, WrittenRule, parse_syntax
from bilevel.symbolic.domain import (
    EQUALITY,
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Parameter,
    Predicate,
    Schema,
    is_variable,
)
from bilevel.symbolic.expressions import read_text, suggestion

_DOMAIN_LINE = re.compile(r"^\s*#\s*Rules for the domain (\S+)\s*$", re.MULTILINE)
_LINE_LENGTH = 100


def domain_line(domain_name: str) -> str:
    """Return the header line by which a rule file names its domain."""
    return f"Rules for the domain {domain_name}"


# Writing


def format_rules(rules: Sequence[Rule], header_lines: Sequence[str] = ()) -> str:
    """Return the text of a rule file; a variable with two types among the rules is renamed (?x, ?x2, …)."""
    rules = consistent_names(rules)
    comments = [f"# {line}".rstrip() for text in header_lines for line in text.splitlines() or [""]]
    declarations = _declarations(rules)
    blocks = [comments + declarations, [str(rule) for rule in rules]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _declarations(rules: Sequence[Rule]) -> list[str]:
    """Return the `variables:` lines, filled up to the line length."""
    types = {variable.name: variable.type for rule in rules for variable in rule.variables}
    lines: list[str] = []
    for entry in (f"{name} - {kind}" for name, kind in types.items() if kind != ROOT_TYPE):
        if lines and len(lines[-1]) + len(entry) + 2 <= _LINE_LENGTH:
            lines[-1] += f", {entry}"
        else:
            lines.append(f"variables: {entry}")
    return lines


def consistent_names(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the same rules in normal order, renamed where one variable has different types in different rules."""
    names: dict[Parameter, str] = {}
    consistent = []
    for rule in map(in_normal_order, rules):
        for variable in rule.variables:
            numbered = (f"{variable.name}{n}" for n in count(2))
            candidates = (name for name in chain([variable.name], numbered) if name not in names.values())
            names[variable] = names.get(variable) or next(candidates)
        renaming = {variable.name: names[variable] for variable in rule.variables}
        is_clashing = any(old != new for old, new in renaming.items())
        consistent.append(in_normal_order(rule.renamed(renaming)) if is_clashing else rule)
    return tuple(consistent)


def in_normal_order(rule: Rule) -> Rule:
    """Return the rule with its variables in the order that reading a file gives: the action's, then by type and name.

    Variables that the rule does not use are dropped.
    """
    types = rule.types
    others = {term for atom in rule.atoms for term in atom.terms}
    ordered = [*rule.action.arguments, *sorted(others, key=lambda term: (types.get(term, ROOT_TYPE), len(term), term))]
    names = dict.fromkeys(term for term in ordered if is_variable(term))
    return replace(rule, variables=tuple(Parameter(name, types.get(name, ROOT_TYPE)) for name in names))


# Reading


def read_rules(path: Path | str, domain: Domain | None = None) -> tuple[Rule, ...]:
    """Return the rules of a file, which must fit the domain if one is given."""
    return parse_rules(read_text(path), str(path), domain)


def parse_rules(text: str, filename: str = "rules", domain: Domain | None = None) -> tuple[Rule, ...]:
    """Return the rules of a text in file order, or raise `BadInput` with line and column for what is wrong.

    With a domain, names, arities and types must fit it.
    """
    file = parse_syntax(text, filename)
    types: dict[str, str] = {}
    for variable, kind in file.declarations:
        if types.setdefault(variable.text, kind.text) != kind.text:
            variable.fail(f"{variable.text} is declared as '{types[variable.text]}' and as '{kind.text}'")
    if domain is not None:
        try:
            _check(file, types, domain)
        except BadInput as error:
            named = _DOMAIN_LINE.search(text)
            if named is None or named[1] == domain.name:
                raise
            raise BadInput(f"{error}; these rules are for the domain '{named[1]}', not '{domain.name}'") from None
    return tuple(_rule(rule, types) for rule in file.rules)


def check_rules(rules: Sequence[Rule], domain: Domain) -> None:
    """Raise `BadInput` where the rules do not fit the domain."""
    parse_rules(format_rules(rules), domain=domain)


def require_open_world(rules: Sequence[Rule]) -> None:
    """Refuse rules that test for an absent fact: where absent means unknown, they have no meaning."""
    for rule in rules:
        if rule.absent:
            raise BadInput(
                f"rule '{rule}' tests for the absent fact {min(rule.absent)}; "
                "in an open world an absent fact is unknown, so remove that condition"
            )


def _rule(written: WrittenRule, types: Mapping[str, str]) -> Rule:
    def atoms(*kinds: str) -> Facts:
        found = (atom for atom in written.conditions if atom.kind in kinds)
        return frozenset(
            Atom(EQUALITY if a.kind == "!=" else a.name.text, tuple(t.text for t in a.terms)) for a in found
        )

    rule = Rule(
        priority=int(written.priority.text),
        variables=tuple(Parameter(name, kind) for name, kind in types.items()),
        state_condition=atoms(""),
        goal_condition=atoms("goal"),
        action=Action(written.action.name.text, tuple(term.text for term in written.action.terms)),
        negative_condition=atoms("not", "!="),
    )
    return in_normal_order(rule)


def _check(file: WrittenFile, declared: Mapping[str, str], domain: Domain) -> None:
    """Raise `BadInput` for the first name, number of arguments or type that does not fit the domain."""
    known_types = {ROOT_TYPE, *domain.types, *domain.types.values()}
    for _, named in file.declarations:
        if named.text not in known_types:
            named.fail(f"unknown type '{named.text}'{suggestion(named.text, sorted(known_types))}")
    types = {**domain.constants, **declared}
    for rule in file.rules:
        implied: dict[str, set[str]] = {}  # what the facts and goals of the rule say of its terms
        for atom in rule.conditions:
            _check_constants(atom, domain)
            if atom.kind != "!=":
                for term, wanted in _arguments(atom, "predicate", domain.predicates):
                    kind = types.get(term.text, ROOT_TYPE)
                    # An `item` may turn out to be the `block` that the predicate asks for, but a `place` never will.
                    if not domain.is_subtype(kind, wanted) and not domain.is_subtype(wanted, kind):
                        term.fail(f"{term.text} is of type '{kind}', but {atom.name.text} is about a '{wanted}'")
                    if atom.kind != "not":
                        implied.setdefault(term.text, set()).add(wanted)
        _check_constants(rule.action, domain)
        for term, wanted in _arguments(rule.action, "action", domain.schemas):
            kind = types.get(term.text, ROOT_TYPE)
            if not any(domain.is_subtype(known, wanted) for known in {kind, *implied.get(term.text, ())}):
                term.fail(f"{term.text} is of type '{kind}', but {rule.action.name.text} needs a '{wanted}'")


def _arguments(
    atom: WrittenAtom, what: str, known: Mapping[str, Predicate] | Mapping[str, Schema]
) -> list[tuple[Token, str]]:
    """Return the terms of an atom with the types that its predicate or action declares for them."""
    name = atom.name.text
    if name not in known:
        atom.name.fail(f"unknown {what} '{name}'{suggestion(name, sorted(known))}")
    wanted = [parameter.type for parameter in known[name].parameters]
    if len(atom.terms) != len(wanted):
        plural = "argument" if len(wanted) == 1 else "arguments"
        atom.name.fail(f"'{name}' has {len(wanted)} {plural}, not {len(atom.terms)}")
    return list(zip(atom.terms, wanted, strict=True))


def _check_constants(atom: WrittenAtom, domain: Domain) -> None:
    for term in atom.terms:
        if not is_variable(term.text) and term.text not in domain.constants:
            hint = suggestion(term.text, domain.constants) or f"; a variable begins with '?': ?{term.text}"
            term.fail(f"the domain has no constant '{term.text}'{hint}")

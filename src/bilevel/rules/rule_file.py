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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file_syntax import Condition, FileSyntax, RuleSyntax, Token, parse_syntax
from bilevel.symbolic.domain import (
    EQUALITY,
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Parameter,
    is_variable,
)
from bilevel.symbolic.expressions import read_text, suggestion

_DOMAIN_LINE = re.compile(r"Rules for the domain (\S+)")
_LINE_LENGTH = 100


@dataclass(frozen=True)
class RuleFile:
    """The rules in file order, the comments above the first of them, and the domain these name, if they do."""

    rules: tuple[Rule, ...]
    header: tuple[str, ...] = ()
    domain_name: str | None = None
    syntax: FileSyntax = field(default=FileSyntax((), ()), compare=False, repr=False)


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
    types = {variable.name: variable.type for variable in rule.variables}
    conditions = rule.state_condition | rule.negative_condition | rule.goal_condition
    others = {term for atom in conditions for term in atom.terms}
    ordered = [*rule.action.arguments, *sorted(others, key=lambda term: (types.get(term, ""), len(term), term))]
    names = dict.fromkeys(term for term in ordered if is_variable(term))
    return replace(rule, variables=tuple(Parameter(name, types.get(name, ROOT_TYPE)) for name in names))


# Reading


def read_rules(path: Path | str) -> RuleFile:
    return parse_rules(read_text(path), str(path))


def parse_rules(text: str, filename: str = "rules") -> RuleFile:
    """Return the rules of a text, or raise `BadInput` with line and column for what is wrong in any domain."""
    syntax = parse_syntax(text, filename)
    types = _declared_types(syntax)
    header = tuple(_header(text))
    named = (_DOMAIN_LINE.fullmatch(line) for line in header)
    rules = tuple(_rule(rule, types) for rule in syntax.rules)
    return RuleFile(rules, header, next((match[1] for match in named if match), None), syntax)


def _header(text: str) -> Iterator[str]:
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            yield stripped.removeprefix("#").strip()
        elif stripped:
            return


def _declared_types(syntax: FileSyntax) -> dict[str, str]:
    types: dict[str, str] = {}
    for variable, kind in syntax.declarations:
        if types.setdefault(variable.text, kind.text) != kind.text:
            variable.fail(f"{variable.text} is declared as '{types[variable.text]}' and as '{kind.text}'")
    return types


def _rule(syntax: RuleSyntax, types: dict[str, str]) -> Rule:
    def atoms(*kinds: str) -> Facts:
        return frozenset(_atom(condition) for condition in syntax.conditions if condition.kind in kinds)

    terms = [term.text for condition in (syntax.action, *syntax.conditions) for term in condition.terms]
    rule = Rule(
        priority=int(syntax.priority.text),
        variables=tuple(Parameter(term, types.get(term, ROOT_TYPE)) for term in terms if is_variable(term)),
        state_condition=atoms(""),
        goal_condition=atoms("goal"),
        action=Action(syntax.action.name.text, tuple(term.text for term in syntax.action.terms)),
        negative_condition=atoms("not", "!="),
    )
    return in_normal_order(rule)


def _atom(condition: Condition) -> Atom:
    predicate = EQUALITY if condition.kind == "!=" else condition.name.text
    return Atom(predicate, tuple(term.text for term in condition.terms))


# Checking


def require_open_world(rules: Sequence[Rule]) -> None:
    """Refuse rules that test for an absent fact: where absent means unknown, they have no meaning."""
    for rule in rules:
        if rule.absent:
            raise BadInput(
                f"rule '{rule}' tests for the absent fact {min(rule.absent)}; "
                "in an open world an absent fact is unknown, so remove that condition"
            )


def check_rules(file: RuleFile, domain: Domain) -> None:
    """Names, arities and types fit the domain, or `BadInput` says where they do not."""
    try:
        _check_syntax(file.syntax, domain)
    except BadInput as error:
        if file.domain_name in (None, domain.name):
            raise
        raise BadInput(f"{error}; these rules are for the domain '{file.domain_name}', not '{domain.name}'") from None


def _check_syntax(syntax: FileSyntax, domain: Domain) -> None:
    known_types = {ROOT_TYPE, *domain.types, *domain.types.values()}
    for _, kind in syntax.declarations:
        if kind.text not in known_types:
            kind.fail(f"unknown type '{kind.text}'{suggestion(kind.text, sorted(known_types))}")
    types = dict(domain.constants)
    types.update((variable.text, kind.text) for variable, kind in syntax.declarations)
    for rule in syntax.rules:
        for condition in rule.conditions:
            _check_condition(condition, types, domain)
        _check_action(rule, types, domain)


def _check_condition(condition: Condition, types: dict[str, str], domain: Domain) -> None:
    for term in condition.terms:
        _check_constant(term, types)
    if condition.kind == "!=":
        return
    name = condition.name
    predicate = domain.predicates.get(name.text)
    if predicate is None:
        name.fail(f"unknown predicate '{name.text}'{suggestion(name.text, sorted(domain.predicates))}")
    _check_arity(name, condition.terms, predicate.parameters)
    for term, parameter in zip(condition.terms, predicate.parameters, strict=True):
        kind = types.get(term.text, ROOT_TYPE)
        # An `item` may turn out to be the `block` that the predicate asks for, but a `place` never will.
        if not domain.is_subtype(kind, parameter.type) and not domain.is_subtype(parameter.type, kind):
            term.fail(f"{term.text} is of type '{kind}', but {name.text} is about a '{parameter.type}'")


def _check_action(rule: RuleSyntax, types: dict[str, str], domain: Domain) -> None:
    name = rule.action.name
    schema = domain.schemas.get(name.text)
    if schema is None:
        name.fail(f"unknown action '{name.text}'{suggestion(name.text, sorted(domain.schemas))}")
    _check_arity(name, rule.action.terms, schema.parameters)
    for term, parameter in zip(rule.action.terms, schema.parameters, strict=True):
        _check_constant(term, types)
        kinds = {types.get(term.text, ROOT_TYPE), *_implied_types(rule, term.text, domain)}
        if not any(domain.is_subtype(kind, parameter.type) for kind in kinds):
            kind = types.get(term.text, ROOT_TYPE)
            term.fail(f"{term.text} is of type '{kind}', but {name.text} needs a '{parameter.type}'")


def _implied_types(rule: RuleSyntax, term: str, domain: Domain) -> Iterator[str]:
    """Yield the types that the facts and goals of the rule say the term has."""
    for condition in rule.conditions:
        if condition.kind in ("", "goal"):
            for other, parameter in zip(
                condition.terms, domain.predicates[condition.name.text].parameters, strict=True
            ):
                if other.text == term:
                    yield parameter.type


def _check_arity(name: Token, terms: tuple[Token, ...], parameters: tuple[Parameter, ...]) -> None:
    if len(terms) != len(parameters):
        plural = "argument" if len(parameters) == 1 else "arguments"
        name.fail(f"'{name.text}' has {len(parameters)} {plural}, not {len(terms)}")


def _check_constant(term: Token, types: dict[str, str]) -> None:
    if not is_variable(term.text) and term.text not in types:
        known = [name for name in types if not is_variable(name)]
        hint = suggestion(term.text, known) or f"; a variable begins with '?': ?{term.text}"
        term.fail(f"the domain has no constant '{term.text}'{hint}")

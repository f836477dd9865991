"""Rules in a text file that a person can read, edit and load again.

    # Rules for the domain blocks
    # learned from 5 problems, seed 0
    variables: ?x - block, ?l - place

    1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
    2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)

A variable means the same type in the whole file; one that is not declared is an `object`. `not p(?x)` asks for an
absent fact, `?x != ?y` for different objects; a name without `?` is a constant. `on+(?x, ?y)` is a chain of facts (see
`closures`), `road>(?l, ?next, ?there)` the first step of a path (see `paths`). A line such as
`on(?x, ?y) after on(?y, ?z)` says which goals wait for which. The grammar:

    file        = { declaration | order | rule }
    declaration = "variables" ":" ?name [ "-" type ] { "," ?name [ "-" type ] }
    order       = atom "after" atom [ "if" atom { "&" atom } ]
    rule        = priority ":" [ condition { "&" condition } ] "->" atom
    condition   = [ "not" | "goal" ] atom | term "!=" term
    atom        = name "(" [ term { "," term } ] ")"

Each declaration, order and rule begins on a new line. Apart from that line breaks are white space, so a rule may go on
over as many lines as it likes. `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple, NoReturn

from bilevel.rules.derived import derived_predicates
from bilevel.rules.paths import PATH, static_predicates
from bilevel.rules.rule import GoalOrder, Rule, orders_of
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
    one_of,
)
from bilevel.symbolic.expressions import normalised, quoted, read_text, suggestion

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
    orders = [str(order) for order in orders_of(rules)]
    blocks = [comments + declarations, orders, [str(rule) for rule in rules]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _declarations(rules: Sequence[Rule]) -> list[str]:
    """Return the `variables:` lines, filled up to the line length."""
    named = [*(order.as_rule() for order in orders_of(rules)), *rules]
    types = {variable.name: variable.type for rule in named for variable in rule.variables}
    lines: list[str] = []
    for entry in (f"{name} - {kind}" for name, kind in types.items() if kind != ROOT_TYPE):
        if lines and len(lines[-1]) + len(entry) + 2 <= _LINE_LENGTH:
            lines[-1] += f", {entry}"
        else:
            lines.append(f"variables: {entry}")
    return lines


def consistent_names(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the same rules in normal order, renamed where one variable has different types in different rules."""
    orders = orders_of(rules)
    names: dict[Parameter, str] = {}
    consistent = []
    for rule in map(in_normal_order, [*(order.as_rule() for order in orders), *rules]):
        for variable in rule.variables:
            numbered = (f"{variable.name}{n}" for n in count(2))
            candidates = (name for name in chain([variable.name], numbered) if name not in names.values())
            names[variable] = names.get(variable) or next(candidates)
        renaming = {variable.name: names[variable] for variable in rule.variables}
        is_clashing = any(old != new for old, new in renaming.items())
        consistent.append(in_normal_order(rule.renamed(renaming)) if is_clashing else rule)
    named = tuple(map(GoalOrder.from_rule, consistent[: len(orders)]))
    return tuple(replace(rule, orders=named) for rule in consistent[len(orders) :])


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
    declarations, orders, written = _Parser(normalised(text), filename).file()
    types: dict[str, str] = {}
    for variable, kind in declarations:
        if types.setdefault(variable.text, kind.text) != kind.text:
            variable.fail(f"{variable.text} is declared as '{types[variable.text]}' and as '{kind.text}'")
    if domain is not None:
        try:
            _check(declarations, orders, written, types, domain)
        except BadInput as error:
            named = _DOMAIN_LINE.search(text)
            if named is None or named[1] == domain.name:
                raise
            raise BadInput(f"{error}; these rules are for the domain '{named[1]}', not '{domain.name}'") from None
    found = tuple(GoalOrder.from_rule(_rule(order, types)) for order in orders)
    return tuple(replace(_rule(rule, types), orders=found) for rule in written)


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
        source=f"{written.priority.filename}:{written.priority.line}",
    )
    return in_normal_order(rule)


def _check(
    declarations: Declarations,
    orders: Sequence[WrittenRule],
    rules: Sequence[WrittenRule],
    declared: Mapping[str, str],
    domain: Domain,
) -> None:
    """Raise `BadInput` for the first name, number of arguments or type that does not fit the domain."""
    known_types = {ROOT_TYPE, *domain.types, *domain.types.values()}
    for _, named in declarations:
        if not known_types.issuperset(one_of(named.text)):
            named.fail(f"unknown type '{named.text}'{suggestion(named.text, sorted(known_types))}")
    types = {**domain.constants, **declared}
    facts = {**derived_predicates(domain), **domain.predicates}
    unchanging = {name: domain.predicates[name] for name in static_predicates(domain)}
    for order in orders:
        _check_fact(order.action, domain.predicates, types, domain)
        for atom in order.conditions:
            if atom.kind != "goal" and atom.name.text in domain.predicates and atom.name.text not in unchanging:
                atom.name.fail(f"an order asks for facts that never change, but actions change {atom.name.text}")
            _check_fact(atom, domain.predicates, types, domain)
    for rule in rules:
        paths = [atom for atom in rule.conditions if atom.name.text.endswith(PATH)]
        for path in [atom for atom in paths if atom.kind] or paths[1:]:
            path.name.fail(f"a rule may have one path, as a fact that holds, but {path.name.text} is one too many")
        implied: dict[str, set[str]] = {}  # what the facts and goals of the rule say of its terms
        for atom in rule.conditions:
            if atom.kind == "!=":
                _check_constants(atom, domain)
            else:
                known = domain.predicates if atom.kind == "goal" else facts
                for term, wanted in _check_fact(atom, known, types, domain):
                    if atom.kind != "not":
                        implied.setdefault(term.text, set()).add(wanted)
        _check_constants(rule.action, domain)
        for term, wanted in _arguments(rule.action, "action", domain.schemas):
            kind = types.get(term.text, ROOT_TYPE)
            if not any(domain.is_subtype(known, wanted) for known in {kind, *implied.get(term.text, ())}):
                term.fail(f"{term.text} is of type '{kind}', but {rule.action.name.text} needs a '{wanted}'")


def _check_fact(
    atom: WrittenAtom, known: Mapping[str, Predicate], types: Mapping[str, str], domain: Domain
) -> list[tuple[Token, str]]:
    """Return the terms of a fact or goal with the types that its predicate declares, which must fit theirs."""
    _check_constants(atom, domain)
    terms = _arguments(atom, "predicate", known)
    for term, wanted in terms:
        kind = types.get(term.text, ROOT_TYPE)
        # An `item` may turn out to be the `block` that the predicate asks for, but a `place` never will.
        if not domain.is_subtype(kind, wanted) and not domain.is_subtype(wanted, kind):
            term.fail(f"{term.text} is of type '{kind}', but {atom.name.text} is about a '{wanted}'")
    return terms


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


# Syntax: every name with its place, for messages that point at it

_NAME = r"[\w@$%*/+~^.](?:[\w@#$%*/+~^.']|-(?!>))*>?"  # every name of PDDL, and ?x'
_VARIABLE, _TERM = rf"\?{_NAME}", rf"\??{_NAME}"
_PRIORITY = "(?=.*[1-9])[0-9]{1,9}"
_TOKEN = re.compile(rf"(?P<space>\s+|#[^\n]*)|(?P<symbol>->|!=|[&(),:-])|(?P<name>{_TERM})|(?P<other>.)", re.DOTALL)


class Token(NamedTuple):
    """A word or symbol of a file; lines and columns count from 1. The empty text is the end of the file."""

    text: str
    filename: str
    line: int
    column: int

    def fail(self, message: str) -> NoReturn:
        """Raise `BadInput` with the place of this token."""
        raise BadInput(f"{self.filename}:{self.line}:{self.column}: {message}")

    @property
    def shown(self) -> str:
        """Return the token as a message quotes it."""
        return quoted(self.text) if self.text else "the end of the file"


class WrittenAtom(NamedTuple):
    """A condition or action as written. `kind` is "", "not", "goal" or "!="; the last has two terms and no name."""

    kind: str
    name: Token
    terms: tuple[Token, ...]


class WrittenRule(NamedTuple):
    """A rule as it stands in a file, with the place of each part; or an order, as a rule for its later goal."""

    priority: Token
    conditions: list[WrittenAtom]
    action: WrittenAtom


Declarations = list[tuple[Token, Token]]  # of variables, with their types


def _tokens(text: str, filename: str) -> Iterator[Token]:
    """Yield the tokens of the text, then one empty token at its end."""
    line, line_start = 1, 0
    for found in _TOKEN.finditer(text):
        token = Token(found.group(), filename, line, found.start() - line_start + 1)
        if found.lastgroup == "other":
            token.fail(f"unexpected character {token.text!r}")
        if found.lastgroup != "space":
            yield token
        elif "\n" in token.text:
            line += token.text.count("\n")
            line_start = found.start() + token.text.rindex("\n") + 1
    yield Token("", filename, line, len(text) - line_start + 1)


class _Parser:
    """Recursive descent, one method for each line of the grammar."""

    def __init__(self, text: str, filename: str) -> None:
        self.tokens = list(_tokens(text, filename))
        self.position = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def accept(self, symbol: str) -> bool:
        """Go past the symbol if it comes next."""
        found = self.next.text == symbol
        self.position += found
        return found

    def expect(self, pattern: str, what: str) -> Token:
        """Return the next token, which must fit the pattern, and go past it."""
        token = self.next
        if not re.fullmatch(pattern, token.text):
            token.fail(f"expected {what}, found {token.shown}")
        self.position += 1
        return token

    def file(self) -> tuple[Declarations, list[WrittenRule], list[WrittenRule]]:
        declarations: Declarations = []
        orders, rules = [], []
        while self.next.text:
            if self.position and self.tokens[self.position - 1].line == self.next.line:
                self.next.fail(f"unexpected {self.next.shown}; what comes next begins on a new line")
            if self.accept("variables"):
                declarations.extend(self.declaration())
            elif self.tokens[self.position + 1].text == "(":
                orders.append(self.order())
            else:
                rules.append(self.rule())
        return declarations, orders, rules

    def declaration(self) -> Iterator[tuple[Token, Token]]:
        self.expect(":", "':' after 'variables'")
        while True:
            variable = self.expect(_VARIABLE, "a variable such as '?x'")
            untyped = variable._replace(text=ROOT_TYPE)
            yield variable, self.expect(_NAME, f"the type of {variable.text}") if self.accept("-") else untyped
            if not self.accept(","):
                return

    def order(self) -> WrittenRule:
        start, later = self.next, self.atom("", "a goal")
        if not self.accept("after"):
            start.fail(f"expected a priority (a whole number from 1, then ':') or an order, found {start.shown}")
        conditions = [self.atom("goal", "a goal after 'after'")]
        if self.accept("if"):
            conditions.append(self.atom("", "a fact that never changes"))
            while self.accept("&"):
                conditions.append(self.atom("", "a fact that never changes"))
        return WrittenRule(start._replace(text="0"), conditions, later)

    def rule(self) -> WrittenRule:
        priority = self.expect(_PRIORITY, "a priority (a whole number from 1, then ':')")
        self.expect(":", f"':' after the priority {priority.text}")
        conditions = []
        if self.next.text != "->":
            conditions.append(self.condition())
            while self.accept("&"):
                conditions.append(self.condition())
        self.expect("->", f"'&' and another condition, or '->' and the action of rule {priority.text}")
        return WrittenRule(priority, conditions, self.atom("", "an action after '->'"))

    def condition(self) -> WrittenAtom:
        following = self.tokens[self.position + 1].text if self.next.text else ""
        if following == "!=":
            left, sign = self.expect(_TERM, "a variable or a constant before '!='"), self.expect("!=", "'!='")
            return WrittenAtom("!=", sign, (left, self.expect(_TERM, "a variable or a constant after '!='")))
        # A predicate may itself be called `goal`: what follows tells.
        kind = self.expect("not|goal", "").text if self.next.text in ("not", "goal") and following != "(" else ""
        return self.atom(kind, "a condition such as 'p(?x)'")

    def atom(self, kind: str, what: str) -> WrittenAtom:
        name = self.expect(_NAME, what)
        self.expect(r"\(", f"'(' after {name.shown}")
        terms: list[Token] = []
        while self.next.text != ")" or terms:
            terms.append(self.expect(_TERM, f"a variable or a constant in {name.text}(...)"))
            if not self.accept(","):
                break
        self.expect(r"\)", f"',' or ')' in {name.text}(...)")
        return WrittenAtom(kind, name, tuple(terms))

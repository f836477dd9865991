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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from bilevel.rules.derived import PATH, derived_predicates, static_predicates
from bilevel.rules.rule import GoalOrder, Rule, orders_of
from bilevel.symbolic.domain import (
    EQUALITY,
    ROOT_TYPE,
    Action,
    Atom,
    BadInput,
    Domain,
    Parameter,
    Predicate,
    Schema,
    is_variable,
    one_of,
)
from bilevel.symbolic.expressions import Misread, Word, naming_position, read_text, suggestion

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
    with naming_position(text, filename) as text:
        parser = _Parser(text, filename)
        rules = parser.file()
        if domain is not None:  # at last, as a variable's type may be declared behind what says something of it
            try:
                _check(parser.said, parser.types, domain)
            except Misread as error:
                named = _DOMAIN_LINE.search(text)
                if named is not None and named[1] != domain.name:
                    error.message += f"; these rules are for the domain '{named[1]}', not '{domain.name}'"
                raise
        return rules


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


# Syntax: every name with its place, for messages that point at it

_NAME = r"[\w@$%*/+~^.](?:[\w@#$%*/+~^.']|-(?!>))*>?"  # every name of PDDL, and ?x'
_VARIABLE, _TERM = rf"\?{_NAME}", rf"\??{_NAME}"
_PRIORITY = "(?=.*[1-9])[0-9]{1,9}"
_TOKEN = re.compile(rf"(?P<space>\s+|#[^\n]*)|(?P<symbol>->|!=|[&(),:-])|(?P<name>{_TERM})|(?P<other>.)", re.DOTALL)

Said = tuple[str, Word, list[Word]]  # what something in a file is, its name, and its terms


def _end(token: Word) -> Word:
    """Return the place behind a token, as a token without text."""
    return Word("", token.offset + len(token.text))


def _expected(what: str, found: Word) -> Misread:
    """Return the error that something else was expected in the place of a token."""
    return Misread(found.offset, f"expected {what}, found {found if found.text else 'the end of the line'}")


def _tokens(text: str) -> list[Word]:
    """Return the tokens of the text, and an empty one behind all that comes before a declaration, a rule or its end."""
    tokens: list[Word] = []
    for found in _TOKEN.finditer(text):
        token = Word(found.group(), found.start())
        if found.lastgroup == "other":
            raise Misread(token.offset, f"unexpected character {token.text!r}")
        if found.lastgroup != "space":
            if token.text == ":" and len(tokens) > 1 and "\n" in text[tokens[-2].offset : tokens[-1].offset]:
                tokens.insert(-1, _end(tokens[-2]))
            tokens.append(token)
    return [*tokens, _end(tokens[-1])] if tokens else []


class _Parser:
    """Recursive descent, one method for each line of the grammar; `said` is what must fit a domain, in its order."""

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        self.tokens, self.position = _tokens(text), 0
        self.types: dict[str, str] = {}
        self.said: list[Said] = []

    @property
    def next(self) -> Word:
        return self.tokens[self.position]

    @property
    def following(self) -> str:
        """The text of the token after the next."""
        return self.tokens[self.position + 1].text if self.next.text else ""

    def accept(self, symbol: str) -> bool:
        """Go past the symbol if it comes next."""
        found = self.next.text == symbol
        self.position += found
        return found

    def expect(self, pattern: str, what: str) -> Word:
        """Return the next token, which must fit the pattern, and go past it."""
        token = self.next
        if not re.fullmatch(pattern, token.text):
            raise _expected(what, token)
        self.position += 1
        return token

    def file(self) -> tuple[Rule, ...]:
        orders, rules = [], []
        while self.position < len(self.tokens):
            if self.accept(""):
                continue
            if self.position and "\n" not in self.text[self.tokens[self.position - 1].offset : self.next.offset]:
                message = f"unexpected {self.next}; what comes next begins on a new line"
                raise Misread(self.next.offset, message)
            if self.accept("variables"):
                self.declaration()
            elif self.following == "(":
                orders.append(self.order())
            else:
                rules.append(self.rule())
        variables = tuple(Parameter(name, kind) for name, kind in self.types.items())
        typed = [in_normal_order(replace(rule, variables=variables)) for rule in (*orders, *rules)]
        waits = tuple(map(GoalOrder.from_rule, typed[: len(orders)]))
        return tuple(replace(rule, orders=waits) for rule in typed[len(orders) :])

    def declaration(self) -> None:
        self.expect(":", "':' after 'variables'")
        while True:
            variable, name = self.expect(_VARIABLE, "a variable such as '?x'"), ROOT_TYPE
            if self.accept("-"):
                kind = self.expect(_NAME, f"the type of {variable.text}")
                self.said.append(("type", kind, []))
                name = kind.text
            if self.types.setdefault(variable.text, name) != name:
                message = f"{variable.text} is declared as '{self.types[variable.text]}' and as '{name}'"
                raise Misread(variable.offset, message)
            if not self.accept(","):
                return

    def order(self) -> Rule:
        """Return the rule that stands for an order: its goal waits for the one that it achieves."""
        start, later, word = self.next, self.atom("goal", "a goal"), self.next
        if not self.accept("after"):
            raise _expected("a priority (a whole number from 1, then ':') or an order", start)
        atoms: list[Atom] = []
        while True:
            kind, what = ("static", "a fact that never changes") if atoms else ("goal", "a goal after 'after'")
            atoms.append(self.atom(kind, what))
            if self.next.text == "after":  # it is the first goal of another order
                raise _expected(what, _end(word))
            word = self.next
            if not self.accept("&" if len(atoms) > 1 else "if"):
                return Rule(0, (), frozenset(atoms[1:]), frozenset(atoms[:1]), Action(*later))

    def rule(self) -> Rule:
        priority = self.expect(_PRIORITY, "a priority (a whole number from 1, then ':')")
        self.said.append(("rule", priority, []))
        self.expect(":", f"':' after the priority {priority.text}")
        found: dict[str, set[Atom]] = {"fact": set(), "not": set(), "goal": set()}
        if self.next.text != "->":
            self.condition(found)
            while self.accept("&"):
                self.condition(found)
        self.expect("->", f"'&' and another condition, or '->' and the action of rule {priority.text}")
        action = Action(*self.atom("action", "an action after '->'"))
        state, absent, goal = map(frozenset, found.values())
        line = self.text.count("\n", 0, priority.offset) + 1
        return Rule(int(priority.text), (), state, goal, action, absent, source=f"{self.filename}:{line}")

    def condition(self, found: Mapping[str, set[Atom]]) -> None:
        """Add a condition to those of its kind; an inequality is one of what must not be."""
        if self.following == "!=":
            left, sign = self.expect(_TERM, "a variable or a constant before '!='"), self.expect("!=", "'!='")
            right = self.expect(_TERM, "a variable or a constant after '!='")
            self.said.append(("inequality", sign, [left, right]))
            found["not"].add(Atom(EQUALITY, (left.text, right.text)))
        else:  # a predicate may itself be called `goal`: what follows tells
            has_kind = self.next.text in ("not", "goal") and self.following != "("
            kind = self.expect("not|goal", "").text if has_kind else "fact"
            found[kind].add(self.atom(kind, "a condition such as 'p(?x)'"))

    def atom(self, kind: str, what: str) -> Atom:
        name = self.expect(_NAME, what)
        self.expect(r"\(", f"'(' after {name}")
        terms: list[Word] = []
        while self.next.text != ")" or terms:
            terms.append(self.expect(_TERM, f"a variable or a constant in {name.text}(...)"))
            if not self.accept(","):
                break
        self.expect(r"\)", f"',' or ')' in {name.text}(...)")
        self.said.append((kind, name, terms))
        return Atom(name.text, tuple(term.text for term in terms))


def _check(said: Sequence[Said], types: Mapping[str, str], domain: Domain) -> None:
    """Raise `Misread` for the first name, number of arguments or type that does not fit the domain."""
    facts, kinds = (
        derived_predicates(domain) | {**domain.predicates},
        {ROOT_TYPE, *domain.types, *domain.types.values()},
    )
    known: dict[str, Mapping[str, Predicate | Schema]] = {"fact": facts, "not": facts, "action": domain.schemas}
    known |= {"goal": domain.predicates, "static": domain.predicates}
    types, has_path = {**domain.constants, **types}, False
    implied = dict[str, set[str]]()  # what the facts and goals of a rule say of its terms
    for kind, name, terms in said:
        for term in terms:
            if not is_variable(term.text) and term.text not in domain.constants:
                hint = suggestion(term.text, domain.constants) or f"; a variable begins with '?': ?{term.text}"
                raise Misread(term.offset, f"the domain has no constant '{term.text}'{hint}")
        if kind == "rule":
            has_path, implied = False, {}
        elif kind == "type" and not kinds.issuperset(one_of(name.text)):
            raise Misread(name.offset, f"unknown type '{name.text}'{suggestion(name.text, sorted(kinds))}")
        elif kind in known:
            if name.text not in known[kind]:
                what = "action" if kind == "action" else "predicate"
                raise Misread(name.offset, f"unknown {what} '{name.text}'{suggestion(name.text, sorted(known[kind]))}")
            if kind == "static" and name.text not in static_predicates(domain):
                raise Misread(name.offset, f"an order asks for facts that never change, but actions change {name.text}")
            wanted = [parameter.type for parameter in known[kind][name.text].parameters]
            if len(terms) != len(wanted):
                plural = "argument" if len(wanted) == 1 else "arguments"
                raise Misread(name.offset, f"'{name.text}' has {len(wanted)} {plural}, not {len(terms)}")
            for term, asked in zip(terms, wanted, strict=True):
                own, needs = types.get(term.text, ROOT_TYPE), "needs" if kind == "action" else "is about"
                said_of_it = implied.setdefault(term.text, set())
                fits = domain.is_subtype(own, asked) or any(domain.is_subtype(each, asked) for each in said_of_it)
                if kind != "action":  # an `item` may turn out to be the `block` that the predicate asks for
                    fits = domain.is_subtype(own, asked) or domain.is_subtype(asked, own)
                    said_of_it |= set() if kind == "not" else {asked}
                if not fits:
                    raise Misread(term.offset, f"{term.text} is of type '{own}', but {name.text} {needs} a '{asked}'")
            if name.text.endswith(PATH) and kind in ("fact", "not"):
                if has_path or kind == "not":
                    message = f"a rule may have one path, as a fact that holds, but {name.text} is one too many"
                    raise Misread(name.offset, message)
                has_path = True

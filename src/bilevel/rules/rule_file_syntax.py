"""The grammar of a rule file, and every name in it with its place, for messages that point at it.

    file        = { declaration | rule }
    declaration = "variables" ":" ?name [ "-" type ] { "," ?name [ "-" type ] }
    rule        = priority ":" [ condition { "&" condition } ] "->" atom
    condition   = [ "not" | "goal" ] atom | term "!=" term
    atom        = name "(" [ term { "," term } ] ")"

Each declaration and each rule begins on a new line. Apart from that line breaks are white space, so a rule may go on
over as many lines as it likes. `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from bilevel.symbolic.domain import ROOT_TYPE, BadInput, is_variable
from bilevel.symbolic.expressions import quoted

_NAME = r"[\w@$%*/+~^.](?:[\w@#$%*/+~^.']|-(?!>))*"  # every name of PDDL, and ?x'
_TOKEN = re.compile(rf"(?P<space>\s+|#[^\n]*)|(?P<symbol>->|!=|[&(),:-])|(?P<name>\??{_NAME})|(?P<other>.)", re.DOTALL)
_MAX_PRIORITY_DIGITS = 9


class Token(NamedTuple):
    """A word or symbol of a file; lines and columns count from 1. The empty text is the end of the file."""

    text: str
    filename: str
    line: int
    column: int

    def fail(self, message: str) -> NoReturn:
        raise BadInput(f"{self.filename}:{self.line}:{self.column}: {message}")

    @property
    def is_name(self) -> bool:
        return re.fullmatch(_NAME, self.text) is not None

    @property
    def is_term(self) -> bool:
        return is_variable(self.text) or self.is_name

    @property
    def shown(self) -> str:
        return quoted(self.text) if self.text else "the end of the file"


class Condition(NamedTuple):
    """A condition as written. `kind` is "", "not", "goal" or "!="; the last has no name, only two terms."""

    kind: str
    name: Token
    terms: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class RuleSyntax:
    priority: Token
    conditions: tuple[Condition, ...]
    action: Condition


@dataclass(frozen=True, slots=True)
class FileSyntax:
    """Declared variables with the tokens of their types, and the rules, in file order."""

    declarations: tuple[tuple[Token, Token], ...]
    rules: tuple[RuleSyntax, ...]


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


def parse_syntax(text: str, filename: str) -> FileSyntax:
    """Return what is written in a rule file, or raise `BadInput` with line and column."""
    return _Parser(text.replace("\r\n", "\n").replace("\r", "\n"), filename).file()


class _Parser:
    """Recursive descent, one method for each line of the grammar."""

    def __init__(self, text: str, filename: str) -> None:
        self.tokens = list(_tokens(text, filename))
        self.position = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.next
        self.position += bool(token.text)
        return token

    def accept(self, symbol: str) -> bool:
        if self.next.text != symbol:
            return False
        self.take()
        return True

    def expect(self, symbol: str, what: str) -> None:
        if not self.accept(symbol):
            self.next.fail(f"expected {what}, found {self.next.shown}")

    def file(self) -> FileSyntax:
        declarations: list[tuple[Token, Token]] = []
        rules: list[RuleSyntax] = []
        while self.next.text:
            if self.position and self.tokens[self.position - 1].line == self.next.line:
                self.next.fail(f"unexpected {self.next.shown}; what comes next begins on a new line")
            if self.next.text == "variables":
                declarations += self.declaration()
            else:
                rules.append(self.rule())
        return FileSyntax(tuple(declarations), tuple(rules))

    def declaration(self) -> Iterator[tuple[Token, Token]]:
        self.take()
        self.expect(":", "':' after 'variables'")
        while True:
            variable = self.take()
            if not is_variable(variable.text):
                variable.fail(f"expected a variable such as '?x', found {variable.shown}")
            kind = variable._replace(text=ROOT_TYPE)
            if self.accept("-"):
                kind = self.take()
                if not kind.is_name:
                    kind.fail(f"expected the type of {variable.text}, found {kind.shown}")
            yield variable, kind
            if not self.accept(","):
                return

    def rule(self) -> RuleSyntax:
        priority = self.take()
        if not re.fullmatch(rf"[0-9]{{1,{_MAX_PRIORITY_DIGITS}}}", priority.text) or int(priority.text) < 1:
            priority.fail(f"expected a priority (a whole number from 1, then ':'), found {priority.shown}")
        self.expect(":", f"':' after the priority {priority.text}")
        conditions: list[Condition] = []
        if self.next.text != "->":
            conditions.append(self.condition())
            while self.accept("&"):
                conditions.append(self.condition())
        self.expect("->", f"'&' and another condition, or '->' and the action of rule {priority.text}")
        if not self.next.is_name:
            self.next.fail(f"expected an action after '->', found {self.next.shown}")
        return RuleSyntax(priority, tuple(conditions), self.atom(""))

    def condition(self) -> Condition:
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if self.next.is_term and following.text == "!=":
            left, sign = self.take(), self.take()
            if not self.next.is_term:
                self.next.fail(f"expected a variable or a constant after '!=', found {self.next.shown}")
            return Condition("!=", sign, (left, self.take()))
        # A predicate may itself be called `goal`: what follows tells.
        kind = self.take().text if self.next.text in ("not", "goal") and following.text != "(" else ""
        return self.atom(kind)

    def atom(self, kind: str) -> Condition:
        name = self.take()
        if not name.is_name:
            name.fail(f"expected a condition such as 'p(?x)', found {name.shown}")
        self.expect("(", f"'(' after {name.shown}")
        terms: list[Token] = []
        while not (self.next.text == ")" and not terms):
            terms.append(self.term(name))
            if not self.accept(","):
                break
        self.expect(")", f"',' or ')' in {name.text}(...)")
        return Condition(kind, name, tuple(terms))

    def term(self, name: Token) -> Token:
        term = self.take()
        if not term.is_term:
            term.fail(f"expected a variable or a constant in {name.text}(...), found {term.shown}")
        return term

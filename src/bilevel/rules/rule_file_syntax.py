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
from typing import NamedTuple, NoReturn

from bilevel.symbolic.domain import ROOT_TYPE, BadInput
from bilevel.symbolic.expressions import normalised, quoted

_NAME = r"[\w@$%*/+~^.](?:[\w@#$%*/+~^.']|-(?!>))*"  # every name of PDDL, and ?x'
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
        raise BadInput(f"{self.filename}:{self.line}:{self.column}: {message}")

    @property
    def shown(self) -> str:
        return quoted(self.text) if self.text else "the end of the file"


class WrittenAtom(NamedTuple):
    """A condition or action as written. `kind` is "", "not", "goal" or "!="; the last has two terms and no name."""

    kind: str
    name: Token
    terms: tuple[Token, ...]


class WrittenRule(NamedTuple):
    priority: Token
    conditions: list[WrittenAtom]
    action: WrittenAtom


class WrittenFile(NamedTuple):
    """Declared variables with the tokens of their types, and the rules, in file order."""

    declarations: list[tuple[Token, Token]]
    rules: list[WrittenRule]


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


def parse_syntax(text: str, filename: str) -> WrittenFile:
    """Return what is written in a rule file, or raise `BadInput` with line and column."""
    return _Parser(normalised(text), filename).file()


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

    def file(self) -> WrittenFile:
        file = WrittenFile([], [])
        while self.next.text:
            if self.position and self.tokens[self.position - 1].line == self.next.line:
                self.next.fail(f"unexpected {self.next.shown}; what comes next begins on a new line")
            if self.accept("variables"):
                file.declarations.extend(self.declaration())
            else:
                file.rules.append(self.rule())
        return file

    def declaration(self) -> Iterator[tuple[Token, Token]]:
        self.expect(":", "':' after 'variables'")
        while True:
            variable = self.expect(_VARIABLE, "a variable such as '?x'")
            untyped = variable._replace(text=ROOT_TYPE)
            yield variable, self.expect(_NAME, f"the type of {variable.text}") if self.accept("-") else untyped
            if not self.accept(","):
                return

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

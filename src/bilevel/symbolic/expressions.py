"""Text as PDDL sees it: words and parenthesised groups, each with its position, and errors that name that position."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from os import PathLike, fspath

from bilevel.symbolic.domain import EITHER, ROOT_TYPE, BadInput

DEEPEST_NESTING = 100
CANDIDATES_COMPARED = 5_000  # for the nearest name; comparing with a million objects would take minutes
LONGEST_QUOTATION = 60

# A `#` may stand inside a name but not first: in a rule file it would begin a comment.
NAME_PATTERN = r"[\w@$%*/+~^.][\w@#$%*/+~^.-]*"

_NAME = re.compile(NAME_PATTERN)
_VARIABLE = re.compile(r"\?[\w@#$%*/+~^.-]+")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")
_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")


class Misread(Exception):
    """Something is wrong at an offset of the text; `naming_position` turns it into a message with line and column."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset, self.message = offset, message


@dataclass(frozen=True, slots=True)
class Word:
    """A token other than a parenthesis, in lower case, and where it stands."""

    text: str
    offset: int

    def __str__(self) -> str:
        return quoted(self.text)


@dataclass(frozen=True, slots=True)
class Group:
    """What stands between two parentheses, and where the first one is."""

    items: tuple[Expression, ...]
    offset: int

    def __str__(self) -> str:
        return quoted(self.head if self.head in ("()", "(...)") else f"({self.head} ...)")

    @property
    def head(self) -> str:
        """The first word; `()` where the group is empty, and `(...)` where it begins with another group."""
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, Word) else "(...)" if first else "()"

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """What follows the head."""
        return self.items[1:]


Expression = Word | Group


def quoted(text: str) -> str:
    """The text in quotation marks, short, on one line, and printable."""
    return repr(text if len(text) <= LONGEST_QUOTATION else text[:LONGEST_QUOTATION] + "…")


def parse_group(text: str) -> Group:
    """The one group that the text consists of."""
    starts: list[int] = []
    opened: list[list[Expression]] = [[]]
    for match in _TOKEN.finditer(text):
        token, offset = match.group(), match.start()
        if token[0] == ";":
            continue
        if opened[0]:
            raise Misread(offset, f"unexpected {quoted(token)} after the end of the definition")
        if token == "(":
            if len(starts) == DEEPEST_NESTING:
                raise Misread(offset, f"parentheses are nested more than {DEEPEST_NESTING} deep")
            starts.append(offset)
            opened.append([])
        elif not starts:
            raise Misread(offset, f"expected '(' but found {quoted(token)}")
        elif token == ")":
            group = Group(tuple(opened.pop()), starts.pop())
            opened[-1].append(group)
        else:
            opened[-1].append(Word(sys.intern(token.lower()), offset))
    if starts:
        raise Misread(starts[-1], "this '(' is never closed")
    if not opened[0]:
        raise Misread(0, "the file is empty; expected '(define ...)'")
    return as_group(opened[0][0], "a definition")


def is_name(text: str) -> bool:
    """Return whether a word may name something."""
    return _NAME.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Return whether a word is a number."""
    return _NUMBER.fullmatch(text) is not None


def as_name(expression: Expression, what: str) -> Word:
    """The expression, which must be a name, or a variable where that is `what` is named."""
    pattern, wanted = (_VARIABLE, f"{what} such as ?x") if what == "a variable" else (_NAME, f"the name of {what}")
    if isinstance(expression, Word) and pattern.fullmatch(expression.text):
        return expression
    raise Misread(expression.offset, f"expected {wanted} but found {expression}")


def as_group(expression: Expression, what: str) -> Group:
    """The expression, which must be in parentheses; `what` says what is expected there."""
    if isinstance(expression, Group):
        return expression
    raise Misread(expression.offset, f"expected {what} in parentheses but found {expression}")


def read_typed(items: Sequence[Expression], what: str, types: Collection[str] | None) -> dict[str, str]:
    """The names of `a b - t c`, of `what`, with their types, which must be among these if there are any."""
    typed: dict[str, str] = {}
    untyped: list[str] = []
    remaining = iter(items)
    for item in remaining:
        if isinstance(item, Word) and item.text == "-":
            kind = next(remaining, None)
            if kind is None or not untyped:
                raise Misread(item.offset, f"'-' needs {'a type after it' if untyped else 'names before it'}")
            typed.update(dict.fromkeys(untyped, read_type(kind, types)))
            untyped = []
        else:
            name = as_name(item, what)
            if name.text in typed or name.text in untyped:
                raise Misread(name.offset, f"{name} is declared twice")
            untyped.append(name.text)
    return typed | dict.fromkeys(untyped, ROOT_TYPE)


def read_type(kind: Expression, types: Collection[str] | None) -> str:
    """The name of a type, `a/b` for `(either a b)`."""
    if isinstance(kind, Group) and kind.head == "either" and kind.arguments and types is not None:
        return EITHER.join(read_type(each, types) for each in kind.arguments)
    name = as_name(kind, "a type")
    if types is not None and name.text not in (ROOT_TYPE, *types):
        raise Misread(name.offset, f"unknown type {name}{suggestion(name.text, [*types, ROOT_TYPE])}")
    return name.text


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` where some known name is near, else nothing."""
    near = get_close_matches(name, list(islice(known, CANDIDATES_COMPARED)), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


@contextmanager
def naming_position(text: str, filename: str) -> Iterator[str]:
    """The text with plain line ends; turns a `Misread` of it into `BadInput` with file, line and column."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        yield text
    except Misread as error:
        line, column = text.count("\n", 0, error.offset) + 1, error.offset - text.rfind("\n", 0, error.offset)
        raise BadInput(f"{filename}:{line}:{column}: {error.message}") from None


def read_text(path: str | PathLike[str]) -> str:
    """The text of a file; `BadInput` where it cannot be read or is not text."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except FileNotFoundError:
        raise BadInput(f"{fspath(path)}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{fspath(path)}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{fspath(path)}: this is not UTF-8 text") from None

"""Edits of PDDL text that leave all else as it was written: layout, order, and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")
_INDENT = "    "

Span = tuple[int, int]


class Edit(NamedTuple):
    """Text in the place of what stood from `start` to `end`."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with edits, none of which may overlap; those at the same place come in their order."""
    pieces, end = [], 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join([*pieces, text[end:]])


def comments_in(text: str, prefix: str) -> Iterator[Span]:
    """Give where comments stand that begin so, with the space before them and, where nothing else is, their line."""
    for match in _TOKEN.finditer(text):
        if match.group().startswith(prefix):
            start = len(text[: match.start()].rstrip(" \t"))
            alone = start == 0 or text[start - 1] == "\n"
            yield start, match.end() + (alone and match.end() < len(text))


def following_comment(text: str, offset: int) -> Span:
    """Return where a comment stands behind an offset on its line, with the space before it; parentheses may precede."""
    found = re.compile(r"[ \t)]*?([ \t]*;[^\n]*)").match(text, offset)
    return found.span(1) if found else (offset, offset)


@dataclass(frozen=True)
class Section:
    """A section of a domain: its keyword, its name if it is an action or an event, and where it stands in the text."""

    source: str
    keyword: str
    name: str
    start: int
    end: int
    items: tuple[Span, ...]  # words and groups in it, its keyword first
    comments_before: tuple[str, ...]  # since the section before

    @property
    def text(self) -> str:
        """How it is written."""
        return self.source[self.start : self.end]

    def words(self) -> list[str]:
        """Return what stands in it, in lower case."""
        return [self.source[start:end].lower() for start, end in self.items[1:]]

    def line_before(self, line: str) -> Edit:
        """Return the edit that puts a line before it."""
        start = self.source.rfind("\n", 0, self.start) + 1
        before = self.source[start : self.start]
        lead, indent = ("", before) if not before.strip() else ("\n  ", "  ")
        return Edit(self.start, self.start, f"{lead}{line}\n{indent}")

    def as_comment(self, title: str) -> str:
        """Return its text as a comment, which ends with its line."""
        lines = [title, *(f";   {line.strip()}" for line in self.text.splitlines())]
        rest = self.source[self.end :].partition("\n")[0]
        return "\n  ".join(lines) + ("\n  " if rest.strip() else "")

    def with_comments(self, text: str) -> str:
        """Return a text in its place, behind its comments."""
        return "".join(f"{comment}\n  " for comment in _comments(self.text)) + text

    def part_edits(self, key: str, value: str, formerly: str) -> Iterator[Edit]:
        """Give the edits that change what follows a key.

        Comments in it are put before it. So is what stood there, behind `formerly`, in the place of an older such note.
        """
        words = self.words()
        if key not in words:
            place = self.end - 1
            yield Edit(place, place, f"\n{_INDENT}{key} {value}")
            return
        at = words.index(key) + 1
        start, end = self.items[at][0], self.items[at + 1][1]
        old = self.source[self.items[at + 1][0] : end]
        kept = _comments(self.source[start:end])
        if formerly:
            for first, last in comments_in(self.text, f"{formerly} "):
                yield Edit(self.start + first, self.start + last, "")
            kept.append(f"{formerly} {' '.join(_without_comments(old).split())}")
        yield Edit(start, end, "".join(f"{comment}\n{_INDENT}" for comment in kept) + f"{key} {value}")


def sections_of(text: str) -> tuple[int, list[Section]]:
    """Return where `(define (domain NAME)` ends in the text of a domain, and its sections."""
    define = next(match.start() for match in _TOKEN.finditer(text) if match.group() == "(")
    _, (_, opening), *groups = _items(text, define)
    found, end = [], opening
    for start, stop in groups:
        items = _items(text, start)
        keyword = text[slice(*items[0])].lower()
        name = text[slice(*items[1])].lower() if keyword in (":action", ":event") else ""
        found.append(Section(text, keyword, name, start, stop, tuple(items), tuple(_comments(text[end:start]))))
        end = stop
    return opening, found


def _items(text: str, start: int) -> list[Span]:
    """Return where the words and groups stand in the group that begins at an offset."""
    items: list[Span] = []
    depth = begin = 0
    for match in _TOKEN.finditer(text, start):
        token = match.group()
        if token == "(":
            depth += 1
            begin = match.start() if depth == 2 else begin
        elif token == ")":
            depth -= 1
            if depth == 1:
                items.append((begin, match.end()))
            if depth == 0:
                break
        elif depth == 1 and token[0] != ";":
            items.append(match.span())
    return items


def _comments(text: str) -> list[str]:
    return [match.group().rstrip() for match in _TOKEN.finditer(text) if match.group()[0] == ";"]


def _without_comments(text: str) -> str:
    return re.sub(r";[^\n]*", "", text)

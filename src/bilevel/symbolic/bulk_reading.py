"""Reads a PDDL problem of millions of facts, plainly written, with C-level string operations.

Wherever the text is not as expected, right or wrong, this reader gives up and `pddl_problem`, which reads the whole
language and keeps positions, takes over. So nothing here needs a message, and whatever is accepted here must mean the
same there.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter

from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, Predicate, Problem
from bilevel.symbolic.expressions import NAME_PATTERN, NUMBER_PATTERN

_COMMENT = re.compile(r";[^\n]*")
_HEADER = re.compile(rf"\s*\(define\s*\(problem\s+({NAME_PATTERN})\s*\)\s*")
_NAMES_AND_DASHES = re.compile(r"[\w@#$%*/+~^.\s-]*")
_NOT_A_NAME = re.compile(r"(?<!\S)(?:-(?=\S)|#)")
_NUMERIC_VALUE = re.compile(rf"\(\s*=\s*\(\s*{NAME_PATTERN}(?:\s+{NAME_PATTERN})*\s*\)\s*{NUMBER_PATTERN}\s*\)")
_NUMBER_MARK = "(=)"
_FLAT = re.compile(r"[^()]*(?:\([^()]*\)[^()]*)*")
_CHUNK = 10_000  # facts handled at a time; all at once would hold every word of the file in memory
_HEAD = itemgetter(0)
_ATOM = partial(tuple.__new__, Atom)  # half the time of calling Atom
_KEYWORD = re.compile(r"[a-z]+(?=[\s()])")
_CONJUNCTION = re.compile(r"\(and(?=[\s()])")
_IGNORED_SECTIONS = frozenset({"requirements", "metric", "length"})
_READ_SECTIONS = frozenset({"domain", "objects", "init", "goal"})


class Unusual(Exception):
    """The text is not as the bulk reader wants it."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Building millions of tuples sets off the cyclic collector again and again, for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def problem_in_bulk(text: str, domain: Domain) -> Problem | None:
    """The problem, or `None` where the text is wrong or merely unusual."""
    try:
        return _problem(text, domain)
    except Unusual:
        return None


def _problem(text: str, domain: Domain) -> Problem:
    if ";" in text:
        text = _COMMENT.sub("", text)
    if not text.isascii():
        raise Unusual
    text = text.lower()
    header = _HEADER.match(text)
    if header is None:
        raise Unusual
    sections = _sections(text[header.end() :])
    if sections.get("domain", "").strip() != domain.name or "goal" not in sections:
        raise Unusual
    objects = _objects(sections.pop("objects", ""), domain)
    reader = _FactReader(domain, {**domain.constants, **objects})
    state = reader.facts(_facts_alone(sections.pop("init", "")))
    goal = reader.facts(_pieces(_without_conjunction(sections["goal"].strip())))
    return Problem(header.group(1), domain.name, objects, state, goal)


def _sections(text: str) -> dict[str, str]:
    """The contents of each section; `(:` occurs nowhere else."""
    before, *parts = text.split("(:")
    if before or not parts:
        raise Unusual
    parts[-1] = _without_closing(parts[-1])
    sections: dict[str, str] = {}
    for part in parts:
        keyword = _KEYWORD.match(part)
        name = keyword.group() if keyword else ""
        if name in sections or name not in _READ_SECTIONS | _IGNORED_SECTIONS:
            raise Unusual
        sections[name] = _without_closing(part[len(name) :])
        if name in _IGNORED_SECTIONS and not _FLAT.fullmatch(sections[name]):
            raise Unusual
    return sections


def _without_closing(text: str) -> str:
    text = text.rstrip()
    if not text.endswith(")"):
        raise Unusual
    return text[:-1]


def _objects(text: str, domain: Domain) -> dict[str, str]:
    if not _NAMES_AND_DASHES.fullmatch(text) or _NOT_A_NAME.search(text):
        raise Unusual
    words = text.split()
    objects: dict[str, str] = {}
    start = declared = 0
    while start < len(words):
        try:
            dash = words.index("-", start)
            kind = words[dash + 1]
        except ValueError:
            dash, kind = len(words), ROOT_TYPE
        except IndexError:
            raise Unusual from None
        if dash == start or (kind != ROOT_TYPE and kind not in domain.types):
            raise Unusual
        objects.update(zip(words[start:dash], repeat(kind)))
        declared += dash - start
        start = dash + 2
    if len(objects) < declared or not objects.keys().isdisjoint(domain.constants):
        raise Unusual
    return objects


def _pieces(text: str) -> list[str]:
    """What stands before each `)`."""
    *pieces, rest = text.split(")")
    if rest.strip():
        raise Unusual
    return pieces


def _facts_alone(text: str) -> list[str]:
    """The pieces of `:init` that are facts, without `(= (f a) 5)`."""
    if "=" not in text:
        return _pieces(text)
    if _NUMBER_MARK in text:
        raise Unusual
    marked = _NUMERIC_VALUE.sub(_NUMBER_MARK, text)
    return [piece for piece in _pieces(marked) if piece.strip() != _NUMBER_MARK[:-1]]


def _without_conjunction(text: str) -> str:
    conjunction = _CONJUNCTION.match(text)
    if conjunction is None:
        if text.count(")") != 1:
            raise Unusual
        return text
    return _without_closing(text[conjunction.end() :])


@dataclass
class _FactReader:
    """Turns `(p a b) ...` into atoms whose names are the very strings of the objects."""

    domain: Domain
    terms: Mapping[str, str]
    of_type: dict[str, dict[str, str]] = field(default_factory=dict)

    def objects_of(self, kind: str) -> dict[str, str]:
        """Each object that fits the type, under its own name: one look-up checks and shares the name."""
        if kind not in self.of_type:
            fitting = {k for k in {*self.terms.values()} if self.domain.is_subtype(k, kind)}
            self.of_type[kind] = {name: name for name, k in self.terms.items() if k in fitting}
        return self.of_type[kind]

    def facts(self, pieces: list[str]) -> Facts:
        try:
            return frozenset(chain.from_iterable(self.batches(pieces)))
        except (KeyError, ValueError, IndexError):
            raise Unusual from None

    def batches(self, pieces: list[str]) -> Iterator[Iterator[Atom]]:
        """The atoms of the pieces, those of one predicate together."""
        for start in range(0, len(pieces), _CHUNK):
            rows = sorted(map(str.split, pieces[start : start + _CHUNK]), key=_HEAD)
            for head, alike in groupby(rows, key=_HEAD):
                if head[0] != "(":
                    raise Unusual
                yield self.atoms(self.domain.predicates[head[1:]], alike)

    def atoms(self, predicate: Predicate, rows: Iterable[list[str]]) -> Iterator[Atom]:
        """The atoms of rows such as `(p`, `a`, `b`: column by column, so that every loop is C's."""
        heads, *columns = zip(*rows, strict=True)
        pairs = zip(predicate.parameters, columns, strict=True)
        names = [map(self.objects_of(parameter.type).__getitem__, column) for parameter, column in pairs]
        terms = zip(*names, strict=True) if names else repeat((), len(heads))
        return map(_ATOM, zip(repeat(predicate.name), terms, strict=False))

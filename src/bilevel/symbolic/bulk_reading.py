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
from itertools import repeat

from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, Problem
from bilevel.symbolic.expressions import NAME_PATTERN, NUMBER_PATTERN

_COMMENT = re.compile(r";[^\n]*")
_HEADER = re.compile(rf"\s*\(define\s*\(problem\s+({NAME_PATTERN})\s*\)\s*")
_NAMES_AND_DASHES = re.compile(r"[\w@#$%*/+~^.\s-]*")
_DASH_BEFORE_NAME = re.compile(r"(?<!\S)-(?=\S)")
_NUMERIC_VALUE = re.compile(rf"\(\s*=\s*\(\s*{NAME_PATTERN}(?:\s+{NAME_PATTERN})*\s*\)\s*{NUMBER_PATTERN}\s*\)")
_NUMBER_MARK = "(=)"
_FLAT = re.compile(r"[^()]*(?:\([^()]*\)[^()]*)*")
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
    if not _NAMES_AND_DASHES.fullmatch(text) or _DASH_BEFORE_NAME.search(text):
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

    def facts(self, pieces: Iterable[str]) -> Facts:
        try:
            return frozenset(self.atoms(pieces))
        except (KeyError, ValueError):
            raise Unusual from None

    def atoms(self, pieces: Iterable[str]) -> Iterator[Atom]:
        """The atom of each `(p a b`; `KeyError` or `ValueError` where it is not one."""
        columns = {
            f"({predicate.name}": (predicate.name, [self.objects_of(p.type) for p in predicate.parameters])
            for predicate in self.domain.predicates.values()
        }
        make = tuple.__new__  # half the time of calling Atom
        for piece in pieces:
            head, *names = piece.split()
            predicate, known = columns[head]
            if len(known) == 1:
                (name,) = names
                yield make(Atom, (predicate, (known[0][name],)))
            else:
                terms = tuple([objects[name] for objects, name in zip(known, names, strict=True)])
                yield make(Atom, (predicate, terms))

"""Reads the text of a PDDL problem: quickly where it is plainly written, else with care for positions.

The bulk reader takes millions of facts with C-level string operations. Wherever the text is not as expected, right or
wrong, it gives up, and the careful reader, which reads the whole language and keeps positions, takes over. So the bulk
reader needs no messages, and whatever it accepts must mean the same to the other one.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter

from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, Domain, Facts, Predicate, Problem
from bilevel.symbolic.expressions import (
    NAME_PATTERN,
    NUMBER_PATTERN,
    Expression,
    Group,
    Misread,
    Word,
    arguments_of,
    as_group,
    as_name,
    is_number,
    suggestion,
)
from bilevel.symbolic.pddl_parts import (
    contents,
    negated,
    read_atom,
    read_condition,
    read_definition,
    read_typed,
    refusal,
    split_sections,
)

_COMMENT = re.compile(r";[^\n]*")
_HEADER = re.compile(rf"\s*\(define\s*\(problem\s+({NAME_PATTERN})\s*\)\s*")
_NAMES_AND_DASHES = re.compile(r"[\w@#$%*/+~^.\s-]*")
_NOT_A_NAME = re.compile(r"(?<!\S)(?:-(?=\S)|#)")
_CHUNK = 10_000  # facts handled at a time; all at once would hold every word of the file in memory
_HEAD = itemgetter(0)
_ATOM = partial(tuple.__new__, Atom)  # half the time of calling Atom
_SECTION = re.compile(r"(domain|objects|init|goal)(?=[\s()])|(requirements|metric|length)(?=[\s()])")
_FLAT = re.compile(r"[^()]*(?:\([^()]*\)[^()]*)*")
_NUMERIC_VALUE = re.compile(rf"\(\s*=\s*\(\s*{NAME_PATTERN}(?:\s+{NAME_PATTERN})*\s*\)\s*{NUMBER_PATTERN}\s*\)")
_NUMBER_MARK = "(=)"
_CONJUNCTION = re.compile(r"\(and(?=[\s()])")


class Unusual(ValueError):
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
    text = _COMMENT.sub("", text) if ";" in text else text
    header = _HEADER.match(text := text.lower()) if text.isascii() else None
    if header is None:
        return None
    try:
        sections = _sections(text[header.end() :])
        objects = _objects(sections.pop("objects", ""), domain)
        reader = _FactReader(domain, {**domain.constants, **objects})
        state = reader.facts(_without_values(sections.pop("init", "")))
        goal = reader.facts(_without_conjunction(sections["goal"].strip()))
    except (ValueError, LookupError):
        return None
    return Problem(header.group(1), domain.name, objects, state, goal) if sections["domain"] == domain.name else None


def _sections(text: str) -> dict[str, str]:
    """The contents of each section; `(:` occurs nowhere else."""
    before, *parts = text.split("(:")
    if before or not parts:
        raise Unusual
    parts[-1] = _without_closing(parts[-1])
    sections: dict[str, str] = {}
    for part in parts:
        name = _SECTION.match(part)
        if name is None or name.group() in sections:
            raise Unusual
        sections[name.group()] = _without_closing(part[name.end() :])
        if name.group(2) and not _FLAT.fullmatch(sections[name.group()]):  # one that is ignored
            raise Unusual
    sections["domain"] = sections["domain"].strip()
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
        if dash == start or (kind != ROOT_TYPE and kind not in domain.types):
            raise Unusual
        objects.update(zip(words[start:dash], repeat(kind)))
        declared += dash - start
        start = dash + 2
    if len(objects) < declared or not objects.keys().isdisjoint(domain.constants):
        raise Unusual
    return objects


def _without_values(text: str) -> str:
    """The facts of `:init` without what stands between them such as `(= (f a) 5)`."""
    if "=" not in text:
        return text
    if _NUMBER_MARK in text:
        raise Unusual
    pieces = _NUMERIC_VALUE.sub(_NUMBER_MARK, text).split(")")
    return ")".join(piece for piece in pieces if piece.strip() != _NUMBER_MARK[:-1])


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

    def facts(self, text: str) -> Facts:
        *pieces, rest = text.split(")")  # what stands before each of them
        if rest.strip():
            raise Unusual
        return frozenset(chain.from_iterable(self.batches(pieces)))

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


PROBLEM_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric", ":length")


def problem_from_text(text: str, domain: Domain) -> Problem:
    """The problem that the text defines; `Misread` where it does not define one for this domain."""
    name, objects, state, goal = problem_frame(text, domain)
    return Problem(name, domain.name, objects, state, read_goal(goal, domain, {**domain.constants, **objects}))


def problem_frame(text: str, domain: Domain) -> tuple[str, dict[str, str], Facts, Group]:
    """The name, the objects without the domain's constants, the first state, and the goal as it is written."""
    name, parts = read_definition(text, "problem")
    sections = split_sections(parts, PROBLEM_SECTIONS)
    for keyword in (":domain", ":goal"):
        if not sections[keyword]:
            raise Misread(text.index("("), f"the problem has no '({keyword} ...)'")
    check_domain_name(sections[":domain"][0], domain)
    objects = read_objects(contents(sections, ":objects"), domain)
    state = read_state(contents(sections, ":init"), domain, {**domain.constants, **objects})
    return name, objects, state, sections[":goal"][0]


def check_domain_name(section: Group, domain: Domain) -> None:
    """`Misread` where a problem is for another domain."""
    if len(section.arguments) != 1:
        raise Misread(section.offset, "expected '(:domain NAME)'")
    name = as_name(section.arguments[0], "the domain")
    if name.text != domain.name:
        raise Misread(
            name.offset,
            f"the problem is for domain {name}, not for '{domain.name}'{suggestion(name.text, [domain.name])}",
        )


def read_objects(items: Sequence[Expression], domain: Domain) -> dict[str, str]:
    """The objects without constants of the domain, which a problem may declare again."""
    objects = read_typed(items, "an object", domain.types)
    for item in items:
        if isinstance(item, Word) and item.text in domain.constants and item.text in objects:
            kind = domain.constants[item.text]
            if objects.pop(item.text) != kind:
                raise Misread(item.offset, f"object {item} is a constant of type '{kind}' in the domain")
    return objects


def read_state(items: Sequence[Expression], domain: Domain, terms: Mapping[str, str]) -> Facts:
    """The facts of `:init`; what is false or numeric there is checked and left out."""
    facts: set[Atom] = set()
    absent: dict[Atom, Group] = {}
    for item in items:
        group = as_group(item, "a fact")
        if group.head == "not":
            absent[read_atom(negated(group), domain, terms)] = group
        elif group.head == EQUALITY:
            check_numeric_value(group)
        else:
            facts.add(read_atom(group, domain, terms))
    for atom, group in absent.items():
        if atom in facts:
            raise Misread(group.offset, f"'{atom}' is both true and false at first")
    return frozenset(facts)


def check_numeric_value(group: Group) -> None:
    """`(= (f a b) 5)` says what an action costs, which is ignored."""
    if len(group.arguments) == 2:
        function, value = group.arguments
        if isinstance(function, Group) and function.items and isinstance(value, Word) and is_number(value.text):
            for item in function.items:
                as_name(item, "a function or an object")
            return
    raise Misread(group.offset, "expected a numeric value such as (= (total-cost) 0) after '='")


def read_goal(section: Group, domain: Domain, terms: Mapping[str, str]) -> Facts:
    """The facts of `:goal`; `Misread` where something else is wanted."""
    goal = set()
    for atom, wanted, group in read_condition(arguments_of(section, 1, "one condition")[0], domain, terms):
        if not wanted or atom.predicate == EQUALITY:
            raise refusal(group.head, group.offset, "equality in goals" if wanted else "negative goals")
        goal.add(atom)
    return frozenset(goal)

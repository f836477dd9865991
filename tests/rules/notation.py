"""Short ways to write facts and to get at the golden rules, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Atom, Facts

GOLDEN = Path(__file__).parent / "golden"


def facts(text: str) -> Facts:
    """`"on a b, free"` as facts."""
    return frozenset(Atom(words[0], tuple(words[1:])) for words in map(str.split, filter(None, text.split(", "))))


def golden_text(name: str) -> str:
    return (GOLDEN / f"{name}.rules").read_text(encoding="utf-8")


def golden_rules(name: str) -> tuple[Rule, ...]:
    return parse_rules(golden_text(name), name)

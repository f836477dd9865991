"""Short ways to write facts and to get at the golden rules, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from bilevel.rules.matching import Match, matches_in_order
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Atom, Domain, Facts

GOLDEN = Path(__file__).parent / "golden"


def facts(text: str) -> Facts:
    """`"on a b, free"` as facts."""
    return frozenset(Atom(words[0], tuple(words[1:])) for words in map(str.split, filter(None, text.split(", "))))


def golden_text(name: str) -> str:
    return (GOLDEN / f"{name}.rules").read_text(encoding="utf-8")


def golden_rules(name: str) -> tuple[Rule, ...]:
    return parse_rules(golden_text(name), name)


def best_matches(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str]
) -> list[Match]:
    """Return every applicable instance of lowest priority, in the order in which ties are decided."""
    matches = matches_in_order(rules, domain, state, goal, objects)
    return list(next((group for _, group in groupby(matches, key=lambda match: match.rule.priority)), ()))

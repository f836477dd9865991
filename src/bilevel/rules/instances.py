"""The instances of rules in one state after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bilevel.rules.engine import RuleEngine
from bilevel.rules.matching import Match
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Facts


class Instances:
    """The instances of a list of rules, in any state."""

    def __init__(self, rules: Sequence[Rule], domain: Domain) -> None:
        self._rules, self._domain = rules, domain
        self._engine: RuleEngine | None = None

    def in_order(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> Iterator[Match]:
        """Yield the one that fires first, then those that would without the ones before."""
        if self._engine is None:
            self._engine = RuleEngine(self._rules, self._domain, state, goal, objects)
        self._engine.follow(state, goal, objects)
        yield from self._engine.matches()

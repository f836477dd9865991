"""The instances of rules in one state, found by search: what `matching` says, however many variables a rule has.

An instance is what matters of a match: the rule and the values of its outputs. It comes with the first binding of the
other variables that goes with them. So of all matches that differ in such variables alone there is only the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.engine.indexed_relations import IndexedRelation
from bilevel.rules.engine.rows import rows_of
from bilevel.rules.engine.search import RuleTooCostly, Search, TooMuchWork
from bilevel.rules.engine.views import UNEQUAL, rule_literals
from bilevel.rules.matching import Match, output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Facts

NOTHING: Mapping[str, str] = {}


class Instances:
    """The instances of a list of rules, in any state."""

    def __init__(self, rules: Sequence[Rule], domain: Domain) -> None:
        self._rules = sorted(rules, key=lambda rule: rule.priority)  # stable: ties keep the given order
        self._domain = domain
        self._closures = closures_in(rules, domain)
        self._literals = [list(rule_literals(rule, domain, typed=False)) for rule in self._rules]
        self._outputs = [output_variables(rule) for rule in self._rules]
        self._asked = {literal.relation for literals in self._literals for literal in literals} - {UNEQUAL}

    def in_order(
        self, state: Facts, goal: Facts, objects: Mapping[str, str], given: Mapping[str, str] = NOTHING
    ) -> Iterator[Match]:
        """Yield the one that fires first, then those that would without the ones before.

        Only those with the given values of variables, if there are any.
        """
        present = with_closures(state, self._closures)
        rows = rows_of(self._asked, self._domain, present, goal, objects)
        relations = {relation: IndexedRelation(found) for relation, found in rows.items()}
        for rule, literals, outputs in zip(self._rules, self._literals, self._outputs, strict=True):
            order = [variable for variable in outputs if variable not in given]
            try:
                search = Search(literals, relations, given)
                for found in search.solutions(order, sorted(search.domains.keys() - set(order))):
                    yield Match(rule, {**given, **found})
            except TooMuchWork:
                raise RuleTooCostly(rule) from None

    def best(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> list[Match]:
        """Return all of lowest priority, in the order in which ties are decided."""
        found = self.in_order(state, goal, objects)
        return list(next((group for _, group in groupby(found, key=lambda match: match.rule.priority)), ()))

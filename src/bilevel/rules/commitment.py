"""Commitment: a policy that serves the goal fact that it has begun with until it holds, or no rule serves it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bilevel.rules.engine import Instance, RuleEngine
from bilevel.rules.matching import output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import is_variable

if TYPE_CHECKING:
    from bilevel.rules.engine import Executor

Values = tuple[str, ...]


class CommittedChoice:
    """Chooses as the engine does, but stays with a goal; `goal` is its predicate and terms, or no terms at first.

    The engine's first choice is also the first for the goal it serves, so the engine is asked about the goal only when
    its choice serves another.
    """

    def __init__(self, engine: RuleEngine | Executor) -> None:
        rules = engine.rules
        self._choose = engine.choose
        self._goals = [getter(r, min(r.goal_condition).terms) if r.goal_condition else lambda _: None for r in rules]
        self._predicates = [min(rule.goal_condition).predicate if rule.goal_condition else "" for rule in rules]
        self._serve = {predicate: engine.server(predicate) for predicate in set(self._predicates) - {""}}
        self.goal: tuple[str, Values | None] = "", None

    def __call__(self) -> Instance | None:
        found = self._choose()
        if found is None:
            return None
        rule, values = found
        goal = self._goals[rule](values)
        predicate, committed = self.goal
        if goal != committed or self._predicates[rule] != predicate:
            kept = None if committed is None else self._serve[predicate](*committed)
            if kept is not None:
                return kept
            self.goal = self._predicates[rule], goal
        return found


def getter(rule: Rule, terms: Sequence[str]) -> Callable[[Values], Values]:
    """Return a function from the values of a rule's outputs to the values of some of its terms, written for speed."""
    outputs = output_variables(rule)
    places = [f"values[{outputs.index(term)}]" if is_variable(term) else repr(term) for term in terms]
    made: Callable[[Values], Values] = eval(f"lambda values: ({''.join(f'{place}, ' for place in places)})")
    return made

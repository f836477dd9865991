"""The plans of a set of rules, each made when it is first asked for and kept for data of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from bilevel.rules.engine.asked import changed_predicates, keeps_types
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.views import Literal, Relation, RulePlan, ServingPlan, Statistics, rule_literals
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain


class RulePlans:
    """Plans by the places of their rules."""

    def __init__(
        self, rules: tuple[Rule, ...], domain: Domain, arities: Mapping[Relation, int], statistics: Statistics
    ) -> None:
        self._rules = rules
        schemas = {name: domain.schemas[name] for name in sorted({rule.action.name for rule in rules})}
        changed = changed_predicates(schemas.values(), arities)
        self.planner = Planner(domain, statistics, changed, keeps_types(rules, domain))
        self.plan = cache(self._plan)
        self.literals = cache(self._literals)
        self.servings = cache(self._servings)

    def _plan(self, rule: int) -> RulePlan:
        return self.planner.plan(self._rules[rule])

    def _literals(self, rule: int) -> tuple[Literal, ...]:
        return tuple(rule_literals(self._rules[rule], self.planner.domain, self.planner.typed))

    def _servings(self, rule: int) -> list[tuple[Atom, ServingPlan]]:
        """Return how to serve a goal fact, for each goal condition of a rule."""
        atoms = sorted(self._rules[rule].goal_condition)
        return [(atom, self.planner.plan_serving(self.plan(rule), atom)) for atom in atoms]


_kept: dict[object, tuple[Domain, RulePlans]] = {}  # with the domain, so that its identity is not used again
MOST_KEPT = 100


def plans_for(
    rules: tuple[Rule, ...], domain: Domain, arities: Mapping[Relation, int], statistics: Statistics
) -> RulePlans:
    """Return the plans for these rules, made anew only if the data are of another kind than any before."""
    key = (rules, id(domain), frozenset(arities), statistics.magnitudes())
    if key not in _kept:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[key] = domain, RulePlans(rules, domain, arities, statistics)
    return _kept[key][1]

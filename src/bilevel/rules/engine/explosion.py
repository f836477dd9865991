"""Which rules explode: to keep views of them would take more memory or time than there is.

Where the view that eliminates a variable has columns that no single condition has, it holds combinations, and these may
be as many as the product of what it joins. Whether they are is estimated from the data by the planner, but only for
rules for which the sizes of the relations do not rule it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, prod
from typing import NamedTuple

from bilevel.rules.engine.asked import changed_predicates, keeps_types
from bilevel.rules.engine.join_plan import Planner
from bilevel.rules.engine.views import (
    Literal,
    Relation,
    RulePlan,
    Statistics,
    Table,
    View,
    inverted,
    reading_order,
    rule_literals,
    variables_of,
)
from bilevel.rules.matching import output_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain

MOST_ROWS = 1_000_000  # in the views of a rule, or that one decision has to look at
MOST_KEYS = 5  # columns of a view's key
MOST_DIFFERENT = 8  # variables of an action, which all differ: to try all orders of so many objects takes no time

Part = tuple[frozenset[str], float]  # the variables of a condition, and how many instances it has
Tables = Callable[[set[Relation]], Mapping[Relation, Table]]


class RuleExplodes(Exception):
    """A rule was to be planned that explodes."""


def exploding(rules: Sequence[Rule], domain: Domain, objects: int, tables: Tables) -> list[int]:
    """Return the places of the rules that explode; `tables` is asked for the rows of relations, if for any."""
    suspects = [place for place, rule in enumerate(rules) if is_suspect(rule, objects)]
    if not suspects:
        return []
    literals = {place: list(rule_literals(rules[place], domain, typed=False)) for place in suspects}
    found = tables({literal.relation for needed in literals.values() for literal in needed})
    schemas = [domain.schemas[rule.action.name] for rule in rules]
    planner = Planner(domain, Statistics(found), changed_predicates(schemas, found), keeps_types(rules, domain))
    return [place for place in suspects if explodes(rules[place], literals[place], planner, planner.plan)]


def explodes(rule: Rule, literals: Sequence[Literal], planner: Planner, plan: Callable[[Rule], RulePlan]) -> bool:
    """Return whether a rule explodes; it is planned only if the sizes of relations do not rule it out."""
    sizes = {literal: planner.statistics.size(literal.relation) for literal in literals}
    largest = _largest_view(
        [(literal.variables, size) for literal, size in sizes.items() if literal.enumerable],
        [size for literal, size in sizes.items() if not literal.positive and len(literal.variables) > 1],
        output_variables(rule),
    )
    if largest.keys > MOST_KEYS:
        return True
    if largest.rows <= MOST_ROWS and len(set(rule.action.arguments)) <= MOST_DIFFERENT:
        return False
    return _is_too_large(planner, plan(rule), sum(sizes.values()))


def is_suspect(rule: Rule, objects: int) -> bool:
    """Return whether a rule can explode with so many objects, whatever the facts are."""
    positive = [(variables_of(atom.terms), inf) for atom in rule.state_condition | rule.goal_condition]
    absent = [inf for atom in rule.absent if len(variables_of(atom.terms)) > 1]
    largest = _largest_view(positive, absent, output_variables(rule))
    if len(set(rule.action.arguments)) > MOST_DIFFERENT:
        return True
    columns = len(rule.variables) if len(absent) > 1 else largest.keys + 1
    return largest.keys > MOST_KEYS or (largest.rows > MOST_ROWS and objects**columns > MOST_ROWS)


class Largest(NamedTuple):
    """Bounds on the rows of the views that hold combinations, and on the columns of their keys."""

    rows: float
    keys: int


def _largest_view(parts: Sequence[Part], absences: Sequence[float], outputs: Sequence[str]) -> Largest:
    """Return bounds that follow from the sizes of conditions alone.

    Variables are eliminated as the planner does: those that are no outputs first, and always one whose view is narrow.
    Absences that tie variables may make as many combinations be tried as they have facts.
    """
    beside: dict[str, set[str]] = {}
    for variables, _ in parts:
        for variable in variables:
            beside.setdefault(variable, set()).update(variables)
    most_rows, most_keys = prod(absences) if len(absences) > 1 else 0.0, 0
    for group in (beside.keys() - set(outputs), beside.keys() & set(outputs)):
        left = sorted(group)
        while left and most_keys <= MOST_KEYS:
            variable = min(left, key=lambda v: len(beside[v]))
            left.remove(variable)
            columns = beside.pop(variable)
            touched = [part for part in parts if variable in part[0]]
            parts = [part for part in parts if variable not in part[0]]
            rows, is_combined = _most_rows(touched, columns)
            columns.discard(variable)
            if is_combined:
                most_rows, most_keys = max(most_rows, rows), max(most_keys, len(columns))
            if columns:
                parts.append((frozenset(columns), rows))
            for other in columns:
                beside[other] |= columns
                beside[other].discard(variable)
    return Largest(most_rows, most_keys)


def _most_rows(parts: Sequence[Part], columns: set[str]) -> tuple[float, bool]:
    """Return a bound on the rows of a view, and whether no single condition has all its columns."""
    whole = [size for variables, size in parts if len(variables) == len(columns)]
    if whole:
        return min(whole), False
    rows, covered = 1.0, set[str]()
    for variables, size in sorted(parts, key=lambda part: (-len(part[0]), part[1])):
        if not variables <= covered:
            rows, covered = rows * size, covered | variables
    return rows, True


def _is_too_large(planner: Planner, plan: RulePlan, facts: int) -> bool:
    """Return whether a plan's views, or the candidates that one decision has to look at, are too many by estimate."""
    values = _values(planner, plan.rule)

    def expected(use: View, given: Sequence[str], wanted: Sequence[str]) -> float:
        combinations = prod(values[variable] for variable in wanted if variable not in given)
        return min(planner.expected(use.literals, frozenset(given), frozenset(wanted)), combinations)

    pools = {variable: expected(use, use.key, [variable]) for variable, use in plan.uses.items()}
    rows = sum(expected(use, (), [*use.key, variable]) for variable, use in plan.uses.items())
    order = reading_order(plan.read, plan.uses)
    tied = {v for literal in plan.filters if not literal.positive for v in literal.variables}
    different = sorted(pools[v] for v in plan.outputs if v in plan.rule.action.arguments and pools[v] > 1)
    compared = inverted(plan.outputs, [v for v in order if v in plan.outputs])
    return (
        rows > MOST_ROWS + 10 * facts
        or (len(tied) > 2 and prod(pools[v] for v in tied) > MOST_ROWS)
        or (any(pool < number for number, pool in enumerate(different, 1)) and prod(different) > MOST_ROWS)
        or prod(pools[v] for v in compared) > MOST_ROWS
    )


def _values(planner: Planner, rule: Rule) -> dict[str, float]:
    """Return at most how many values to expect for each variable."""
    values: dict[str, float] = {}
    for literal in rule_literals(rule, planner.domain, planner.typed):
        for column, term in enumerate(literal.terms if literal.enumerable else ()):
            values[term] = min(values.get(term, inf), planner.statistics.distinct(literal.relation, column))
    return values

"""More general rules: without conditions that the action does not need, or with closures in place of single steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from bilevel.rules.closures import can_be_chained, closure
from bilevel.rules.matching import free_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Atom, Domain
from bilevel.symbolic.semantics import substitute_all


def droppable(rule: Rule, domain: Domain) -> list[Atom]:
    """Return the conditions that the action itself does not need: facts first, then inequalities."""
    schema = domain.schemas[rule.action.name]
    binding = dict(zip((p.name for p in schema.parameters), rule.action.arguments, strict=True))
    facts = sorted(rule.state_condition - substitute_all(schema.precondition, binding))
    return facts + sorted(rule.negative_condition - substitute_all(schema.negative_precondition, binding))


def generalisations(rule: Rule, atom: Atom, domain: Domain) -> Iterator[Rule]:
    """Yield the rule without one of its conditions, and with its closure.

    A condition stays that connects what nothing else does, or that alone says which object the action is about.
    """
    rest = _without(rule, atom)
    before, after = _connected(rule), _connected(rest)
    if free_variables(rest) == free_variables(rule) and all(
        (one in group) == (other in group) for group in after for one, other in _pairs(before, rest)
    ):
        yield rest
    predicate = domain.predicates.get(atom.predicate)
    if atom in rule.state_condition and predicate is not None and can_be_chained(predicate, domain):
        yield replace(rule, state_condition=rule.state_condition - {atom} | {closure(atom)})


def _without(rule: Rule, atom: Atom) -> Rule:
    """Return the rule without a condition, and without variables that only this one mentioned."""
    facts = rule.state_condition - {atom}
    used = {t for a in facts | rule.goal_condition for t in a.terms}.union(rule.action.arguments)
    negative = frozenset(a for a in rule.negative_condition - {atom} if used.issuperset(a.terms))
    variables = tuple(variable for variable in rule.variables if variable.name in used)
    return replace(rule, state_condition=facts, negative_condition=negative, variables=variables)


def _connected(rule: Rule) -> list[set[str]]:
    """Return the groups of variables that facts, goals and the action connect."""
    groups: list[set[str]] = []
    for terms in (*(a.terms for a in rule.state_condition | rule.goal_condition), rule.action.arguments):
        touched = [group for group in groups if group & set(terms)]
        groups = [group for group in groups if not group & set(terms)] + [set(terms).union(*touched)]
    return groups


def _pairs(groups: Sequence[set[str]], rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield the pairs of variables of the rule that are in one group."""
    kept = {variable.name for variable in rule.variables}
    return (pair for group in groups for pair in combinations(sorted(group & kept), 2))

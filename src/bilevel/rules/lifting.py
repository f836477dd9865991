"""From ground conditions to rules: variables in place of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from bilevel.rules.rule import GoalOrder, Rule, canonical, inequality
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Action, Atom, Domain, Facts, Parameter
from bilevel.symbolic.semantics import Condition, GroundAction, substitute, substitute_all


def lift(
    priority: int,
    condition: Condition,
    goal: Facts,
    action: GroundAction,
    types: Mapping[str, str],
    domain: Domain,
) -> Rule:
    """Return a rule with variables in place of objects, except constants that the schemas mention by name."""
    arguments = action.action.arguments
    implied = {inequality(a, b) for a in arguments for b in arguments if a != b} | _implied(goal, condition.positive)
    stated = (inequality(*atom.terms) if atom.predicate == EQUALITY else atom for atom in condition.negative)
    negative = frozenset(stated) - goal - implied  # an unachieved goal is absent anyway
    everything = condition.positive | negative | goal
    names = sorted({term for atom in everything for term in atom.terms} | set(arguments))
    kept = domain.named_constants
    variables = {name: f"?{i}" for i, name in enumerate(name for name in names if name not in kept)}
    return Rule(
        priority=priority,
        variables=tuple(Parameter(v, types.get(name, ROOT_TYPE)) for name, v in variables.items()),
        state_condition=substitute_all(condition.positive, variables),
        goal_condition=substitute_all(goal, variables),
        action=action.action._replace(arguments=tuple(variables.get(a, a) for a in arguments)),
        negative_condition=substitute_all(negative, variables),
    )


def _implied(goal: Facts, state: Facts) -> Facts:
    """Return what must differ because a goal is not achieved: with at(?c, ?l) and goal at(?c, ?m), ?l is not ?m."""
    return frozenset(inequality(*found[0]) for found in differences(product(goal, state)) if len(found) == 1)


def differences(pairs: Iterable[tuple[Atom, Atom]]) -> Iterator[list[tuple[str, str]]]:
    """Yield for each pair of atoms of the same predicate the terms in which they differ."""
    for one, other in pairs:
        if one.predicate == other.predicate:
            yield [(a, b) for a, b in zip(one.terms, other.terms, strict=True) if a != b]


def order_of(later: Atom, earlier: Atom, condition: Facts, types: Mapping[str, str], domain: Domain) -> GoalOrder:
    """Return the order of two goals with variables in place of their objects, named as in rules."""
    terms = dict.fromkeys((*later.terms, *earlier.terms))
    names = {term: f"?{number}" for number, term in enumerate(terms) if term not in domain.named_constants}
    lifted = Rule(
        priority=1,
        variables=tuple(Parameter(name, types[term]) for term, name in names.items()),
        state_condition=substitute_all(condition, names),
        goal_condition=frozenset({substitute(earlier, names)}),
        action=Action(*substitute(later, names)),
    )
    return GoalOrder.from_rule(canonical(lifted, domain))

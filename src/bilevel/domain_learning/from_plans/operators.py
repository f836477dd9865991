"""Operators from plans: one for each condition of each change; those of equal conditions are outcomes of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations, product

import numpy as np

from bilevel.domain_learning.approach import UNSEEN
from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.from_plans.conditions import Clause, clauses_of
from bilevel.domain_learning.from_plans.effects import Change, changes_of
from bilevel.domain_learning.from_plans.language import declared_types
from bilevel.domain_learning.from_plans.rows import rows_of
from bilevel.domain_learning.from_plans.steps import STATE, Numbers, Steps, is_type, kind_of
from bilevel.domain_learning.learned import LearnedDomain, Operator
from bilevel.domain_learning.naming import named
from bilevel.symbolic.domain import EQUALITY, BadInput, Domain, Facts, Outcome, Parameter, is_variable
from bilevel.symbolic.semantics import substitute_all

MOST_RENAMINGS = 5040  # of one operator's parameters that are tried to make it another's outcome


def learn_from_plans(episodes: Sequence[Episode], frame: Domain) -> LearnedDomain:
    """Learn the operators that explain every step of plans, in a closed world; see `conditions` for how.

    The plans should be varied, and most of all not aim at anything: what could be done and never is, is taken for what
    cannot be done. `BadInput` where nothing ever changes.
    """
    steps = Steps(episodes, frame)
    if not steps.counts:
        raise BadInput("no fact changes in any plan, so there is no operator to learn")
    changes = list(changes_of(steps))
    steps.weigh(_possible(changes, steps))
    found = [_operator(change, clause, steps) for change in changes for clause in clauses_of(change, steps)]
    return named(frame, _grouped(found), (), ())


def _possible(changes: Sequence[Change], steps: Steps) -> Numbers:
    """(states,): how many changes are possible in each state, as far as visits tell that all weigh the same."""
    found = np.zeros(len(steps.states), np.int64)
    for change in changes:
        for clause in clauses_of(change, steps):
            found += np.bincount(rows_of(change, clause.literals, steps).table[STATE], minlength=len(found))
    return found


def _operator(change: Change, clause: Clause, steps: Steps) -> Operator:
    """Return the operator of a change under a condition; what equals a constant is replaced by it."""
    asked = declared_types([*change.add, *change.delete], steps.frame)
    types = {**{variable: asked[variable] for variable in change.variables}, **clause.types}
    names: dict[str, str] = {}
    for atom, present in clause.literals:
        if is_type(atom) and steps.frame.is_subtype(kind_of(atom), types[atom.terms[0]]):
            types[atom.terms[0]] = kind_of(atom)
        elif atom.predicate == EQUALITY and present and is_variable(atom.terms[0]):
            names[atom.terms[0]] = names.get(atom.terms[1], atom.terms[1])
    said = [one for one in clause.literals if not is_type(one.atom)]
    facts = frozenset(atom for atom, present in said if present and atom.predicate != EQUALITY)
    absent = frozenset(atom for atom, present in said if not present)
    chosen = tuple(Parameter(variable, types.pop(variable)) for variable in _natures(change, facts))
    outcome = Outcome(substitute_all(change.add, names), substitute_all(change.delete, names), chosen, change.new)
    return Operator(
        [(outcome, clause.count)],
        {variable: kind for variable, kind in types.items() if variable not in names},
        [],
        UNSEEN,
        conditions=substitute_all(facts, names),
        negative=substitute_all(absent, names),
    )


def _natures(change: Change, facts: Facts) -> list[str]:
    """Return the variables that nature binds: new objects, and what is said of nothing else and in no condition."""
    conditions = {term for atom in facts for term in atom.terms}
    others = [atom for atom in change.add | change.delete if change.new.isdisjoint(atom.terms)]
    told = conditions.union(*(atom.terms for atom in others))
    return [variable for variable in change.variables if change.new and variable not in told]


def _grouped(operators: Sequence[Operator]) -> list[Operator]:
    """Make outcomes of one operator of those with equal conditions that have a part of their effects in common."""
    kept: list[Operator] = []
    for operator in sorted(operators, key=lambda operator: -len(operator.types)):
        for i, other in enumerate(kept):
            joined = _as_outcome(other, operator)
            if joined is not None:
                kept[i] = joined
                break
        else:
            kept.append(operator)
    return sorted(kept, key=lambda operator: -operator.count)


def _as_outcome(one: Operator, other: Operator) -> Operator | None:
    """Return the first operator with the second's outcome, if the latter is possible wherever the former is."""
    conditions = one.conditions, one.negative
    spare = [v for v in one.types if not any(v in atom.terms for atom in (*one.conditions, *one.negative))]
    if len(one.types) - len(other.types) not in range(len(spare) + 1):
        return None
    for names in _renamings(other.types, one.types):
        if (substitute_all(other.conditions, names), substitute_all(other.negative, names)) != conditions:
            continue
        outcomes = [
            (replace(o, add=substitute_all(o.add, names), delete=substitute_all(o.delete, names)), count)
            for o, count in other.outcomes
        ]
        if _changes(one.outcomes[0][0]) & _changes(outcomes[0][0]):
            return replace(one, outcomes=[*one.outcomes, *outcomes])
    return None


def _changes(outcome: Outcome) -> Facts:
    """Return what an outcome changes, an added fact beside a deleted one."""
    deleted = frozenset(atom._replace(predicate=f"not {atom.predicate}") for atom in outcome.delete)
    return outcome.add | deleted


def _renamings(types: Mapping[str, str], others: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield every way to call variables by the names of others of the same types."""
    kinds = sorted(set(types.values()))
    ours = {kind: [v for v, its in types.items() if its == kind] for kind in kinds}
    theirs = {kind: [v for v, its in others.items() if its == kind] for kind in kinds}
    ways = product(*(permutations(theirs[kind], len(ours[kind])) for kind in kinds))
    for way in islice(ways, MOST_RENAMINGS):
        yield {
            v: name for kind, names in zip(kinds, way, strict=True) for v, name in zip(ours[kind], names, strict=True)
        }

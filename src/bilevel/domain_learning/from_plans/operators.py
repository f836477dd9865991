"""Operators from plans: a schema for each condition of each change, and those of equal conditions as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.from_plans.conditions import Clause, clauses_of
from bilevel.domain_learning.from_plans.effects import Change, changes_of
from bilevel.domain_learning.from_plans.language import declared_types
from bilevel.domain_learning.from_plans.steps import Steps
from bilevel.symbolic.domain import Domain, Outcome, Parameter, Schema


def learn_from_plans(episodes: Iterable[Episode], frame: Domain) -> Domain:
    """Return the frame with the operators that explain every step of the plans."""
    steps = Steps(episodes, frame)
    schemas = [
        schema(change, clause, steps) for change in changes_of(steps) for clause in clauses_of(change, steps)
    ]
    return replace(frame, schemas={f"action-{i}": replace(s, name=f"action-{i}") for i, s in enumerate(schemas, 1)})


def schema(change: Change, clause: Clause, steps: Steps) -> Schema:
    literals = [one for one in clause.literals if not one.atom.predicate.startswith("- ")]
    types = declared_types([*change.add, *change.delete], steps.frame)
    types = {v: types[v] for v in change.variables} | dict(clause.types)
    for one in clause.literals:
        if one.atom.predicate.startswith("- "):
            kind = one.atom.predicate[2:]
            if steps.frame.is_subtype(kind, types[one.atom.terms[0]]):
                types[one.atom.terms[0]] = kind
    return Schema(
        "",
        tuple(Parameter(v, k) for v, k in types.items() if v not in change.new),
        frozenset(one.atom for one in literals if one.present),
        (Outcome(change.add, change.delete, tuple(Parameter(v, types[v]) for v in sorted(change.new)), change.new),),
        frozenset(one.atom for one in literals if not one.present),
    )

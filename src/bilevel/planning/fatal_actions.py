"""Actions that no strong-cyclic policy takes, found before any is grounded.

A goal literal that no action can make true must stay true: an action one of whose outcomes makes it false is fatal, and
one that can only be done when it is false comes too late. In a world where one may die, this leaves out all that the
dead do, of which there may be more than all that the living can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bilevel.planning.grounding import Literal, literals
from bilevel.symbolic.domain import Domain, Outcome, Problem, Schema


def without_fatal_actions(domain: Domain, problem: Problem) -> Domain:
    """The domain less the schemas all of whose actions are fatal or come too late; each that goes may show others."""
    schemas = dict(domain.schemas)
    goal = literals(problem.goal, problem.negative_goal)
    while True:
        lasting = {literal for literal in goal if not any(_may_achieve(schema, literal) for schema in schemas.values())}
        kept = {name: schema for name, schema in schemas.items() if not _is_fatal(schema, lasting)}
        if len(kept) == len(schemas):
            return replace(domain, schemas=kept)
        schemas = kept


def _may_achieve(schema: Schema, literal: Literal) -> bool:
    """Whether an outcome may make the literal true; of atoms only the predicates are compared."""
    changed = (outcome.add if literal.present else outcome.delete for outcome in schema.outcomes)
    return any(atom.predicate == literal.atom.predicate for atoms in changed for atom in atoms)


def _is_fatal(schema: Schema, lasting: Iterable[Literal]) -> bool:
    """Whether the schema asks for the opposite of such a literal, or an outcome brings it about, for all arguments."""
    for literal in lasting:
        required = schema.negative_precondition if literal.present else schema.precondition
        if literal.atom in required or any(_brings_about(outcome, literal.opposite) for outcome in schema.outcomes):
            return True
    return False


def _brings_about(outcome: Outcome, literal: Literal) -> bool:
    return literal.atom in (outcome.add if literal.present else outcome.delete - outcome.add)

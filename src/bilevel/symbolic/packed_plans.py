"""Plans as integers, for packed problems: written, and validated where they are valid."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from os import PathLike
from typing import overload

from bilevel.compiled import find
from bilevel.symbolic.costs import Costs, cost_comment
from bilevel.symbolic.domain import Action, Domain
from bilevel.symbolic.packed import Names, PackedProblem, contents_of
from bilevel.symbolic.plans import Plan, PlanCheck, record_of, write_plan

COMPILED = "bilevel.symbolic._plans"


@dataclass(frozen=True)
class PackedActions(Sequence[Action]):
    """The actions of a plan as integers: the number of each one's schema, and the arguments of one after another.

    A schema's number is its place in the domain. Whoever wants an ordinary action gets one.
    """

    domain: Domain
    names: Names
    schemas: array[int]
    arguments: array[int]

    @cached_property
    def listed(self) -> list[Action]:
        """The actions, one by one."""
        words = map(self.names.listed.__getitem__, self.arguments)
        schemas = [(schema.name, len(schema.parameters)) for schema in self.domain.schemas.values()]
        steps = map(schemas.__getitem__, self.schemas)
        return [Action(name, tuple(islice(words, arity))) for name, arity in steps]

    @overload
    def __getitem__(self, place: int) -> Action: ...

    @overload
    def __getitem__(self, place: slice) -> list[Action]: ...

    def __getitem__(self, place: int | slice) -> Action | list[Action]:
        return self.listed[place]

    def __len__(self) -> int:
        return len(self.schemas)


def plan_chunks(plan: Plan, costs: Costs | None = None) -> Iterator[bytes]:
    """The text of `write_plan` in blocks, which is made of integers where the plan is."""
    compiled = find(COMPILED)
    if compiled is None or not isinstance(plan.actions, PackedActions):
        yield write_plan(plan, costs).encode()
    else:
        yield from compiled.Lines(plan.actions, {step: f" ; {record_of(move)}" for step, move in plan.moves.items()})
        yield cost_comment(plan.actions, costs).encode()


def validate_packed(domain: Domain, problem: PackedProblem, path: str | PathLike[str]) -> PlanCheck | None:
    """The check of a plan file that is plainly written and valid; `None` for any other, which `validate` is for."""
    compiled, data = find(COMPILED), contents_of(path)
    if compiled is None or data is None or not domain.is_deterministic:
        return None
    actions = compiled.packed_actions(data, domain, problem.names)
    return PlanCheck(len(actions)) if actions is not None and compiled.reaches_goal(problem, actions) else None

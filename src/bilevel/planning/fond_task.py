"""Problems with nondeterministic actions, over bit masks.

Having more bits set never hurts: every literal that a condition tests has its own bit, present and absent ones alike.
So where a policy works in a state it works in every state that has more bits set, and an outcome that sets no bit that
was not set already brings nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from bilevel.planning.bit_masks import GroundOperator, Task, determinised_task
from bilevel.planning.planner import Deadline
from bilevel.symbolic.domain import Action, Domain, Problem


@dataclass(frozen=True, slots=True)
class FondAction:
    """An action and all that it may do: its outcomes have its precondition, and no two of them are the same."""

    action: Action
    precondition: int
    outcomes: tuple[GroundOperator, ...]

    @property
    def effects(self) -> tuple[int, frozenset[tuple[int, int]]]:
        """What the action asks for and does; of two actions that agree in this one is enough."""
        return self.precondition, frozenset((outcome.add, outcome.delete) for outcome in self.outcomes)


@dataclass(frozen=True)
class FondTask:
    """The useful outcomes of all actions as operators of their own; `owners[i]` is the action of operator i."""

    determinised: Task
    owners: tuple[FondAction, ...]


def ground_fond_task(domain: Domain, problem: Problem, deadline: Deadline) -> FondTask | None:
    """The problem over bit masks, or `None` where not even its relaxation reaches the goal."""
    task = determinised_task(domain, problem, deadline)
    if task is None:
        return None
    actions: dict[object, FondAction] = {}
    for name, operators in groupby(task.operators, lambda operator: operator.step.action):
        deadline.check()
        action = _action(name, operators)
        actions.setdefault(action.effects, action)
    return with_actions(task, actions.values())


def _action(name: Action, operators: Iterable[GroundOperator]) -> FondAction:
    outcomes: dict[tuple[int, int], GroundOperator] = {}
    for operator in operators:
        outcomes.setdefault((operator.add, operator.delete), operator)
    first, *_ = outcomes.values()
    return FondAction(name, first.precondition, tuple(outcomes.values()))


def with_actions(task: Task, actions: Iterable[FondAction]) -> FondTask:
    """The task with these actions only."""
    owned = [(outcome, action) for action in actions for outcome in action.outcomes if outcome.is_useful]
    operators, owners = tuple(outcome for outcome, _ in owned), tuple(action for _, action in owned)
    return FondTask(replace(task, operators=operators), owners)

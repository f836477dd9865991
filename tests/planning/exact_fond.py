"""What plans and strong-cyclic policies are, state by state: slow, obvious, and the oracle of the planners' tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from bilevel.planning.planner import PlanStep
from bilevel.symbolic.axioms import successors
from bilevel.symbolic.domain import Action, Domain, Facts, Problem
from bilevel.symbolic.plans import NaturesMove, Plan, validate
from bilevel.symbolic.semantics import GroundAction, ground, is_solved

StateActions = dict[Facts, dict[Action, set[Facts]]]  # each state's actions and the states they may lead to


def all_actions(domain: Domain, problem: Problem) -> list[GroundAction]:
    """Every action that the objects' types allow."""
    objects = problem.all_objects(domain)
    found = []
    for schema in domain.schemas.values():
        fitting = [[o for o, kind in objects.items() if domain.is_subtype(kind, p.type)] for p in schema.parameters]
        found += [action for arguments in product(*fitting) if (action := ground(schema, arguments)) is not None]
    return found


def reachable(domain: Domain, problem: Problem, most_states: int) -> StateActions | None:
    """All states that can be reached without going on from the goal; `None` where there are too many."""
    actions, objects = all_actions(domain, problem), problem.all_objects(domain)
    found: StateActions = {}
    frontier = [problem.state]
    while frontier:
        state = frontier.pop()
        if state in found:
            continue
        if len(found) == most_states:
            return None
        found[state] = {}
        if not is_solved(problem, state):
            for action in actions:
                if action.condition.holds(state):
                    found[state][action.action] = set(successors(state, action, domain, objects))
            frontier += [after for afters in found[state].values() for after in afters]
    return found


def has_policy(domain: Domain, problem: Problem, most_states: int = 10_000) -> bool | None:
    """Whether a strong-cyclic policy exists; `None` where there are too many states to tell.

    States from which the goal cannot be reached are dropped with the actions that may lead to them, until none is left.
    """
    states = reachable(domain, problem, most_states)
    if states is None:
        return None
    while hopeless := states.keys() - _reaching(states, problem):
        states = {
            state: {action: afters for action, afters in actions.items() if not afters & hopeless}
            for state, actions in states.items()
            if state not in hopeless
        }
    return problem.state in states


def _reaching(states: StateActions, problem: Problem) -> set[Facts]:
    """The states from which the goal can be reached."""
    before: dict[Facts, list[Facts]] = {}
    for state, actions in states.items():
        for afters in actions.values():
            for after in afters:
                before.setdefault(after, []).append(state)
    frontier = [state for state in states if is_solved(problem, state)]
    reaching = set(frontier)
    while frontier:
        new = set(before.get(frontier.pop(), ())) - reaching
        reaching |= new
        frontier += new
    return reaching


def achieves_goal(domain: Domain, problem: Problem, steps: Sequence[PlanStep]) -> bool:
    """Whether the steps can be done one after the other and, with the outcomes they count on, reach the goal."""
    moves = {
        number: NaturesMove(step.outcome, dict(step.choice))
        for number, step in enumerate(steps)
        if not domain.schemas[step.action.name].is_deterministic
    }
    return validate(domain, problem, Plan([step.action for step in steps], moves)).is_valid

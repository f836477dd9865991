"""Whether a policy is strong-cyclic, found by going through every state that it can get into.

It is if, first, it is closed: in each such state short of the goal it has an action, and that can be done; and if,
second, it is proper: from each such state the goal can be reached. Then, if nature is fair and lets every outcome
happen now and then, every run ends in the goal. Everything here follows the definitions and nothing a solver does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Protocol

from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy, traps
from bilevel.symbolic.semantics import ground_action, is_solved, progress, successors

MAX_STATES = 100_000

ActionGraph = PolicyGraph[Facts, Action]  # at most one choice in a state


class Chooser(Protocol):
    """All that is asked of a policy."""

    def choose(self, state: Facts) -> Action | None: ...


class PolicyKind(Enum):
    STRONG_CYCLIC = "strong-cyclic"
    NOT_CLOSED = "not closed"
    NOT_PROPER = "not proper"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PolicyCheck:
    """What was found out; `reason` is one line: a counterexample, why nothing is known, or how else it is known."""

    kind: PolicyKind
    graph: ActionGraph
    reason: str = ""

    @property
    def is_strong_cyclic(self) -> bool:
        return self.kind is PolicyKind.STRONG_CYCLIC

    @property
    def is_refuted(self) -> bool:
        return self.kind in (PolicyKind.NOT_CLOSED, PolicyKind.NOT_PROPER)

    def __str__(self) -> str:
        count = len(self.graph.choices)
        if self.is_strong_cyclic:
            return f"checked: strong-cyclic, {self.reason or f'{count} reachable state' + 's' * (count != 1)}"
        return f"{'not strong-cyclic' if self.is_refuted else 'not checked'}: {self.reason}"


def check_policy(
    domain: Domain,
    problem: Problem,
    policy: Chooser,
    max_states: int = MAX_STATES,
    deadline: Deadline | None = None,
) -> PolicyCheck:
    """Check whether the policy is strong-cyclic; unknown where there are more states or no more time."""
    objects = problem.all_objects(domain)

    def choices_in(state: Facts) -> list[Choice[Facts, Action]] | None:
        if is_solved(problem, state):
            return None
        action = policy.choose(state)
        if action is None:
            return []
        if _obstacle(domain, objects, state, action):
            return [Choice(action, ())]
        after = successors(state, ground_action(domain, action), domain, objects)
        return [Choice(action, tuple(dict.fromkeys(after)))]

    for name in makers_of_new_objects(domain, problem):
        empty: ActionGraph = PolicyGraph({}, frozenset(), {problem.state: None}, complete=False)
        return PolicyCheck(PolicyKind.UNKNOWN, empty, f"action '{name}' makes new objects: there is no end of states")
    is_time_up = (lambda: deadline.seconds_left <= 0) if deadline else lambda: False
    graph = explore_policy([problem.state], choices_in, max_states, first_stop=True, is_time_up=is_time_up)
    if graph.complete:
        trapped = traps(graph, graph.goals)
        if not trapped:
            return PolicyCheck(PolicyKind.STRONG_CYCLIC, graph)
        first = next(state for state in graph.choices if state in trapped)
        return PolicyCheck(PolicyKind.NOT_PROPER, graph, f"{_story(graph, first)} the goal is out of reach for ever")
    explored = len(graph.choices)
    if explored and graph.stops(last := [*graph.choices][-1]):
        reason = _obstacle(domain, objects, last, action_in(graph, last))
        return PolicyCheck(PolicyKind.NOT_CLOSED, graph, f"{_story(graph, last)} {reason}")
    if explored >= max_states:
        return PolicyCheck(PolicyKind.UNKNOWN, graph, f"there are more than {max_states} reachable states")
    return PolicyCheck(PolicyKind.UNKNOWN, graph, f"the time was up after {explored} reachable states")


def _obstacle(domain: Domain, objects: Mapping[str, str], state: Facts, action: Action | None) -> str:
    """Why there is no going on with this action; nothing where it can be done."""
    if action is None:
        return "the policy has no action"
    try:
        condition = ground_action(domain, action, objects).condition
    except BadInput as error:
        return str(error)
    broken = [f"{atom} does not hold" for atom in sorted(condition.positive - state)]
    broken += [f"{atom} holds" for atom in sorted(condition.negative & state)]
    return f"action '{action}' cannot be done: {broken[0]}" if broken else ""


def action_in(graph: ActionGraph, state: Facts) -> Action | None:
    """What the policy does in an explored state; `None` where the goal is reached, and where it has no action."""
    return next((choice.label for choice in graph.choices[state]), None)


def distinction(graph: ActionGraph, here: Facts, there: Facts) -> tuple[str, ...]:
    """What tells this outcome from the others of the same action: facts that hold, and do not after all of them.

    Where there are none, the facts that do not hold and may do so after others. Nothing for an only outcome.
    """
    outcomes = graph.choices[here][0].outcomes
    differing = NO_FACTS.union(*outcomes) - frozenset.intersection(*outcomes)
    holding = sorted(differing & there)
    return tuple(map(str, holding)) if holding else tuple(f"not {fact}" for fact in sorted(differing))


def _story(graph: ActionGraph, state: Facts) -> str:
    """How one gets there: `after flip() [heads()], win():`."""
    steps = []
    for here, there in pairwise(graph.path(state)):
        luck = distinction(graph, here, there)
        steps.append(f"{action_in(graph, here)} [{', '.join(luck)}]" if luck else str(action_in(graph, here)))
    return f"after {', '.join(steps)}:" if steps else "at the start:"


def graph_of_plan(domain: Domain, problem: Problem, steps: Sequence[PlanStep]) -> ActionGraph:
    """A plan as a graph: one state after the other, with the outcomes that it counts on."""
    states = [problem.state]
    for step in steps:
        states.append(progress(states[-1], step.ground(domain)[1]))
    links = list(zip(states, steps, states[1:], strict=False))
    choices = {before: (Choice(step.action, (after,)),) for before, step, after in links}
    parents: dict[Facts, Facts | None] = {problem.state: None}
    for before, _, after in links:
        parents.setdefault(after, before)  # a plan may come back to a state
    return PolicyGraph({**choices, states[-1]: ()}, {states[-1]}, parents, complete=True)

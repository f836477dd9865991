"""Whether a policy is strong-cyclic, found by going through every state that it can get into.

It is if, first, it is closed: in each such state short of the goal it has an action, and that can be done; and if,
second, it is proper: from each such state the goal can be reached. Then, if nature is fair and lets every outcome
happen now and then, every run ends in the goal. Everything here follows the definitions and nothing a solver does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, Protocol

from bilevel.planning.planner import Deadline, Step
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.semantics import (
    GroundAction,
    applicable,
    bind_outcome,
    ground_action,
    is_solved,
    natures_choices,
    progress,
)

MAX_STATES = 100_000


class Chooser(Protocol):
    """All that is asked of a policy."""

    def choose(self, state: Facts) -> Action | None: ...


class Node(NamedTuple):
    """What the policy does in a state, and the numbers of the states that this may lead to.

    There is no action where the goal is reached, and where the policy has none. An action without outcomes is one that
    cannot be done.
    """

    is_goal: bool
    action: Action | None = None
    outcomes: tuple[int, ...] = ()


@dataclass(frozen=True)
class PolicyGraph:
    """The states that a policy can get into, numbered in breadth-first order, the initial one first.

    Unless the graph is complete, the last states were met but not looked at: there are fewer nodes.
    """

    states: tuple[Facts, ...]
    nodes: tuple[Node, ...]
    parents: tuple[int, ...]  # for each state, the one that it was first met from; -1 for the initial one
    complete: bool

    def path(self, number: int) -> list[int]:
        """The numbers of the states on a shortest way to this one, itself last."""
        path = [number]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        return path[::-1]

    def distinction(self, here: int, there: int) -> tuple[str, ...]:
        """What tells this outcome from the others of the same action: facts that hold, and do not after all of them.

        Where there are none, the facts that do not hold and may do so after others. Nothing for an only outcome.
        """
        after = [self.states[number] for number in self.nodes[here].outcomes]
        differing = NO_FACTS.union(*after) - frozenset.intersection(*after)
        holding = sorted(differing & self.states[there])
        return tuple(map(str, holding)) if holding else tuple(f"not {fact}" for fact in sorted(differing))


class Kind(Enum):
    STRONG_CYCLIC = "strong-cyclic"
    NOT_CLOSED = "not closed"
    NOT_PROPER = "not proper"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict:
    """What was found out; `reason` is one line: a counterexample, why nothing is known, or how else it is known."""

    kind: Kind
    graph: PolicyGraph
    reason: str = ""

    @property
    def is_strong_cyclic(self) -> bool:
        return self.kind is Kind.STRONG_CYCLIC

    def __str__(self) -> str:
        count = len(self.graph.nodes)
        if self.is_strong_cyclic:
            return f"checked: strong-cyclic, {self.reason or f'{count} reachable state' + 's' * (count != 1)}"
        return f"{'not checked' if self.kind is Kind.UNKNOWN else 'not strong-cyclic'}: {self.reason}"


def check_policy(
    domain: Domain,
    problem: Problem,
    policy: Chooser,
    max_states: int = MAX_STATES,
    deadline: Deadline | None = None,
) -> Verdict:
    """Explore the policy and say whether it is strong-cyclic; unknown where there are more states or no more time."""
    explorer = _Explorer(domain, problem, policy)
    kind, reason = explorer.explore(max_states, deadline)
    graph = explorer.graph(complete=kind is Kind.STRONG_CYCLIC)
    if kind is Kind.STRONG_CYCLIC:  # for all that is known so far
        hopeful = _hopeful(graph)
        hopeless = next((number for number in range(len(graph.nodes)) if number not in hopeful), None)
        if hopeless is not None:
            return Verdict(Kind.NOT_PROPER, graph, f"{_story(graph, hopeless)} the goal is out of reach for ever")
    return Verdict(kind, graph, reason)


class _Fault(Exception):
    """The policy has no action, or one that cannot be done."""


class _NewObject(Exception):
    """States have no end."""


class _Explorer:
    """Follows a policy breadth first."""

    def __init__(self, domain: Domain, problem: Problem, policy: Chooser) -> None:
        self.domain = domain
        self.problem = problem
        self.policy = policy
        self.objects = problem.all_objects(domain)
        self.numbers: dict[Facts, int] = {problem.state: 0}
        self.states = [problem.state]
        self.parents = [-1]
        self.nodes: list[Node] = []

    def explore(self, max_states: int, deadline: Deadline | None) -> tuple[Kind, str]:
        """Strong-cyclic if the policy is closed; else what it is, and why. It stops at the first fault."""
        for number, state in enumerate(self.states):  # grows while it is read
            if number >= max_states:
                return Kind.UNKNOWN, f"there are more than {max_states} reachable states"
            if deadline is not None and deadline.seconds_left <= 0:
                return Kind.UNKNOWN, f"the time was up after {number} reachable states"
            if is_solved(self.problem, state):
                self.nodes.append(Node(is_goal=True))
                continue
            action = self.policy.choose(state)
            try:
                found = list(self._successors(state, self._doable(state, action)))
            except _Fault as fault:
                self.nodes.append(Node(False, action))
                return Kind.NOT_CLOSED, f"{_story(self.graph(False), number)} {fault}"
            except _NewObject:
                return Kind.UNKNOWN, f"action '{action}' makes new objects, so there is no end of states"
            self.nodes.append(Node(False, action, tuple(dict.fromkeys(self._number(s, number) for s in found))))
        return Kind.STRONG_CYCLIC, ""

    def graph(self, complete: bool) -> PolicyGraph:
        return PolicyGraph(tuple(self.states), tuple(self.nodes), tuple(self.parents), complete)

    def _successors(self, state: Facts, ground: GroundAction) -> Iterator[Facts]:
        for outcome in ground.outcomes:
            for choice in natures_choices(outcome, self.domain, self.objects):
                if not self.objects.keys() >= set(choice.values()):
                    raise _NewObject
                yield progress(state, bind_outcome(outcome, choice))

    def _number(self, state: Facts, parent: int) -> int:
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
            self.parents.append(parent)
        return self.numbers[state]

    def _doable(self, state: Facts, action: Action | None) -> GroundAction:
        if action is None:
            raise _Fault("the policy has no action")
        try:
            ground = ground_action(self.domain, action)
        except BadInput as error:
            raise _Fault(str(error)) from None
        for parameter, name in zip(self.domain.schemas[action.name].parameters, action.arguments, strict=True):
            if name not in self.objects or not self.domain.is_subtype(self.objects[name], parameter.type):
                raise _Fault(f"action '{action}' cannot be done: there is no {parameter.type} '{name}'")
        if not applicable(state, ground):
            missing = sorted(ground.condition.positive - state)
            present = sorted(ground.condition.negative & state)
            reason = f"{missing[0]} does not hold" if missing else f"{present[0]} holds"
            raise _Fault(f"action '{action}' cannot be done: {reason}")
        return ground


def _hopeful(graph: PolicyGraph) -> set[int]:
    """The states from which the goal can be reached."""
    before: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for after in node.outcomes:
            before.setdefault(after, []).append(number)
    hopeful = {number for number, node in enumerate(graph.nodes) if node.is_goal}
    queue = deque(sorted(hopeful))
    while queue:
        for number in before.get(queue.popleft(), ()):
            if number not in hopeful:
                hopeful.add(number)
                queue.append(number)
    return hopeful


def _story(graph: PolicyGraph, number: int) -> str:
    """How one gets there: `after flip() [heads()], win():`."""
    path = graph.path(number)
    steps = []
    for here, there in pairwise(path):
        luck = graph.distinction(here, there)
        action = str(graph.nodes[here].action)
        steps.append(f"{action} [{', '.join(luck)}]" if luck else action)
    return f"after {', '.join(steps)}:" if steps else "at the start:"


def graph_of_plan(domain: Domain, problem: Problem, steps: Sequence[Step]) -> PolicyGraph:
    """A plan as a graph: one state after the other, with the outcomes that it counts on."""
    states = [problem.state]
    for step in steps:
        states.append(progress(states[-1], step.ground(domain)[1]))
    nodes = [Node(False, step.action, (number + 1,)) for number, step in enumerate(steps)]
    nodes.append(Node(is_goal=is_solved(problem, states[-1])))
    return PolicyGraph(tuple(states), tuple(nodes), tuple(range(-1, len(steps))), complete=True)

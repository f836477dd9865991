"""Whether a policy is strong-cyclic, found by going through every state that it can get into, or proved.

It is if, first, it is closed: in each such state short of the goal it has an action, and that can be done; and if,
second, it is proper: from each such state the goal can be reached. Then, if nature is fair and lets every outcome
happen now and then, every run ends in the goal. Everything here follows the definitions and nothing a solver does.

A policy can also be proved to be so decision by decision, however many states there are. Of a state in which a decision
counts one knows its condition, and what the policy never changes. If after each outcome this is enough to tell that
some decision applies or the goal is reached, and after one of them one nearer to the goal, then the policy is
strong-cyclic: as long as nature is kind, the goal comes nearer with every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from bilevel.planning.placeholders import remember_newest
from bilevel.planning.planner import ContingentPolicy, Deadline, NoModel
from bilevel.symbolic.axioms import successors
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Problem
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy
from bilevel.symbolic.semantics import Condition, bind_outcome, ground_action, is_solved, natures_choices

MAX_STATES = 100_000

ActionGraph = PolicyGraph[Facts, Action]  # at most one choice in a state


class PolicyKind(Enum):
    """What a check of a policy has found."""

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
    def is_refuted(self) -> bool:
        """Whether it was shown to fail."""
        return self.kind in (PolicyKind.NOT_CLOSED, PolicyKind.NOT_PROPER)

    def __str__(self) -> str:
        count = len(self.graph.choices)
        if self.kind is PolicyKind.STRONG_CYCLIC:
            return f"checked: strong-cyclic, {self.reason or f'{count} reachable state' + 's' * (count != 1)}"
        return f"{'not strong-cyclic' if self.is_refuted else 'not checked'}: {self.reason}"


def check_policy(
    domain: Domain,
    problem: Problem,
    choose: Callable[[Facts], Action | None],
    max_states: int = MAX_STATES,
    deadline: Deadline | None = None,
) -> PolicyCheck:
    """Check whether the policy is strong-cyclic; unknown where there are more states or no more time.

    Where actions make new objects, states are those of a run with placeholders, of which the policy speaks.
    """
    try:
        domain, problem, _ = remember_newest(domain, problem)
    except NoModel as error:
        empty: ActionGraph = PolicyGraph({}, set(), {problem.state: None})
        return PolicyCheck(PolicyKind.UNKNOWN, empty, str(error).partition(":")[0])
    objects = problem.all_objects(domain)

    def choices_in(state: Facts) -> list[Choice[Action, Facts]] | None:
        if is_solved(problem, state):
            return None
        action = choose(state)
        if action is None:
            return []
        if _obstacle(domain, objects, state, action):
            return [(action, ())]
        after = successors(state, ground_action(domain, action), domain, objects)
        return [(action, tuple(dict.fromkeys(after)))]

    is_time_up = (lambda: deadline.seconds_left <= 0) if deadline else lambda: False
    graph = explore_policy([problem.state], choices_in, max_states, first_stop=True, is_time_up=is_time_up)
    explored = len(graph.choices)
    if explored and graph.stops(last := [*graph.choices][-1]):
        reason = _obstacle(domain, objects, last, next((action for action, _ in graph.choices[last]), None))
        return PolicyCheck(PolicyKind.NOT_CLOSED, graph, f"{_story(graph, last)} {reason}")
    if graph.complete:
        trapped = graph.traps()
        if not trapped:
            return PolicyCheck(PolicyKind.STRONG_CYCLIC, graph)
        first = next(state for state in graph.choices if state in trapped)
        return PolicyCheck(PolicyKind.NOT_PROPER, graph, f"{_story(graph, first)} the goal is out of reach for ever")
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
    unmet = condition.unmet(state)
    return f"action '{action}' cannot be done: {unmet[0]}" if unmet else ""


def _story(graph: ActionGraph, state: Facts) -> str:
    """How one gets there: `after flip(), win():`."""
    steps = [str(action) for before in graph.path(state)[:-1] for action, _ in graph.choices[before]]
    return f"after {', '.join(steps)}:" if steps else "at the start:"


def is_proved(domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> bool:
    """Whether there is such a proof; a policy without one need not be wrong."""
    distances = [decision.distance for decision in policy.decisions]
    if domain.axioms or distances != sorted(distances) or min(distances, default=1) < 1:
        return False
    try:
        domain, problem, _ = remember_newest(domain, problem)
        objects = problem.all_objects(domain)
        actions = [ground_action(domain, decision.action, objects) for decision in policy.decisions]
    except BadInput:  # a domain without a model, an action that does not fit it
        return False
    outcomes = [
        [bind_outcome(each, choice) for each in action.outcomes for choice in natures_choices(each, domain, objects)]
        for action in actions
    ]
    every = [outcome for each in outcomes for outcome in each]
    settled = problem.state.difference(*(outcome.delete - outcome.add for outcome in every))  # holds for ever
    possible = problem.state.union(*(outcome.add for outcome in every))  # nothing else ever holds

    def follows(condition: Condition, known: Condition) -> bool:
        """Whether a condition holds wherever what is known does."""
        return condition.positive - settled <= known.positive and condition.negative & possible <= known.negative

    goal = Condition(problem.goal, problem.negative_goal)
    targets = [(0, goal), *((decision.distance, decision.condition) for decision in policy.decisions)]
    if not any(condition.holds(problem.state) for _, condition in targets):
        return False
    for decision, action, its in zip(policy.decisions, actions, outcomes, strict=True):
        known, distances = decision.condition, []
        for outcome in its:
            if deadline.seconds_left <= 0:
                return False
            lost = outcome.delete - outcome.add
            after = Condition(known.positive - lost | outcome.add, known.negative - outcome.add | lost)
            found = next((steps for steps, condition in targets if follows(condition, after)), None)
            if found is None:
                return False
            distances.append(found)
        if not follows(action.condition, known) or min(distances, default=0) >= decision.distance:
            return False
    return True

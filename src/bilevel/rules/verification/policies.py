"""Does a rule policy always solve a problem? Every state it can get into, under every outcome, is looked at.

The policy is the memoryless one: the best match in a state and goal decides. A problem is solved always if from every
state that can come up the goal can still be reached, so that, nature being fair, every run ends in the goal. Otherwise
there is a counterexample: a shortest way to a state in which no rule applies or the action of the rule that fires
cannot be done, or, where there is no such state, to a loop from which the goal cannot be reached any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from bilevel.rules.matching import Match, best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.verification.policy_graph import (
    Failure,
    Matcher,
    PolicyGraph,
    check_vocabulary,
    explore_policy,
    shortest_failure,
    traps,
)
from bilevel.rules.verification.state_space import Situation, StateSpace
from bilevel.symbolic.domain import NO_FACTS, Action, Domain, Facts, Outcome, Problem

MAX_STATES = 100_000


class Status(Enum):
    SOLVED = "solved always"
    REFUTED = "counterexample"
    BOUND_HIT = "bound hit"


class Kind(Enum):
    """How a counterexample ends."""

    NO_RULE = "no rule applies"
    NOT_APPLICABLE = "the rule's action is not applicable"
    LOOP = "the goal cannot be reached any more"


@dataclass(frozen=True)
class Step:
    """A rule fires, nature picks an outcome, and `state` is what holds then."""

    rule: Rule
    action: Action
    outcome: Outcome
    state: Facts


@dataclass(frozen=True)
class Counterexample:
    """A run from `start`. A loop is repeated for ever after the steps; `missed` are the goal facts left unachieved.

    Objects made by nature bear canonical names, and are left out of the states once they can no longer matter.
    """

    kind: Kind
    start: Facts
    steps: tuple[Step, ...]
    missed: Facts
    loop: tuple[Step, ...] = ()
    refused: Match | None = None

    @property
    def state(self) -> Facts:
        """The state after the steps, in which the trouble shows."""
        return self.steps[-1].state if self.steps else self.start


@dataclass(frozen=True)
class Verdict:
    """The answer, and how many states it rests on. When the bound was hit nothing was found so far."""

    status: Status
    explored: int
    counterexample: Counterexample | None = None


def verify(
    rules: Sequence[Rule],
    domain: Domain,
    problem: Problem,
    max_states: int = MAX_STATES,
    matcher: Matcher = best_matches,
    every_tie: bool = False,
) -> Verdict:
    """Whether the policy always solves the problem; with `every_tie`, however ties between rules are decided.

    `matcher` gives the applicable instances of lowest priority, the one that fires first.
    """
    check_vocabulary(rules, domain)
    space = StateSpace(domain, problem.all_objects(domain), rules)
    start = space.number(Situation(problem.state))
    decide = decider(space, rules, problem.goal, matcher, every_tie)
    graph = explore_policy(space, problem.goal, [start], decide, max_states, first_stop=True)
    explored = len(graph.choices)
    trapped = stopped = frozenset(list(graph.choices)[-1:])
    if graph.complete:
        trapped = traps(graph, {node for node in graph.choices if problem.goal <= space.facts(node)})
    elif not any(map(graph.stops, stopped)):
        return Verdict(Status.BOUND_HIT, explored)
    failure = shortest_failure(graph, trapped, able=trapped)
    if failure is None:
        return Verdict(Status.SOLVED, explored)
    missed = problem.goal - space.facts(failure.path[-1])
    return Verdict(Status.REFUTED, explored, counterexample(space, graph, failure, missed))


def decider(
    space: StateSpace, rules: Sequence[Rule], goal: Facts, matcher: Matcher, every_tie: bool
) -> Callable[[int], Sequence[Match]]:
    """What the policy may do in a state. Names that nature gives are arbitrary: no tie between them is decided."""

    def decide(node: int) -> Sequence[Match]:
        matches = matcher(rules, space.domain, space.facts(node), goal, space.objects_in(node))
        return matches if every_tie or len(space.situations[node].made) > 1 else matches[:1]

    return decide


def counterexample(space: StateSpace, graph: PolicyGraph, failure: Failure, missed: Facts) -> Counterexample:
    """The failure with its actions, outcomes and states spelt out."""
    end = failure.path[-1]
    refused = None if failure.loop else next((c.match for c in graph.choices[end] if not c.nodes), None)
    kind = Kind.LOOP if failure.loop else Kind.NOT_APPLICABLE if refused else Kind.NO_RULE
    steps = _steps(space, graph, failure.path)
    loop = _steps(space, graph, (end, *failure.loop)) if failure.loop else ()
    return Counterexample(kind, space.facts(failure.path[0]), steps, missed, loop, refused)


def _steps(space: StateSpace, graph: PolicyGraph, path: Sequence[int]) -> tuple[Step, ...]:
    steps = []
    for node, after in pairwise(path):
        match = next(choice.match for choice in graph.choices[node] if after in choice.nodes)
        results = space.results(node, match.action) or ()
        outcome = next(result.outcome for result in results if result.node == after)
        steps.append(Step(match.rule, match.action, outcome, space.facts(after)))
    return tuple(steps)


def describe(verdict: Verdict) -> str:
    """The verdict in words: one line, and for a counterexample one more per step."""
    found = verdict.counterexample
    if found is None:
        more = "; nothing found so far" if verdict.status is Status.BOUND_HIT else ""
        return f"{verdict.status.value} ({verdict.explored} states explored{more})"
    return describe_counterexample(found)


def describe_counterexample(found: Counterexample) -> str:
    steps = f"{len(found.steps)} step{'' if len(found.steps) == 1 else 's'}"
    lines = [f"counterexample in {steps}", f"  start: {listed(found.start)}"]
    lines += _step_lines(found.steps)
    lines.append(f"  {found.kind.value}" + (f": {found.refused.action}" if found.refused else ""))
    if found.loop:
        lines += ["  for ever:", *_step_lines(found.loop)]
    lines.append(f"  goals missed: {listed(found.missed)}")
    return "\n".join(lines)


def _step_lines(steps: Sequence[Step]) -> list[str]:
    return [
        f"  {step.action}  by rule {step.rule.priority}, adds {listed(step.outcome.add)}"
        + (f", deletes {listed(step.outcome.delete)}" if step.outcome.delete else "")
        for step in steps
    ]


def listed(facts: Facts) -> str:
    """Facts as text, sorted."""
    return ", ".join(map(str, sorted(facts))) if facts != NO_FACTS else "nothing"

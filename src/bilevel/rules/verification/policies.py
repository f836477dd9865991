"""Does a rule policy always solve a problem? Every state it can get into, under every outcome, is looked at.

The policy is the memoryless one: the best match in a state and goal decides. A problem is solved always if from every
state that can come up the goal can still be reached, so that, nature being fair, every run ends in the goal. Otherwise
there is a counterexample: a shortest way to a state in which no rule applies or the action of the rule that fires
cannot be done, or, where there is no such state, to a loop from which the goal cannot be reached any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from bilevel.rules.instances import Instances
from bilevel.rules.matching import Match
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import check_rules
from bilevel.rules.verification.state_space import Situation, StateSpace
from bilevel.symbolic.domain import Action, Domain, Facts, Outcome, Problem
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy, traps

MAX_STATES = 100_000


class Answer(Enum):
    """What verification found out."""

    SOLVED = "solved always"
    REFUTED = "counterexample"
    BOUND_HIT = "bound hit"


class Ending(Enum):
    """How a counterexample ends."""

    NO_RULE = "no rule applies"
    NOT_APPLICABLE = "the rule's action is not applicable"
    LOOP = "the goal cannot be reached any more"


RuleGraph = PolicyGraph[int, Match]  # states by their numbers in a `StateSpace`


class Failure(NamedTuple):
    """A path of states from a start to a stop, or to the first state of a loop; `loop` then leads back to it."""

    path: tuple[int, ...]
    loop: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """How many steps show it."""
        return len(self.path) + len(self.loop)


@dataclass(frozen=True)
class RunStep:
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

    ending: Ending
    start: Facts
    steps: tuple[RunStep, ...]
    missed: Facts
    loop: tuple[RunStep, ...] = ()
    refused: Match | None = None

    @property
    def state(self) -> Facts:
        """The state after the steps, in which the trouble shows."""
        return self.steps[-1].state if self.steps else self.start

    def __str__(self) -> str:
        lines = [f"counterexample in {len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"]
        lines += [f"  start: {listed(self.start)}", *_step_lines(self.steps)]
        lines.append(f"  {self.ending.value}" + (f": {self.refused.action}" if self.refused else ""))
        if self.loop:
            lines += ["  for ever:", *_step_lines(self.loop)]
        return "\n".join([*lines, f"  goals missed: {listed(self.missed)}"])


def _step_lines(steps: Sequence[RunStep]) -> list[str]:
    return [
        f"  {step.action}  by rule {step.rule.priority}, adds {listed(step.outcome.add)}"
        + (f", deletes {listed(step.outcome.delete)}" if step.outcome.delete else "")
        for step in steps
    ]


def listed(facts: Facts) -> str:
    """Return facts as text, sorted."""
    return ", ".join(map(str, sorted(facts))) or "nothing"


@dataclass(frozen=True)
class ProblemVerdict:
    """The answer for a problem, and how many states it rests on. When the bound was hit nothing was found so far."""

    answer: Answer
    explored: int
    counterexample: Counterexample | None = None

    def __str__(self) -> str:
        """Return one line, and for a counterexample one more per step."""
        if self.counterexample is not None:
            return str(self.counterexample)
        more = "; nothing found so far" if self.answer is Answer.BOUND_HIT else ""
        return f"{self.answer.value} ({self.explored} states explored{more})"


def verify(
    rules: Sequence[Rule], domain: Domain, problem: Problem, max_states: int = MAX_STATES, every_tie: bool = False
) -> ProblemVerdict:
    """Return whether the policy always solves the problem; with `every_tie`, however ties between rules are decided."""
    check_rules(rules, domain)
    space = StateSpace(domain, problem.all_objects(domain), rules)
    start = space.number(Situation(problem.state))
    graph = follow_policy(space, rules, problem.goal, [start], max_states, every_tie, first_stop=True)
    trapped = traps(graph, graph.goals) if graph.complete else frozenset(filter(graph.stops, graph.choices))
    failure = shortest_failure(graph, trapped, able=trapped)
    if failure is None:
        return ProblemVerdict(Answer.SOLVED if graph.complete else Answer.BOUND_HIT, len(graph.choices))
    missed = problem.goal - space.facts(failure.path[-1])
    return ProblemVerdict(Answer.REFUTED, len(graph.choices), counterexample(space, graph, failure, missed))


def follow_policy(
    space: StateSpace,
    rules: Sequence[Rule],
    goal: Facts,
    starts: Iterable[int],
    max_states: int,
    every_tie: bool,
    representative: Callable[[int], int] = lambda node: node,
    first_stop: bool = False,
    rule_ties: bool = True,
) -> RuleGraph:
    """Return what the policy does from the starts on.

    Names that nature gives are arbitrary: no tie between them is decided. `representative` names the state to be
    explored in the place of one that is the same up to names. Without `rule_ties`, of rules with the same priority the
    first in the list fires, as always, and only ties between names are followed every way.
    """

    instances = Instances(rules, space.domain)

    def choices_in(node: int) -> list[Choice[int, Match]] | None:
        if goal <= space.facts(node):
            return None
        matches = instances.best(space.facts(node), goal, space.objects_in(node))
        followed = matches if every_tie or len(space.situations[node].made) > 1 else matches[:1]
        if not rule_ties:
            followed = [match for match in followed if match.rule is matches[0].rule]
        first = {match.action: match for match in reversed(followed)}
        return [Choice(match, _outcomes(node, action)) for action, match in reversed(first.items())]

    def _outcomes(node: int, action: Action) -> tuple[int, ...]:
        return tuple(dict.fromkeys(representative(result.node) for result in space.results(node, action) or ()))

    return explore_policy(map(representative, starts), choices_in, max_states, first_stop)


def counterexample(space: StateSpace, graph: RuleGraph, failure: Failure, missed: Facts) -> Counterexample:
    """Return the failure with its actions, outcomes and states spelt out."""
    end = failure.path[-1]
    refused = None if failure.loop else next((c.label for c in graph.choices[end] if not c.outcomes), None)
    ending = Ending.LOOP if failure.loop else Ending.NOT_APPLICABLE if refused else Ending.NO_RULE
    steps = _steps(space, graph, failure.path)
    loop = _steps(space, graph, (end, *failure.loop)) if failure.loop else ()
    return Counterexample(ending, space.facts(failure.path[0]), steps, missed, loop, refused)


def _steps(space: StateSpace, graph: RuleGraph, path: Sequence[int]) -> tuple[RunStep, ...]:
    steps = []
    for node, after in pairwise(path):
        match = next(choice.label for choice in graph.choices[node] if after in choice.outcomes)
        results = space.results(node, match.action) or ()
        outcome = next(result.outcome for result in results if result.node == after)
        steps.append(RunStep(match.rule, match.action, outcome, space.facts(after)))
    return tuple(steps)


# The shortest way to fail

Place = tuple[int, int]  # a state, and how far a run has come: one of the three below

UNDERWAY, ABLE, FALLEN = range(3)


def shortest_failure(graph: RuleGraph, trapped: frozenset[int], able: frozenset[int]) -> Failure | None:
    """Return a shortest run that is once in a state of `able`, then or later falls into the trap, and stops there.

    Only where there is no such run, a shortest one that ends in a loop within the trap.
    """

    def arrive(nodes: Iterable[int], stage: int) -> Iterator[Place]:
        for node in nodes:
            now = ABLE if stage == UNDERWAY and node in able else stage
            yield node, now
            if now == ABLE and node in trapped:
                yield node, FALLEN

    def after(place: Place) -> Iterator[Place]:
        node, stage = place
        choices = graph.choices.get(node, ())
        staying = [choice for choice in choices if stage != FALLEN or trapped.issuperset(choice.outcomes)]
        return arrive((n for choice in staying for n in choice.outcomes), stage)

    def explored(places: Iterable[Place]) -> PolicyGraph[Place, None]:
        return explore_policy(places, lambda place: [Choice(None, tuple(after(place)))], sys.maxsize)

    def path(runs: PolicyGraph[Place, None], place: Place) -> tuple[int, ...]:
        return tuple(node for node, _ in runs.path(place))

    runs = explored(arrive(starts(graph), UNDERWAY))
    fallen = [place for place in runs.choices if place[1] == FALLEN]
    for place in fallen:
        if graph.stops(place[0]):
            return Failure(path(runs, place))
    for place in fallen:
        loops = explored(after(place))
        if place in loops.parents:
            return Failure(path(runs, place), path(loops, place))
    return None


def starts(graph: RuleGraph) -> list[int]:
    """Return the states in which the graph begins."""
    return [node for node, parent in graph.parents.items() if parent is None]

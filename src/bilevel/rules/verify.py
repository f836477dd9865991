"""Does a rule policy always solve a problem, or, on all problems of a family, does it always do what could be done?

Every state that the policy can get into is looked at, under every outcome. It is the memoryless one: the first match
in a state and goal decides. A problem is solved always if from every state that can come up the goal can still be
reached, so that, nature being fair, every run ends in the goal. Otherwise there is a counterexample: a shortest way to
a state in which no rule applies or the action of the rule that fires cannot be done, or, where there is no such state,
to a loop from which the goal cannot be reached any more.

Problems with goals that nobody can reach belong to a family too (two blocks that want the same place). They are not
held against a policy as unsolved; but it must not leave undone what could have been done. A run is *at fault* if it
stops, or loops, with a set of goal facts achieved that is a proper part of a set that some policy would surely have
achieved from some state on the way. Where the whole goal is surely attainable this says: the run must end in the goal.
Where it is not, achieving a largest possible set will do, whichever; picking up a block that can never be put down
while another could still be served will not.

Problems of a family are told apart up to the renaming of objects only. As the policy decides ties by name, every tie
is followed every way; so what is proved holds for every naming.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from itertools import combinations, islice, pairwise, product
from typing import NamedTuple

from bilevel.rules.families import (
    Family,
    Renaming,
    Size,
    at_rest,
    check_family,
    distinct_goals,
    goals_of,
    grown_name,
    grown_seeds,
    symmetries,
)
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import check_rules
from bilevel.rules.state_graph import MOST_RENAMED, Node, PolicyRuns, Situation, StateGraph
from bilevel.symbolic.domain import Action, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy

MAX_STATES = 100_000
NAMINGS_TRIED = 200


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


class Step(NamedTuple):
    """A rule fires, nature picks an outcome, and `state` is what holds then."""

    rule: Rule
    action: Action
    outcome: Outcome
    state: Facts

    def __str__(self) -> str:
        gone = f", deletes {listed(self.outcome.delete)}" if self.outcome.delete else ""
        return f"  {self.action}  by rule {self.rule.priority}, adds {listed(self.outcome.add)}{gone}"


@dataclass(frozen=True)
class Counterexample:
    """A run that fails in a problem. A loop is repeated for ever after the steps; `missed` are goal facts not achieved.

    Objects made by nature bear canonical names, and are left out of the states once they can no longer matter. With
    `only_some_ties` the policy fails only if ties are decided in another way than by name, so that the policy as it
    runs was not shown to fail.
    """

    problem: Problem
    ending: Ending
    steps: tuple[Step, ...]
    missed: Facts
    loop: tuple[Step, ...] = ()
    refused: Action | None = None
    only_some_ties: bool = False

    @property
    def state(self) -> Facts:
        """The state after the steps, in which the trouble shows."""
        return self.steps[-1].state if self.steps else self.problem.state

    def __str__(self) -> str:
        lines = [f"counterexample in {len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"]
        lines += [f"  start: {listed(self.problem.state)}", *map(str, self.steps)]
        lines.append(f"  {self.ending.value}" + (f": {self.refused}" if self.ending is Ending.NOT_APPLICABLE else ""))
        if self.loop:
            lines += ["  for ever:", *map(str, self.loop)]
        return "\n".join([*lines, f"  goals missed: {listed(self.missed)}"])


def listed(facts: Facts) -> str:
    """Return facts as text, sorted."""
    return ", ".join(map(str, sorted(facts))) or "nothing"


@dataclass(frozen=True)
class Verdict:
    """The answer, and how many states with goals it rests on. When the bound was hit nothing was found so far.

    Of a family, `problems` counts those looked at, up to renaming, and `unattainable` those among them whose whole goal
    no policy surely reaches; `too_large` names the smallest grown problems with more states or goals than the bound.
    """

    answer: Answer
    explored: int
    counterexample: Counterexample | None = None
    problems: int | None = None
    unattainable: int = 0
    too_large: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a line on what was looked at, and the counterexample or what was left out."""
        found = self.counterexample
        if self.problems is None:
            more = "; nothing found so far" if self.answer is Answer.BOUND_HIT else ""
            return str(found) if found else f"{self.answer.value} ({self.explored} states explored{more})"
        if found is not None:
            ties = "\n  (only where ties are decided otherwise than by name)" if found.only_some_ties else ""
            return f"problem: {found.problem.name}\n  goal: {listed(found.problem.goal)}{ties}\n{found}"
        is_right = self.answer is Answer.SOLVED and self.unattainable
        answer = "always does all that can be done" if is_right else self.answer.value
        count = f"{self.problems} problems up to names, {self.explored} states with goals"
        rest = f"; of {self.unattainable} the whole goal is out of reach" if self.unattainable else ""
        beyond = "".join(f"\n  too large: {name}, or larger" for name in self.too_large)
        return f"{answer} ({count}{rest}){beyond}"


def verify(rules: Sequence[Rule], domain: Domain, problem: Problem, max_states: int = MAX_STATES) -> Verdict:
    """Return whether the policy always solves the problem."""
    check_rules(rules, domain)
    graph = StateGraph(domain, problem, rules)
    runs = graph.follow(problem.goal, [0], every_tie=False, max_states=max_states, first_stop=True)
    stops = frozenset(filter(runs.stops, runs.choices))
    trapped = graph.trapped(runs, problem.goal, problem.goal) if runs.complete else stops
    failure = shortest_failure(runs, trapped, {state for state, _ in trapped}, problem.goal)
    if failure is None:
        return Verdict(Answer.SOLVED if runs.complete else Answer.BOUND_HIT, len(runs.choices))
    return Verdict(Answer.REFUTED, len(runs.choices), _counterexample(graph, runs, problem, failure))


def verify_family(rules: Sequence[Rule], domain: Domain, family: Family, max_states: int = MAX_STATES) -> Verdict:
    """Return whether no run of the policy is at fault on any problem of the family; `max_states` bounds a grown seed.

    The counterexample is one with the fewest objects, among these one with the shortest run.
    """
    check_rules(rules, domain)
    check_family(family, domain)
    predicates = {atom.predicate for seed in family.seeds for atom in seed.goal}
    problems = unattainable = explored = 0
    too_large: list[tuple[Problem, Size]] = []
    for seed, size, problem in grown_seeds(family, domain, too_large):
        graph, renamings = StateGraph(domain, problem, rules), symmetries(problem, rules)
        goals = _goals(graph, predicates, family, renamings, max_states)
        if goals is None:
            too_large.append((seed, size))
            continue
        starts = [
            state
            for state in range(1 if family.starts == "initial" else len(graph))
            if family.starts != "at-rest" or at_rest(problem.state, graph.facts(state))
        ]
        failures = []
        for goal in goals:
            runs = _follow(graph, goal, starts, renamings)
            problems += len(runs.starts)
            explored += len(runs.choices)
            if graph.trapped(runs, goal, goal):
                unattainable += len({state for state, _ in runs.starts} - graph.attainable(goal))
                failures += [(goal, failure) for failure in faults(graph, runs, goal)]
        if failures:
            found = _refuted(graph, problem, renamings, *min(failures, key=lambda found: found[1].length))
            return Verdict(Answer.REFUTED, explored, found, problems, unattainable)
    if not problems and not too_large:
        named = ", ".join(sorted(predicates))
        raise BadInput(f"the family is empty: no fact of the goals' predicates ({named}) can hold")
    beyond = tuple(grown_name(seed, size) for seed, size in too_large)
    return Verdict(Answer.BOUND_HIT if beyond else Answer.SOLVED, explored, None, problems, unattainable, beyond)


# Families


def _goals(
    graph: StateGraph, predicates: Set[str], family: Family, renamings: Sequence[Renaming], most: int
) -> list[Facts] | None:
    """Return the family's goals up to names; `None` if there are more of them, or of the states, than the bound."""
    if not graph.explore(most):
        return None
    graph.goal_facts = graph.facts_of(predicates)
    goals = list(islice(goals_of(sorted(graph.goal_facts), family.complete_goals), most + 1))
    return distinct_goals(goals, renamings) if len(goals) <= most else None


def _follow(graph: StateGraph, goal: Facts, starts: Iterable[int], renamings: Iterable[Renaming]) -> PolicyRuns:
    """Return what the policy does; a state stands for all its renamings that keep the goal."""
    keeping = [renaming for renaming in renamings if renaming(goal) == goal]
    known: dict[int, int] = {}

    def representative(state: int) -> int:
        if state not in known:
            facts, made = graph.situations[state]
            known[state] = state
            for renaming in keeping if len(made) <= MOST_RENAMED else ():
                known.setdefault(graph.number(Situation(renaming(facts), made)), state)
        return known[state]

    return graph.follow(goal, starts, representative=representative)


def faults(graph: StateGraph, runs: PolicyRuns, goal: Facts) -> Iterator[Failure]:
    """Yield for each part of the goal a shortest run at fault, if there is one."""
    for size in range(len(goal), 0, -1):
        for wanted in map(frozenset, combinations(sorted(goal), size)):
            trapped = graph.trapped(runs, goal, wanted)
            failure = shortest_failure(runs, trapped, graph.attainable(wanted), wanted) if trapped else None
            if failure is not None:
                yield failure


def _refuted(
    graph: StateGraph, problem: Problem, renamings: Sequence[Renaming], goal: Facts, failure: Failure
) -> Counterexample:
    """Return the fault in a problem that is the same up to names and in which the policy, deciding by name, has it.

    Where no such naming is among the first tried, the run shown decides some tie otherwise.
    """
    facts, made = graph.situations[failure.path[0][0]]
    for every_tie, renaming in product((False, True), renamings[:NAMINGS_TRIED]):
        start = graph.number(Situation(renaming(facts), made))
        named = replace(
            problem, objects={**problem.objects, **dict(made)}, state=graph.facts(start), goal=renaming(goal)
        )
        runs = graph.follow(named.goal, [start], every_tie=every_tie)
        found = min(faults(graph, runs, named.goal), key=lambda fault: fault.length, default=None)
        if found is not None:
            return replace(_counterexample(graph, runs, named, found), only_some_ties=every_tie)
    raise AssertionError("a fault is one in every naming where every tie is followed")


# The shortest way to fail


class Failure(NamedTuple):
    """A way from a start to a stop, or to the first node of a loop, where some of `wanted` is missed.

    `loop` then leads back to it.
    """

    wanted: Facts
    path: tuple[Node, ...]
    loop: tuple[Node, ...] = ()

    @property
    def length(self) -> int:
        """How many steps show it."""
        return len(self.path) + len(self.loop)


class Stage(IntEnum):
    """How far a run has come: on its way, once where it was able to achieve what is wanted, and then trapped."""

    UNDERWAY, ABLE, FALLEN = range(3)


Place = tuple[Node, Stage]


def shortest_failure(
    runs: PolicyRuns, trapped: Collection[Node], able: Collection[int], wanted: Facts
) -> Failure | None:
    """Return a shortest run that is once in a state of `able`, then or later falls into the trap, and stops there.

    Only where there is no such run, a shortest one that ends in a loop within the trap.
    """

    def arrive(nodes: Iterable[Node], stage: Stage) -> Iterator[Place]:
        for node in nodes:
            now = Stage.ABLE if stage is Stage.UNDERWAY and node[0] in able else stage
            yield node, now
            if now is Stage.ABLE and node in trapped:
                yield node, Stage.FALLEN

    def after(place: Place) -> Iterator[Place]:
        node, stage = place
        choices = [choice.outcomes for choice in runs.choices.get(node, ())]
        staying = [nodes for nodes in choices if stage is not Stage.FALLEN or all(n in trapped for n in nodes)]
        return arrive((node for nodes in staying for node in nodes), stage)

    def explored(places: Iterable[Place]) -> PolicyGraph[Place, None]:
        return explore_policy(places, lambda place: [Choice(None, tuple(after(place)))], sys.maxsize)

    def path(explored: PolicyGraph[Place, None], place: Place) -> tuple[Node, ...]:
        return tuple(node for node, _ in explored.path(place))

    found = explored(arrive(runs.starts, Stage.UNDERWAY))
    fallen = [place for place in found.choices if place[1] is Stage.FALLEN]
    for place in fallen:
        if runs.stops(place[0]):
            return Failure(wanted, path(found, place))
    for place in fallen:
        loops = explored(after(place))
        if place in loops.parents:
            return Failure(wanted, path(found, place), path(loops, place))
    return None


def _counterexample(graph: StateGraph, runs: PolicyRuns, problem: Problem, failure: Failure) -> Counterexample:
    """Return the failure with its actions, outcomes and states spelt out."""

    def steps(path: Sequence[Node]) -> Iterator[Step]:
        for node, after in pairwise(path):
            instance = next(choice.label for choice in runs.choices[node] if after in choice.outcomes)
            results = graph.results(node[0], instance.action)
            outcome = next(result.outcome for result in results if result.state == after[0])
            yield Step(instance.rule, instance.action, outcome, graph.facts(after[0]))

    end = failure.path[-1]
    refused = next((choice.label.action for choice in runs.choices[end] if not choice.outcomes), None)
    ending = Ending.LOOP if failure.loop else Ending.NOT_APPLICABLE if refused else Ending.NO_RULE
    loop = tuple(steps((end, *failure.loop))) if failure.loop else ()
    missed = failure.wanted - graph.facts(end[0])
    return Counterexample(problem, ending, tuple(steps(failure.path)), missed, loop, refused)

"""Does a rule policy always solve a problem, or all problems of a family?

Every state that the memoryless policy can get into is looked at, under every outcome. It solves a problem always if
from every such state the goal can still be reached, so that, nature being fair, every run ends in the goal. Otherwise
there is a counterexample: a shortest way to a state in which no rule applies or the action of the rule that fires
cannot be done, or, where there is no such state, to a loop from which the goal cannot be reached any more.

A family is all small problems up to a number of objects, from every state from which the goal can surely be reached.
Goals that differ by names only are looked at once, and every tie is followed every way: what is proved holds for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from bilevel.rules.rule import Rule, orders_of
from bilevel.rules.rule_file import check_rules
from bilevel.rules.small_problems import grown_problems, small_problems, wanted_kinds
from bilevel.rules.state_graph import Instance, Node, PolicyRuns, StateGraph
from bilevel.symbolic.domain import Action, Atom, BadInput, Domain, Facts, Outcome, Problem
from bilevel.symbolic.exploration import Choice, explore_policy
from bilevel.symbolic.plans import listed

MAX_STATES = 100_000

# Problems begin in the grown seed's own state, in any that actions lead to from there, or in those of them that have
# every fact without arguments that held at first (the hand free).
Starts = Literal["initial", "at-rest", "any"]


class Answer(Enum):
    """What verification found out."""

    SOLVED = "solved always"
    REFUTED = "counterexample"
    BOUND_HIT = "bound hit"


class Step(NamedTuple):
    """A rule fires, nature picks an outcome, and `state` is what holds then."""

    rule: Rule
    action: Action
    outcome: Outcome
    state: Facts

    def __str__(self) -> str:
        gone = f", deletes {as_text(self.outcome.delete)}" if self.outcome.delete else ""
        return f"  {self.action}  by rule {self.rule.priority}, adds {as_text(self.outcome.add)}{gone}"


@dataclass(frozen=True)
class Counterexample:
    """A run that fails in a problem.

    After the steps an action is `refused` that cannot be done, or a loop is repeated for ever, or else no rule applies.
    Objects made by nature bear canonical names, and are left out of the states once they can no longer matter.
    """

    problem: Problem
    steps: tuple[Step, ...]
    loop: tuple[Step, ...] = ()
    refused: Action | None = None

    @property
    def state(self) -> Facts:
        """The state after the steps, in which the trouble shows."""
        return self.steps[-1].state if self.steps else self.problem.state

    def __str__(self) -> str:
        lines = [f"counterexample in {len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"]
        lines += [f"  start: {as_text(self.problem.state)}", *map(str, self.steps)]
        if self.loop:
            lines += ["  the goal cannot be reached any more", "  for ever:", *map(str, self.loop)]
        else:
            lines.append(
                f"  the rule's action is not applicable: {self.refused}" if self.refused else "  no rule applies"
            )
        return "\n".join([*lines, f"  goals missed: {as_text(self.problem.goal - self.state)}"])


def as_text(facts: Facts) -> str:
    """Return facts as text, sorted."""
    return ", ".join(map(str, sorted(facts))) or "nothing"


@dataclass(frozen=True)
class Verdict:
    """The answer, how many states with goals it rests on, and both in words; nothing was found within a bound hit.

    Of a family, `scope` says which goals this holds for, and whether these are independent.
    """

    answer: Answer
    explored: int
    text: str
    counterexample: Counterexample | None = None
    scope: str = ""

    def __str__(self) -> str:
        return self.text + self.scope


def verify(rules: Sequence[Rule], domain: Domain, problem: Problem, max_states: int = MAX_STATES) -> Verdict:
    """Return whether the policy always solves the problem."""
    check_rules(rules, domain)
    graph = StateGraph(domain, problem, rules)
    runs = graph.follow(rules, problem.goal, [0], most=max_states)
    found, explored = counterexample(graph, problem.goal, runs), len(runs.choices)
    if found is not None:
        return Verdict(Answer.REFUTED, explored, str(found), found)
    answer, more = (Answer.SOLVED, "") if runs.complete else (Answer.BOUND_HIT, "; nothing found so far")
    return Verdict(answer, explored, f"{answer.value} ({explored} states explored{more})")


def verify_family(
    rules: Sequence[Rule],
    domain: Domain,
    seeds: Sequence[Problem],
    counts: Mapping[str, int],
    *,
    starts: Starts = "at-rest",
    max_states: int = MAX_STATES,
) -> Verdict:
    """Return whether the policy always solves the small problems of a family; `max_states` bounds each of them.

    Its goals are about objects that are wanted in the same places as objects in the goals of the seeds. The
    counterexample is one with the fewest objects, among these one with the shortest run.
    """
    check_rules(rules, domain)
    kinds = set[Facts]().union(*(wanted_kinds(seed.goal, seed.all_objects(domain)) for seed in seeds))
    problems = explored = 0
    too_large, failures = list[str](), list[Counterexample]()
    most_steps, obstacle = dict[int, int](), ""
    grown = grown_problems(seeds, domain, counts)
    for _, graph, goals in small_problems(seeds, grown, domain, rules, max_states):
        if goals is None:
            too_large.append(graph.problem.name)
            continue
        begins: Sequence[int] = [0] if starts == "initial" else range(len(graph))
        if starts == "at-rest":
            resting = {atom for atom in graph.problem.state if not atom.terms}
            begins = [state for state in begins if resting <= graph.facts(state)]
        for goal in (goal for goal in goals if wanted_kinds(goal, graph.objects) <= kinds):
            starting = [state for state in begins if state in graph.attainable(goal)]
            runs = graph.follow(rules, goal, starting)
            problems += len(starting)
            explored += len(runs.choices)
            failures += filter(None, [counterexample(graph, goal, runs)])
            obstacle = obstacle or dependence(graph, goal, starting, most_steps)
        if failures:
            break
    if not problems and not too_large:
        raise BadInput("the family is empty: no goal can be reached")
    found = min(failures, key=lambda each: len(each.steps) + len(each.loop), default=None)
    if found is not None:
        answer, text = Answer.REFUTED, f"problem: {found.problem.name}\n  goal: {as_text(found.problem.goal)}\n{found}"
    else:
        answer = Answer.BOUND_HIT if too_large else Answer.SOLVED
        text = f"{answer.value} ({problems} problems, {explored} states with goals)"
    text += f"\n  too large: {listed(too_large)}" if too_large else ""
    wanted = "; ".join(sorted(" & ".join(map(str, sorted(kind))) for kind in kinds))
    scope = f"\n  goals in which each object is wanted as in the problems given: {wanted}"
    order = " in the order of the rules" if orders_of(rules) else ""
    if obstacle:
        scope += f"\n  goals depend on each other{order}: {obstacle}"
    else:
        bound = max(most_steps.values(), default=0)
        fewer = max((most for size, most in most_steps.items() if size < max(most_steps)), default=bound)
        scope += f"\n  goals are independent{order}: each takes at most C = {bound} actions that undo none"
        scope += "" if domain.is_deterministic else ", with luck"
        scope += f", but {fewer} with fewer objects: it may grow with them" if fewer < bound else ""
    return Verdict(answer, explored, text, found, scope)


def dependence(graph: StateGraph, goal: Facts, starts: Sequence[int], most_steps: dict[int, int]) -> str:
    """Say which goal cannot be achieved in turn from one of the states while those that hold stay, if there is any.

    Rules that are learned goal by goal then solve problems of any size, if none takes more than C actions. How many
    one takes is noted in `most_steps` by the number of objects.
    """

    @cache
    def steps(kept: Facts, fact: Atom) -> dict[int, int]:
        inside = frozenset(state for state in graph.attainable(goal) if kept <= graph.facts(state))
        return graph.sure_distances(frozenset({fact}), inside)

    size = len(graph.objects)
    for state in starts:
        kept = goal & graph.facts(state)
        for fact in sorted(graph.in_turn(state, goal) - kept):
            if state not in steps(kept, fact):
                single = (frozenset({each}) for each in sorted(kept))
                undone = as_text(next((each for each in single if state not in steps(each, fact)), kept))
                return f"{fact} cannot be achieved while {undone} stays, as from {as_text(graph.facts(state))}"
            most_steps[size] = max(most_steps.get(size, 0), steps(kept, fact)[state])
    return ""


# The shortest way to fail


def counterexample(graph: StateGraph, goal: Facts, runs: PolicyRuns) -> Counterexample | None:
    """Return a shortest of these runs that fails, with its actions, outcomes and states; none where none does."""

    def steps(path: Sequence[Node]) -> Iterator[Step]:
        for node, after in pairwise(path):
            instance = next(instance for instance, outcomes in runs.choices[node] if after in outcomes)
            outcome = graph.results(node[0], instance.action)[after[0]]
            yield Step(instance.rule, instance.action, outcome, graph.facts(after[0]))

    path, loop = shortest_failure(runs)
    if not path:
        return None
    end = path[-1]
    refused = next((instance.action for instance, outcomes in runs.choices[end] if not outcomes), None)
    state, made = graph.situations[path[0][0]]
    problem = replace(graph.problem, objects={**graph.problem.objects, **dict(made)}, state=state, goal=goal)
    return Counterexample(problem, (*steps(path),), (*steps([end, *loop]),), refused)


def shortest_failure(runs: PolicyRuns) -> tuple[Sequence[Node], Sequence[Node]]:
    """Return a shortest way from a start to a stop; where there is none, one to a loop, and the loop, which ends there.

    The ways are empty where no run fails. Loops are not looked for where the bound was hit.
    """
    if (stop := next(filter(runs.stops, runs.choices), None)) is not None:
        return runs.path(stop), []
    trapped: Collection[Node] = runs.traps() if runs.complete else ()

    def staying(node: Node) -> list[Choice[Instance, Node]]:
        return [choice for choice in runs.choices[node] if all(after in trapped for after in choice[1])]

    for node in filter(trapped.__contains__, runs.choices):
        loop = explore_policy((first for _, outcomes in staying(node) for first in outcomes), staying)
        if node in loop.parents:
            return runs.path(node), loop.path(node)
    return [], []

"""Fewer rules: without those that none of many trials needs.

Learning gives a rule for every situation in a plan, and plans for many problems have many situations that the policy
itself never gets into, or for which another rule does as well. Trials tell: the problems that were learned from, and
variants of them, begun from where other choices of the rules lead, or with fewer objects and goals. A rule goes if the
others solve whatever was solved before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from bilevel.rules.closures import closures_in
from bilevel.rules.replay import ReplayedRun, Replays
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Domain, Problem

ROUNDS = 100  # of trials, at most: each problem twice in each
QUIET_ROUNDS = 3  # in which no rule fires for the first time, after which no more trials are made
STEPS_PER_GOAL = 100
SHARE_LEFT_OUT = 0.3  # of the objects that the goal does not mention, in every other trial
MOST_DISTURBED = 15  # steps before the rules are followed
MOST_WASTE = 1.02  # how much longer the ways to the goals may become where rules are dropped
MOST_DETOUR = 2  # how much longer a single one may

Callback = Callable[[str, int, int], None]  # what is being done, how much of it is done, and how much there is


class Pruning(NamedTuple):
    """The rules that are left, the number of those dropped, how many trials were made, and how many of them solved."""

    rules: tuple[Rule, ...]
    dropped: int
    trials: int
    solved: int

    def __str__(self) -> str:
        before = len(self.rules) + self.dropped
        return (
            f"{self.dropped} of {before} rules dropped: the others solve the {self.solved} of {self.trials} variants "
            "of the problems that all of them solve"
        )


def can_be_pruned(rules: Sequence[Rule], domain: Domain) -> bool:
    """Return whether runs can be repeated: nature makes no choices, and rules are such as are learned from traces.

    That is, each of them serves one goal fact and has no closures.
    """
    one_goal = all(len(rule.goal_condition) == 1 for rule in rules)
    return domain.is_deterministic and one_goal and not closures_in(rules, domain)


def prune_rules(
    rules: Sequence[Rule],
    domain: Domain,
    problems: Sequence[Problem],
    *,
    seed: int = 0,
    callback: Callback = lambda task, done, total: None,
) -> Pruning:
    """Return the rules without those that can be spared in all trials; the same seed gives the same rules.

    First those go that never fire, then, one after the other, those that fire least often and say most, as long as
    every trial is solved still and the trials do not take more steps than a few in a hundred.
    """
    if not can_be_pruned(rules, domain):
        return Pruning(tuple(rules), 0, 0, 0)
    trials = _Trials(rules, domain)
    everything = frozenset(range(len(trials.replays.rules)))
    quiet = 0
    for number in range(ROUNDS):
        callback("trying rules", number, ROUNDS)
        fired = len(trials.fired)
        for place, problem in enumerate(problems):
            rng = random.Random(f"{seed} {number} {place}")
            trials.add(trials.disturbed(problem, rng) if number else problem, everything)
            trials.add(trials.disturbed(thinned(problem, rng), rng), everything)
        quiet = quiet + 1 if len(trials.fired) == fired else 0
        if quiet == QUIET_ROUNDS:
            break
    kept = trials.reduced(callback)
    left = tuple(rule for place, rule in enumerate(trials.replays.rules) if place in kept)
    return Pruning(left, len(rules) - len(left), trials.tried, len(trials.runs))


def thinned(problem: Problem, rng: random.Random) -> Problem:
    """Return the problem with a single goal fact, without some of the objects that this does not mention."""
    goal = rng.choice(sorted(problem.goal))
    named = set(goal.terms)
    gone = {name for name in sorted(problem.objects) if name not in named and rng.random() < SHARE_LEFT_OUT}
    objects = {name: kind for name, kind in problem.objects.items() if name not in gone}
    state = frozenset(fact for fact in problem.state if gone.isdisjoint(fact.terms))
    return replace(problem, objects=objects, state=state, goal=frozenset({goal}))


class _Trials:
    """Problems that the rules solve, with their runs."""

    def __init__(self, rules: Sequence[Rule], domain: Domain) -> None:
        self.replays = Replays(rules, domain)
        self.problems: list[Problem] = []
        self.runs: list[ReplayedRun] = []
        self.tried = 0

    @property
    def fired(self) -> frozenset[int]:
        return frozenset[int]().union(*(run.fired for run in self.runs))

    def disturbed(self, problem: Problem, rng: random.Random) -> Problem:
        """Return the problem from a state on that random choices of the rules, each for a random goal, lead to."""
        for _ in range(rng.randrange(MOST_DISTURBED)):
            goal = rng.choice(sorted(problem.goal))
            choices = self.replays.choices(problem, goal, rng) if goal not in problem.state else ()
            after = self.replays.result(problem.state, rng.choice(choices)) if choices else None
            problem = problem if after is None else replace(problem, state=after)
        return problem

    def add(self, problem: Problem, rules: frozenset[int]) -> None:
        """Try a problem, and keep it if the rules solve it."""
        self.tried += 1
        run = self.replays.run(problem, rules, STEPS_PER_GOAL * len(problem.goal))
        if run.steps is not None:
            self.problems.append(problem)
            self.runs.append(run)

    def reduced(self, callback: Callback) -> frozenset[int]:
        """Return the places of the rules that are left when all that can be spared is gone."""
        kept = self.fired
        uses = Counter(place for run in self.runs for place in run.fired)
        most = MOST_WASTE * sum(run.steps or 0 for run in self.runs)
        limits = [MOST_DETOUR * (run.steps or 0) for run in self.runs]
        order = sorted(kept, key=lambda place: (-len([*self.replays.rules[place].literals()]), uses[place], -place))
        for done, place in enumerate(order, 1):
            callback("dropping rules", done, len(order))
            runs = self._without(place, kept - {place}, limits)
            if runs is not None and sum(run.steps or 0 for run in runs) <= most:
                kept, self.runs = kept - {place}, runs
        return kept

    def _without(self, place: int, kept: frozenset[int], limits: Sequence[int]) -> list[ReplayedRun] | None:
        """Return all runs as they are without a rule; `None` where one of them does not reach its goal any more."""
        runs = list(self.runs)
        for number, run in enumerate(self.runs):
            if place in run.fired:
                runs[number] = self.replays.run(self.problems[number], kept, limits[number])
                if runs[number].steps is None:
                    return None
        return runs

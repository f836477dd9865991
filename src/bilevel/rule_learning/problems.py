"""Learn rules from problems: from all states of small ones, and from those in which the rules fail in larger ones.

The rules of the smallest problems are tried on all; where they stop, or do not arrive, the goal that is pursued there
becomes a small problem of its own, and all is learned again with it, until every problem is solved or nothing is new.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from bilevel.planning.grounding import GroundProblem
from bilevel.planning.planner import Deadline, TimeUp
from bilevel.rule_learning.learner import SpaceLearner
from bilevel.rule_learning.spaces import Space
from bilevel.rules.matching import direct_waits, goals_in_turn
from bilevel.rules.rule import GoalOrder, Rule, orders_of
from bilevel.rules.solving import final_state, solve
from bilevel.symbolic.domain import Domain, Problem

MOST_STATES = 1500  # of one space
STATES_AT_FIRST = 4000  # of whole problems, and as many of single goals of larger ones
MOST_TOO_LARGE = 5  # whole problems that have more, after which no larger ones are tried
SHARE_TO_TRY = 0.1  # of the time, for rules that time ran out for
NEW_SPACES = 4  # that failures give in one round
STEPS_PER_GOAL = 100

Callback = Callable[[str, int, int], None]  # what is being done, how much of it is done, and how much there is


class RulesFromSpaces(NamedTuple):
    """The rules, and the places of the problems that they do not solve."""

    rules: tuple[Rule, ...]
    unsolved: tuple[int, ...]


def can_learn_from_spaces(domain: Domain, problems: Sequence[Problem]) -> bool:
    """Return whether the states of problems can be listed: nature makes no choices, and goals are facts to be true."""
    return domain.is_deterministic and not domain.adl and not any(problem.negative_goal for problem in problems)


def learn_from_problems(
    domain: Domain,
    problems: Sequence[Problem],
    seconds: float = 60.0,
    callback: Callback = lambda task, done, total: None,
) -> RulesFromSpaces:
    """Return the rules that solve the most problems, within about so many seconds of processor time.

    There are none where the states of problems cannot be listed.
    """
    if not can_learn_from_spaces(domain, problems):
        return RulesFromSpaces((), tuple(range(len(problems))))
    deadline = _ProcessorTime((1 - SHARE_TO_TRY) * seconds)
    best = RulesFromSpaces((), tuple(range(len(problems))))
    orders: list[GoalOrder] = []
    spaces: list[Space] = []
    learner: SpaceLearner | None = None
    try:
        spaces += _first_spaces(domain, problems, deadline)
        while spaces:
            callback("learning rules", len(problems) - len(best.unsolved), len(problems))
            learner = SpaceLearner(domain, spaces, deadline, orders)
            learner.learn()
            order = learner.missing_order()
            if order is not None:
                orders.append(order)
                continue
            learner.finish()
            failures = [*_failures(domain, problems, learner.numbered_rules(), deadline)]
            if not best.rules or len(failures) < len(best.unsolved):
                best = RulesFromSpaces(learner.numbered_rules(), tuple(failure.place for failure in failures))
            new = [*islice(_spaces_of_failures(domain, failures, spaces, deadline), NEW_SPACES)]
            if not new:
                break
            spaces += new
    except TimeUp:
        if learner is not None and not best.rules:
            rules = learner.numbered_rules()
            failures = [*_failures(domain, problems, rules, _ProcessorTime(SHARE_TO_TRY * seconds))]
            best = RulesFromSpaces(rules, tuple(failure.place for failure in failures))
    return best


class _ProcessorTime(Deadline):
    """A deadline in seconds of processor time, so that what is learned depends less on what else the machine does."""

    def __init__(self, seconds: float) -> None:
        self._end = time.process_time() + seconds

    @property
    def seconds_left(self) -> float:
        """How many seconds are left."""
        return self._end - time.process_time()

    def check(self) -> None:
        """Raise `TimeUp` where time is up."""
        if self.seconds_left <= 0:
            raise TimeUp


class _Failure(NamedTuple):
    """A problem, as it is where the rules fail, with its place in the list."""

    place: int
    problem: Problem


def _failures(
    domain: Domain, problems: Sequence[Problem], rules: Sequence[Rule], deadline: Deadline
) -> Iterator[_Failure]:
    """Yield the problems that the rules do not solve, and those for which no time is left."""
    for place, problem in enumerate(problems):
        if deadline.seconds_left <= 0:
            yield _Failure(place, problem)
            continue
        solution = solve(domain, problem, rules, max_steps=STEPS_PER_GOAL * (1 + len(problem.goal)))
        if not solution.is_solved:
            state, _ = final_state(domain, problem, solution.plan)
            waits = direct_waits(orders_of(rules), domain, problem.goal, state, problem.all_objects(domain))
            goal = goals_in_turn(waits, problem.goal, state)
            yield _Failure(place, replace(problem, state=state, goal=goal))


def _first_spaces(domain: Domain, problems: Sequence[Problem], deadline: Deadline) -> Iterator[Space]:
    """Yield spaces of whole problems, and of a single goal of each other one, the smallest problems first.

    There is a bound on their states for whole problems, and one for each predicate of single goals; what is too large
    some times is not tried any more.
    """
    states, too_large = Counter[str](), Counter[str]()
    predicates = len({goal.predicate for problem in problems for goal in problem.goal})

    def is_wanted(kind: str, bound: float) -> bool:
        return states[kind] < bound and too_large[kind] < MOST_TOO_LARGE

    for problem in sorted(problems, key=lambda problem: len(problem.objects)):
        ground: GroundProblem | None = None
        tries = [("", problem)] if is_wanted("", STATES_AT_FIRST) else []
        tries += [
            (goal.predicate, replace(problem, goal=frozenset({goal})))
            for goal in sorted(problem.goal)
            if is_wanted(goal.predicate, STATES_AT_FIRST / predicates)
        ]
        for kind, part in tries:
            if is_wanted(kind, STATES_AT_FIRST):
                ground = ground or GroundProblem(domain, problem, deadline)
                space = Space.of(domain, part, MOST_STATES, deadline, ground)
                if space is not None:
                    states[kind] += space.size
                    yield space
                    break
                too_large[kind] += 1


def _spaces_of_failures(
    domain: Domain, failures: Sequence[_Failure], spaces: Sequence[Space], deadline: Deadline
) -> Iterator[Space]:
    """Yield spaces, other than those there are, of single goals from where the rules fail."""
    known = {(space.problem.name, space.problem.state, space.problem.goal) for space in spaces}
    for _, problem in failures:
        for goal in sorted(problem.goal):
            single = replace(problem, goal=frozenset({goal}))
            if (single.name, single.state, single.goal) not in known:
                space = Space.of(domain, single, MOST_STATES, deadline)
                if space is not None and space.solvable[0]:
                    yield space
                    break

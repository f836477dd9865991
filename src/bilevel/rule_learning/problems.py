"""Learn rules from problems: from all states of the smallest, and of those on which the rules fail, made small.

The rules are tried on all problems. One on which they fail becomes a small one, with the goal that is pursued there and
the few objects with which they still fail; all is learned again with it, until nothing fails or nothing is new.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bilevel.planning.grounding import GroundProblem
from bilevel.planning.planner import Deadline, TimeUp
from bilevel.rule_learning.learner import SpaceLearner
from bilevel.rule_learning.spaces import Space
from bilevel.rules.matching import direct_waits, goals_in_turn
from bilevel.rules.rule import GoalOrder, Rule, orders_of
from bilevel.rules.solving import final_state, solve
from bilevel.symbolic.axioms import close
from bilevel.symbolic.domain import Atom, Domain, Problem
from bilevel.symbolic.packed import no_garbage_collection

MOST_STATES = 1500  # of one space
STATES_AT_FIRST = 3000  # of all problems to begin with
MOST_TOO_LARGE = 5  # problems that have more, after which no larger ones are tried
SHARE_TO_TRY = 0.1  # of the time, for rules that time ran out for
MOST_STATES_OF_FAILURES = 375  # of a space made of a failure
NEW_SPACES = 4  # that failures give in one round
PATIENCE = 5  # rounds that bring nothing
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
    ordered = sorted(range(len(problems)), key=lambda place: len(problems[place].objects))
    with no_garbage_collection():
        rules = _learned(domain, [problems[place] for place in ordered], (1 - SHARE_TO_TRY) * seconds, callback)
        deadline = Deadline(SHARE_TO_TRY * seconds, now=time.process_time)
        unsolved = (
            place
            for place, problem in enumerate(problems)
            if deadline.seconds_left <= 0 or _stopped(domain, problem, rules) is not None
        )
        return RulesFromSpaces(rules, tuple(unsolved))


def _learned(domain: Domain, problems: Sequence[Problem], seconds: float, callback: Callback) -> tuple[Rule, ...]:
    """Return the rules that solve the most of the problems before they fail too often."""
    deadline = Deadline(seconds, now=time.process_time)
    orders: list[GoalOrder] = []
    best, most, in_vain = tuple[Rule, ...](), -1, 0
    learner: SpaceLearner | None = None
    try:
        spaces = [*_first_spaces(domain, problems, deadline)]
        while True:
            callback("learning rules", max(most, 0), len(problems))
            learner = SpaceLearner(domain, spaces, deadline, orders)
            learner.learn()
            order = learner.missing_order()
            if order is not None:
                orders.append(order)
                continue
            learner.finish()
            rules = learner.numbered_rules()
            solved, new = 0, list[Space]()
            for problem in problems:
                deadline.check()
                stopped = _stopped(domain, problem, rules)
                if stopped is None:
                    solved += 1
                else:
                    space = _counterexample(domain, rules, problem, stopped, deadline)
                    if space is not None and space.problem not in [each.problem for each in (*spaces, *new)]:
                        new.append(space)
                if len(new) >= NEW_SPACES:
                    break
            in_vain += 1
            if solved > most:
                best, most, in_vain = rules, solved, 0
            if not new or in_vain == PATIENCE:
                break
            spaces += new
    except TimeUp:
        if learner is not None and not best:
            best = learner.numbered_rules()
    return best


def _stopped(domain: Domain, problem: Problem, rules: Sequence[Rule]) -> Problem | None:
    """Return the problem as it is where the rules stop, with the goals in turn there; `None` where they solve it."""
    solution = solve(domain, problem, rules, max_steps=STEPS_PER_GOAL * (1 + len(problem.goal)))
    if solution.is_solved:
        return None
    state, _ = final_state(domain, problem, solution.plan)
    waits = direct_waits(orders_of(rules), domain, problem.goal, state, problem.all_objects(domain))
    return replace(problem, state=state, goal=goals_in_turn(waits, problem.goal, state))


def _counterexample(
    domain: Domain, rules: Sequence[Rule], problem: Problem, stopped: Problem, deadline: Deadline
) -> Space | None:
    """Return the space of a problem on which the rules fail, made small enough of one on which they do.

    It has a single goal, as it is where the rules stopped, or, where that can be solved, several. Goals and objects
    without which the rules still fail go, until all its states can be listed.
    """
    found: Space | None = None

    def fails(candidate: Problem) -> bool:
        nonlocal found
        deadline.check()
        if not candidate.goal or candidate.goal <= candidate.state or _stopped(domain, candidate, rules) is None:
            return False
        ground = GroundProblem(domain, candidate, deadline)
        space = Space.of(domain, candidate, MOST_STATES_OF_FAILURES, deadline, ground)
        found = space if space is not None and space.solvable[0] else None
        return found is not None or (space is None and candidate.goal <= candidate.state.union(ground.atoms))

    for start in [*(replace(stopped, goal=frozenset({goal})) for goal in sorted(stopped.goal)), problem]:
        smaller = start if fails(start) else None
        parts: list[str | Atom] = [*sorted(start.goal), *sorted(start.objects, key=lambda o: (start.objects[o], o))]
        size = len(parts)
        while smaller is not None and found is None and size > 1:
            size = (size + 1) // 2
            for place in range(0, len(parts), size):
                left = _without(domain, smaller, parts[place : place + size])
                if found is None and left != smaller and fails(left):
                    smaller = left
        if found is not None:
            return found
    return None


def _without(domain: Domain, problem: Problem, parts: Sequence[str | Atom]) -> Problem:
    """Return the problem without some of its goals and objects, and what is said of these."""
    objects = {name: kind for name, kind in problem.objects.items() if name not in parts}
    gone = problem.objects.keys() - objects.keys()
    state, goal = (
        frozenset(atom for atom in atoms if gone.isdisjoint(atom.terms))
        for atoms in (problem.state, problem.goal.difference(part for part in parts if isinstance(part, Atom)))
    )
    return replace(problem, objects=objects, state=close(state, domain, {**domain.constants, **objects}), goal=goal)


def _first_spaces(domain: Domain, problems: Sequence[Problem], deadline: Deadline) -> Iterator[Space]:
    """Yield the spaces of the smallest problems, up to so many states, until some are too large."""
    states = too_large = 0
    for problem in problems:
        space = Space.of(domain, problem, MOST_STATES, deadline)
        if space is not None:
            states += space.size
            yield space
        too_large += space is None
        if states > STATES_AT_FIRST or too_large == MOST_TOO_LARGE:
            break

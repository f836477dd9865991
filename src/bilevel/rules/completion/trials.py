"""Larger problems, which are tried and not proved: drawn at random, or met in episodes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from bilevel.rules.completion.completer import LARGER_PROBLEM, Callback, Completer
from bilevel.rules.completion.policy_space import all_bindings, by_predicate
from bilevel.rules.completion.small_problems import is_plausible, own_counts, single_facts
from bilevel.rules.solving import Solution, Stop, final_state, solve
from bilevel.rules.traces import PlanFor, TraceStep
from bilevel.rules.verification.growing import grow
from bilevel.symbolic.domain import EQUALITY, Atom, Domain, Facts, Problem, Schema
from bilevel.symbolic.plans import Nature
from bilevel.symbolic.semantics import applicable, bind_outcome, ground, progress

LARGER = 2  # times as many objects as in the largest small problems
STEPS_PER_OBJECT = 3  # of a random walk
MOST_DRAWN = 200  # ways to do an action, to find one that can be done
MOST_HELP = 30  # plans for one problem
MOST_FAILURES = 10  # of the planner, before it is not asked any more
STEPS_PER_GOAL = 1_000

Item = TypeVar("Item", str, Atom)


def random_larger_problems(
    seeds: Sequence[Problem], domain: Domain, objects: Mapping[str, int], count: int, seed: int
) -> list[Problem]:
    """Return problems with twice the objects that begin where random actions lead, and end where more of them lead.

    Where it is not said how many `objects` there may be, they have twice as many as the seeds of each type that has
    several.
    """
    predicates = {atom.predicate for problem in seeds for atom in problem.goal}
    single = single_facts(seeds, domain) if count else set()
    larger = [_grown(problem, domain, objects or own_counts(problem)) for problem in seeds if count]
    plausible = [problem for problem in larger if is_plausible(problem, domain, single)] or larger
    found = []
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        grown = plausible[number % len(plausible)]
        walk = _Walk(domain, grown, rng)
        start = walk.on(STEPS_PER_OBJECT * len(grown.objects))
        known = {**walk.nature.objects}
        end = walk.on(STEPS_PER_OBJECT * len(grown.objects))
        wanted = _drawn_goal(sorted(a for a in end - start if a.predicate in predicates), known, rng)
        if wanted:
            objects_then = {name: kind for name, kind in known.items() if name not in domain.constants}
            found.append(replace(grown, name=f"random-{number}", objects=objects_then, state=start, goal=wanted))
    return found


def _grown(problem: Problem, domain: Domain, objects: Mapping[str, int]) -> Problem:
    larger = {key: LARGER * number for key, number in objects.items()}
    return grow(problem, domain, larger) if larger else problem


def _drawn_goal(facts: Sequence[Atom], known: Mapping[str, str], rng: random.Random) -> Facts:
    """Return some of the facts about known objects, each of them with the same probability."""
    possible = [fact for fact in facts if known.keys() >= set(fact.terms)]
    return frozenset(fact for fact in possible if rng.random() < 0.8) or frozenset(possible[:1])


class _Walk:
    """Random actions from a problem's state on."""

    def __init__(self, domain: Domain, problem: Problem, rng: random.Random) -> None:
        self.domain, self.rng, self.state = domain, rng, problem.state
        self.nature = Nature(domain, problem.all_objects(domain), rng)

    def on(self, steps: int) -> Facts:
        """Go on for up to so many steps and return the state."""
        for _ in range(self.rng.randrange(steps // 2, steps + 1)):
            self._step()
        return self.state

    def _step(self) -> None:
        """Do the first action found, of schemas, facts and objects in random order."""
        facts = {predicate: self._shuffled(found) for predicate, found in by_predicate(self.state).items()}
        for name in self._shuffled(self.domain.schemas):
            schema = self.domain.schemas[name]
            for arguments in islice(self._candidates(schema, facts), MOST_DRAWN):
                action = ground(schema, arguments)
                if action is not None and applicable(self.state, action):
                    move = self.nature.move(schema)
                    self.state = progress(self.state, bind_outcome(action.outcomes[move.outcome], move.binding))
                    return

    def _candidates(self, schema: Schema, facts: Mapping[str, Sequence[Atom]]) -> Iterator[tuple[str, ...]]:
        """Yield arguments for which the facts that the schema needs are there."""
        needed = [atom for atom in sorted(schema.precondition) if atom.predicate != EQUALITY]
        bound = {term for atom in needed for term in atom.terms}
        objects, is_subtype = self.nature.objects, self.domain.is_subtype
        free = {
            p.name: self._shuffled(o for o, kind in objects.items() if is_subtype(kind, p.type))
            for p in schema.parameters
            if p.name not in bound
        }
        for binding in all_bindings([(atom, facts.get(atom.predicate, ())) for atom in needed], free, {}):
            if all(is_subtype(objects[binding[p.name]], p.type) for p in schema.parameters):
                yield tuple(binding[p.name] for p in schema.parameters)

    def _shuffled(self, items: Iterable[Item]) -> list[Item]:
        found = sorted(items)
        self.rng.shuffle(found)
        return found


class Trials:
    """Solves problems by the rules; where no rule applies, a planner helps, and its plan is learned from."""

    def __init__(self, completer: Completer, plan_for: PlanFor | None, callback: Callback) -> None:
        self._completer, self._plan_for, self._callback = completer, plan_for, callback
        self._domain = completer.rules.domain
        self.solved = self.unknown = self._failures = 0

    def run(self, problems: Sequence[Problem]) -> None:
        """Try the rules on these problems, and add what they lack."""
        for done, problem in enumerate(problems, 1):
            self._try(problem)
            self._callback("larger problems", done, len(problems))

    def _try(self, problem: Problem) -> None:
        for _ in range(MOST_HELP):
            bound = STEPS_PER_GOAL * (len(problem.goal) + 1)
            rules, commit = self._completer.rules.rules, self._completer.commit
            solution = solve(self._domain, problem, rules, max_steps=bound, commit=commit)
            if solution.is_solved:
                self.solved += 1
                return
            if solution.stop is not Stop.NO_RULE:
                return
            helped = self._help(problem, solution)
            if helped is None:
                self.unknown += 1
            if not helped:
                return

    def _help(self, problem: Problem, solution: Solution) -> bool | None:
        """Plan for a goal fact from where the rules stopped; return whether it taught anything, `None` without one."""
        if self._plan_for is None:
            return None
        state, objects = final_state(self._domain, problem, solution.plan)
        objects = {name: kind for name, kind in objects.items() if name not in self._domain.constants}
        known = None
        for fact in sorted(problem.goal - state):
            if self._failures >= MOST_FAILURES:
                break
            goal = frozenset({fact})
            plan = self._plan_for(self._domain, replace(problem, objects=objects, state=state, goal=goal))
            if plan:
                steps, here = [], state
                for action, outcome in plan:
                    steps.append(TraceStep(here, action, outcome, goal))
                    here = progress(here, outcome)
                known = self._completer.learn(steps, {**self._domain.constants, **objects}, LARGER_PROBLEM)
                if known:
                    return True
            self._failures += not plan
        return known

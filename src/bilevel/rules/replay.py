"""Follow rules through small problems again and again, with some of them left out.

What a rule does in a state for a goal fact does not depend on the other rules. So it is found out once, and a run with
fewer rules looks it up. What fires is what `solve` with commitment does, which the tests hold it to.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bilevel.rules.engine import RuleEngine
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Problem
from bilevel.symbolic.semantics import applicable, ground, progress


class ReplayedRun(NamedTuple):
    """How many steps the rules take to the goal, or `None` where they do not get there, and which of them fire."""

    steps: int | None
    fired: frozenset[int]


class _World(NamedTuple):
    """The objects of a problem, and for a state and a goal fact what each rule does, as far as it was found out."""

    objects: Mapping[str, str]
    known: dict[tuple[Facts, Atom], dict[int, Action | None]]


class Replays:
    """Runs of rules, each with one goal atom, through problems of a deterministic domain.

    Rules are known by their place in the order in which they fire.
    """

    def __init__(self, rules: Sequence[Rule], domain: Domain) -> None:
        self.domain = domain
        self._engine = RuleEngine(rules, domain, frozenset(), frozenset(), {})
        self.rules = self._engine.rules
        self._serving: dict[str, list[int]] = {}  # the rules for goals of each predicate
        for place, rule in enumerate(self.rules):
            (goal,) = rule.goal_condition
            self._serving.setdefault(goal.predicate, []).append(place)
        self._worlds: dict[frozenset[tuple[str, str]], _World] = {}
        self._after: dict[tuple[Facts, Action], Facts | None] = {}

    def run(self, problem: Problem, kept: Collection[int], most_steps: int) -> ReplayedRun:
        """Follow the kept rules from the problem's state until its goal holds, or there is a reason to stop."""
        state, fired, seen = problem.state, set[int](), set[tuple[Facts, Atom]]()
        world = self._world(problem)
        aim: Atom | None = None
        for steps in range(most_steps + 1):
            wanted = problem.goal - state
            if not wanted:
                return ReplayedRun(steps, frozenset(fired))
            found = self._first(world, state, aim, kept) if aim in wanted else None
            if found is None:
                choices = ((self._first(world, state, goal, kept), goal) for goal in wanted)
                best = min(((*choice, goal.terms, goal) for choice, goal in choices if choice), default=None)
                if best is None:
                    break
                found, aim = best[:2], best[3]
            place, action = found
            after = self.result(state, action)
            assert aim is not None
            if after is None or (state, aim) in seen:
                break
            seen.add((state, aim))
            fired.add(place)
            state = after
        return ReplayedRun(None, frozenset(fired))

    def _world(self, problem: Problem) -> _World:
        objects = problem.all_objects(self.domain)
        return self._worlds.setdefault(frozenset(objects.items()), _World(objects, {}))

    def _first(
        self, world: _World, state: Facts, goal: Atom | None, kept: Collection[int]
    ) -> tuple[int, Action] | None:
        """Return the first kept rule that serves the goal fact in this state, and its first action."""
        assert goal is not None
        known = world.known.setdefault((state, goal), {})
        for place in self._serving.get(goal.predicate, ()):
            if place in kept:
                if place not in known:
                    self._engine.follow(state, frozenset({goal}), world.objects)
                    instance = self._engine.serve(goal, place)
                    known[place] = self._engine.action(instance) if instance else None
                action = known[place]
                if action is not None:
                    return place, action
        return None

    def choices(self, problem: Problem, goal: Atom, rng: random.Random) -> tuple[Action, ...]:
        """Return what one of the rules can do in the problem's state for the goal fact; which one is random."""
        serving = self._serving.get(goal.predicate, ())
        self._engine.follow(problem.state, frozenset({goal}), self._world(problem).objects)
        for place in rng.sample(serving, len(serving)):
            found = {self._engine.action((place, values)) for values in self._engine.instances(place)}
            if found:
                return tuple(sorted(found))
        return ()

    def result(self, state: Facts, action: Action) -> Facts | None:
        """Return the state after an action; `None` where it cannot be done."""
        key = state, action
        if key not in self._after:
            done = ground(self.domain.schemas[action.name], action.arguments)
            able = done is not None and applicable(state, done)
            self._after[key] = progress(state, done.outcomes[0]) if done is not None and able else None
        return self._after[key]

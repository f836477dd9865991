"""Follow rules through small problems again and again, with some of them left out.

What a rule does in a state for a goal fact does not depend on the other rules. So it is found out once, and a run with
fewer rules looks it up. What fires is what `solve` with commitment does, which the tests hold it to.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from bilevel.rules.matching import asked_types, free_variables
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, Domain, Facts, Problem, is_variable
from bilevel.symbolic.semantics import applicable, ground, progress

Values = list[str]
Index = Mapping[tuple[str, int, str], Sequence[tuple[str, ...]]]  # the terms of facts with this one in this place


class Run(NamedTuple):
    """How many steps the rules take to the goal, or `None` where they do not get there, and which of them fire."""

    steps: int | None
    fired: frozenset[int]


class _World(NamedTuple):
    """The objects of a problem, and for a state and a goal fact what each rule does, as far as it was found out."""

    objects: Mapping[str, str]
    known: dict[tuple[Facts, Atom], dict[int, tuple[Action, ...]]]


class Replays:
    """Runs of rules, each with one goal atom, through problems of a deterministic domain.

    Rules are known by their place in the order in which they fire.
    """

    def __init__(self, rules: Sequence[Rule], domain: Domain) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: rule.priority))
        self.domain = domain
        self._matchers = [_Matcher(rule, domain) for rule in self.rules]
        self._serving: dict[str, list[int]] = {}  # the rules for goals of each predicate
        for place, rule in enumerate(self.rules):
            (goal,) = rule.goal_condition
            self._serving.setdefault(goal.predicate, []).append(place)
        self._worlds: dict[frozenset[tuple[str, str]], _World] = {}
        self._indices: dict[Facts, Index] = {}
        self._after: dict[tuple[Facts, Action], Facts | None] = {}

    def run(self, problem: Problem, kept: Collection[int], most_steps: int) -> Run:
        """Follow the kept rules from the problem's state until its goal holds, or there is a reason to stop."""
        state, fired, seen = problem.state, set[int](), set[tuple[Facts, Atom]]()
        world = self._world(problem)
        aim: Atom | None = None
        for steps in range(most_steps + 1):
            wanted = problem.goal - state
            if not wanted:
                return Run(steps, frozenset(fired))
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
        return Run(None, frozenset(fired))

    def _world(self, problem: Problem) -> _World:
        objects = problem.all_objects(self.domain)
        return self._worlds.setdefault(frozenset(objects.items()), _World(objects, {}))

    def _first(
        self, world: _World, state: Facts, goal: Atom | None, kept: Collection[int]
    ) -> tuple[int, Action] | None:
        """Return the first kept rule that serves the goal fact in this state, and its first action."""
        assert goal is not None
        for place in self._serving.get(goal.predicate, ()):
            if place in kept:
                actions = self._actions(world, state, goal, place)
                if actions:
                    return place, actions[0]
        return None

    def choices(self, problem: Problem, goal: Atom, rng: random.Random) -> tuple[Action, ...]:
        """Return what one of the rules can do in the problem's state for the goal fact; which one is random."""
        serving, world = self._serving.get(goal.predicate, ()), self._world(problem)
        found = (self._actions(world, problem.state, goal, place) for place in rng.sample(serving, len(serving)))
        return next(filter(None, found), ())

    def _actions(self, world: _World, state: Facts, goal: Atom, place: int) -> tuple[Action, ...]:
        known = world.known.setdefault((state, goal), {})
        if place not in known:
            if state not in self._indices:
                self._indices[state] = _index(state)
            known[place] = self._matchers[place].actions(state, self._indices[state], goal, world.objects)
        return known[place]

    def result(self, state: Facts, action: Action) -> Facts | None:
        """Return the state after an action; `None` where it cannot be done."""
        key = state, action
        if key not in self._after:
            done = ground(self.domain.schemas[action.name], action.arguments)
            able = done is not None and applicable(state, done)
            self._after[key] = progress(state, done.outcomes[0]) if done is not None and able else None
        return self._after[key]


def _index(state: Facts) -> Index:
    found: dict[tuple[str, int, str], list[tuple[str, ...]]] = {}
    for predicate, terms in state:
        found.setdefault((predicate, -1, ""), []).append(terms)
        for place, term in enumerate(terms):
            found.setdefault((predicate, place, term), []).append(terms)
    return found


class _Condition(NamedTuple):
    """How a fact is looked for: what is known of its terms, and where what is not goes.

    `known` and `new` are pairs of a place among the terms and one among the values.
    """

    predicate: str
    known: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, int], ...]

    def candidates(self, index: Index, values: Values) -> Sequence[tuple[str, ...]]:
        found = index.get((self.predicate, -1, ""), ())
        for place, number in self.known:
            some = index.get((self.predicate, place, values[number]), ())
            if len(some) < len(found):
                found = some
        return found


class _Matcher:
    """Finds the actions of a rule in a state for a goal fact.

    Conditions that bind what the action is about come first. Of the others it is enough that they can be met, so for
    each action the search for objects ends with the first that do.
    """

    def __init__(self, rule: Rule, domain: Domain) -> None:
        self._rule, self._domain = rule, domain
        (self._goal,) = rule.goal_condition
        asked, self._free = asked_types(rule, domain), free_variables(rule)
        about = {term for term in rule.action.arguments if is_variable(term)}.difference(self._free)
        atoms, self._binding = _in_join_order(rule.state_condition, about, {*self._goal.terms, *self._free})
        terms = [*self._goal.terms, *self._free, *(term for atom in atoms for term in atom.terms)]
        terms += [*rule.action.arguments, *(term for pair in rule.inequalities for term in pair)]
        terms += [term for atom in rule.absent for term in atom.terms]
        numbers = {term: number for number, term in enumerate(dict.fromkeys(terms))}
        self._values: Values = [*numbers]  # a constant's value is the constant, a variable's is yet to come
        self._arguments = [numbers[term] for term in rule.action.arguments]
        self._asked = [(numbers[variable], kind) for variable, kind in asked.items()]
        self._unequal = [(numbers[one], numbers[other]) for one, other in rule.inequalities]
        self._absent = [(atom.predicate, [numbers[term] for term in atom.terms]) for atom in rule.absent]
        bound = {term for term in terms if not is_variable(term)}
        self._goal_condition = _condition(self._goal, numbers, bound)
        bound.update(self._free)
        self._conditions = [_condition(atom, numbers, bound) for atom in atoms]

    def actions(self, state: Facts, index: Index, goal: Atom, objects: Mapping[str, str]) -> tuple[Action, ...]:
        """Return the rule's actions in the order in which ties are decided."""
        found = set[tuple[str, ...]]()
        values = self._values.copy()

        def is_met() -> bool:
            is_subtype = self._domain.is_subtype
            return (
                all(is_subtype(objects.get(values[number], ROOT_TYPE), kind) for number, kind in self._asked)
                and all(values[one] != values[other] for one, other in self._unequal)
                and not any(Atom(name, tuple([values[n] for n in terms])) in state for name, terms in self._absent)
            )

        def note() -> bool:
            arguments = tuple([values[number] for number in self._arguments])
            is_new = arguments not in found and len(set(arguments)) == len(arguments)
            if is_new and self._search(self._binding, len(self._conditions), values, index, is_met):
                found.add(arguments)
            return False

        if _fits(self._goal_condition, goal.terms, values):
            start = len(set(self._goal.terms))
            for names in product(objects, repeat=len(self._free)):
                values[start : start + len(names)] = names
                self._search(0, self._binding, values, index, note)
        return tuple(sorted(Action(self._rule.action.name, arguments) for arguments in found))

    def _search(self, place: int, end: int, values: Values, index: Index, finish: Callable[[], bool]) -> bool:
        """Bind variables so that the conditions from one place to another hold, until `finish` is content with it."""
        if place == end:
            return finish()
        condition = self._conditions[place]
        return any(
            _fits(condition, terms, values) and self._search(place + 1, end, values, index, finish)
            for terms in condition.candidates(index, values)
        )


def _condition(atom: Atom, numbers: Mapping[str, int], bound: set[str]) -> _Condition:
    """Return how to look for an atom whose `bound` terms have values; afterwards, all of its terms are bound."""
    places = [(place, numbers[term], term in bound) for place, term in enumerate(atom.terms)]
    bound.update(atom.terms)
    known, new = (tuple((place, number) for place, number, is_known in places if is_known is k) for k in (True, False))
    return _Condition(atom.predicate, known, new)


def _fits(condition: _Condition, terms: Sequence[str], values: Values) -> bool:
    """Return whether a fact with these terms meets the condition, and note the values of what it binds."""
    for place, number in condition.known:
        if terms[place] != values[number]:
            return False
    for place, number in condition.new:
        values[number] = terms[place]
    return all(values[number] == terms[place] for place, number in condition.new)  # one may stand in two places


def _in_join_order(conditions: Facts, about: set[str], bound: set[str]) -> tuple[list[Atom], int]:
    """Return the conditions, next always one that leaves the fewest terms open, and how many bind what it is `about`.

    Where several leave as few, those that mention what it is about come first.
    """
    rest, ordered, binding = sorted(conditions), list[Atom](), 0

    def order(atom: Atom) -> tuple[int, bool, int]:
        return len({t for t in atom.terms if is_variable(t)} - bound), about.isdisjoint(atom.terms), -len(atom.terms)

    while rest:
        atom = min(rest, key=order)
        rest.remove(atom)
        ordered.append(atom)
        if not about <= bound:
            binding = len(ordered)
        bound = bound.union(atom.terms)
    return ordered, binding

"""Why does no rule apply? The rules that came closest, and what each of them lacks.

For each rule, a depth-first search over its conditions looks for the binding that leaves the fewest unmet, goal
conditions above all. It always takes the condition with the fewest facts left to choose from, so that of two bindings
that lack one condition each, it finds the one that meets the more telling conditions: the block in the gripper rather
than any block that could be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.matching import Binding, Match, checked_types, free_variables, unify
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, is_variable
from bilevel.symbolic.semantics import substitute

MOST_VISITS = 10_000  # facts tried for one rule: bounds the time in a large state, at the price of a best guess
GOAL_COST = 1_000  # of giving up a goal condition; that of any other is 1

Index = Mapping[tuple[str | int, ...], Sequence[Atom]]  # facts by predicate, and by predicate and one argument


@dataclass(frozen=True)
class NearMiss:
    """A rule with the binding that came closest, its unmet conditions, and how many of them are about goals.

    Variables that no fact could bind are left out of the binding.
    """

    match: Match
    missing: tuple[str, ...]
    unmet_goals: int

    @property
    def cost(self) -> int:
        """How far the rule is from applying; one without unmet goal conditions speaks about a goal at hand."""
        return len(self.missing) + (GOAL_COST - 1) * self.unmet_goals

    def __str__(self) -> str:
        more = len(self.missing) - 1
        suffix = f" (and {more} more unmet)" if more > 0 else ""
        return f"rule {self.match.rule.priority} {self.match.action}: {self.missing[0]}{suffix}"


def why_not(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str], limit: int = 3
) -> str:
    """Return why no rule applies, a line for each reason."""
    if goal <= state:
        return "every goal is achieved already"
    if not rules:
        return "there are no rules"
    found = nearest(rules, domain, state, goal, objects)[:limit]
    if not found:
        return "some rule applies"
    if any(not miss.unmet_goals for miss in found):
        return "\n".join(map(str, found))
    unachieved = sorted(goal - state)
    more = f" (and {len(unachieved) - limit} more)" if len(unachieved) > limit else ""
    return f"no rule speaks about an unachieved goal: {', '.join(map(str, unachieved[:limit]))}{more}"


def nearest(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str]
) -> list[NearMiss]:
    """Return the rules that do not apply, those that came closest first, then by priority and place in the list."""
    facts = with_closures(state, closures_in(rules, domain)).union(map(_as_goal, goal - state))
    if any(map(free_variables, rules)):
        facts = facts.union(map(_as_known, objects))
    asked = {atom.predicate for rule in rules for atom in _conditions(rule)}
    index: dict[tuple[str | int, ...], list[Atom]] = {}
    for fact in sorted(fact for fact in facts if fact.predicate in asked):
        for key in _keys(fact, fact.terms):
            index.setdefault(key, []).append(fact)
    misses = [_Search(rule, domain, facts, index, objects).run() for rule in rules]
    found = [miss for miss in misses if miss.missing]
    return sorted(found, key=lambda miss: (miss.cost, miss.match.rule.priority))


def _as_goal(atom: Atom) -> Atom:
    return Atom(f"goal {atom.predicate}", atom.terms)


def _as_known(term: str) -> Atom:
    """Return what is said of every object, to bind the variables that no condition binds."""
    return Atom("known object", (term,))


def _conditions(rule: Rule) -> list[Atom]:
    goals, facts = map(_as_goal, sorted(rule.goal_condition)), sorted(rule.state_condition)
    return [*goals, *facts, *map(_as_known, free_variables(rule))]


def _keys(atom: Atom, constants: Sequence[str]) -> list[tuple[str | int, ...]]:
    places = [(atom.predicate, place, term) for place, term in enumerate(atom.terms) if term in constants]
    return [(atom.predicate,), *places]


class _Search:
    """The search for the binding of one rule that leaves the fewest conditions unmet."""

    def __init__(self, rule: Rule, domain: Domain, facts: Facts, index: Index, objects: Mapping[str, str]) -> None:
        self.rule, self.domain, self.facts, self.index, self.objects = rule, domain, facts, index, objects
        self.best: NearMiss | None = None
        self.visits = 0

    def run(self) -> NearMiss:
        """Return the binding that comes closest, and what it lacks."""
        self.explore(_conditions(self.rule), {}, 0)
        return self.best or self.miss({})

    def explore(self, pending: Sequence[Atom], binding: Binding, cost: int) -> None:
        """Meet or give up the pending conditions in every way that could beat the best binding so far."""
        if not pending:
            miss = self.miss(binding)
            if self.best is None or miss.cost < self.best.cost:
                self.best = miss
            return
        choices = [self.candidates(atom) for atom in pending]
        chosen = min(range(len(pending)), key=lambda place: len(choices[place]))
        rest = [*pending[:chosen], *pending[chosen + 1 :]]
        for fact in choices[chosen]:
            self.visits += 1
            found = unify(pending[chosen], fact)
            if found is not None and self.fits(found):
                self.explore([substitute(atom, found) for atom in rest], binding | found, cost)
            if self.is_over(cost):
                return
        cost += GOAL_COST if pending[chosen].predicate.startswith("goal ") else 1
        if not self.is_over(cost):
            self.explore(rest, binding, cost)

    def candidates(self, atom: Atom) -> Sequence[Atom]:
        """Return facts among which are all that the atom may be."""
        constants = [term for term in atom.terms if not is_variable(term)]
        return min((self.index.get(key, ()) for key in _keys(atom, constants)), key=len)

    def fits(self, found: Binding) -> bool:
        """Return whether no variable gets an object that is known to be of another type."""
        known = ((self.objects.get(value), self.rule.types[variable]) for variable, value in found.items())
        return all(kind is None or self.domain.is_subtype(kind, wanted) for kind, wanted in known)

    def is_over(self, cost: int) -> bool:
        """Return whether going on at this cost cannot beat the best, or would take too long."""
        return self.best is not None and (self.best.cost <= max(cost, 1) or self.visits > MOST_VISITS)

    def miss(self, binding: Binding) -> NearMiss:
        """Return the rule with this binding, and what it then lacks."""
        goals = [substitute(atom, binding) for atom in self.rule.in_reading_order(self.rule.goal_condition)]
        unmet = [
            _unmet(atom, "is not an unachieved goal", "no unachieved goal matches")
            for atom in goals
            if _as_goal(atom) not in self.facts
        ]
        missing = *self.unmet_conditions(binding), *unmet
        return NearMiss(Match(self.rule, binding), missing, len(unmet))

    def unmet_conditions(self, binding: Binding) -> Iterator[str]:
        """Yield what the rule still lacks with this binding but for goals, as it prints its conditions."""
        types = checked_types(self.rule, self.domain)
        for kind, condition in self.rule.literals():
            atom = substitute(condition, binding)
            if kind == "" and atom not in self.facts:
                kinds = [f"{term} a {types[term]}" for term in dict.fromkeys(atom.terms) if term in types]
                yield _unmet(atom, "does not hold", "no fact matches") + (
                    f" with {' and '.join(kinds)}" if kinds else ""
                )
            elif kind == "not" and atom in self.facts:
                yield f"{atom} holds but must be absent"
        for left, right in sorted(self.rule.inequalities):
            if binding.get(left, left) == binding.get(right, right):
                yield f"{left} and {right} are both {binding.get(right, right)}"
        for variable, kind in types.items():
            if variable in binding and not self.domain.is_subtype(self.objects.get(binding[variable], ROOT_TYPE), kind):
                yield f"{binding[variable]} is not of type {kind}"
        for variable in free_variables(self.rule):
            if variable not in binding:
                yield f"no {self.rule.types[variable]} is left for {variable}"


def _unmet(atom: Atom, fact: str, pattern: str) -> str:
    """Say that an atom does not hold, or, where it has variables, that none like it does."""
    return f"{pattern} {atom}" if any(map(is_variable, atom.terms)) else f"{atom} {fact}"

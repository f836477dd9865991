"""What lacks for a rule to apply, or for an action to explain a change: the instance that comes nearest.

A depth-first search over a rule's conditions looks for the binding that leaves the fewest unmet, goal conditions above
all. It always takes the condition with the fewest facts left to choose from, so that of two bindings that lack one
condition each, it finds the one that meets the more telling conditions: the block in the gripper rather than any block
that could be. An action is looked for as a rule whose goals are its effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bilevel.rules.derived import with_derived
from bilevel.rules.matching import (
    Binding,
    Match,
    checked_types,
    direct_waits,
    free_variables,
    goals_in_turn,
    predecessors,
    unify,
)
from bilevel.rules.rule import Rule, orders_of
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Action, Atom, Domain, Facts, Outcome, Schema, is_variable
from bilevel.symbolic.semantics import GroundAction, bind_outcome, ground, ground_action, substitute

MOST_VISITS = 10_000  # facts tried for one rule: bounds the time in a large state, at the price of a best guess
GOAL_COST = 1_000  # of giving up a goal condition; that of any other is 1

Index = Mapping[tuple[str | int, ...], Sequence[Atom]]  # facts by predicate, and by predicate and one argument


class NearMiss(NamedTuple):
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
    misses = [miss for miss in nearest_instances(rules, domain, state, goal, objects) if miss.missing]
    found = sorted(misses, key=lambda miss: (miss.cost, miss.match.rule.priority))[:limit]
    if not found:
        return "some rule applies"
    waiting = goals_that_wait(rules, domain, state, goal, objects)
    if any(not miss.unmet_goals for miss in found):
        return "\n".join([*map(str, found), *waiting])
    unachieved = sorted(goal - state)
    more = f" (and {len(unachieved) - limit} more)" if len(unachieved) > limit else ""
    spoken = f"no rule speaks about an unachieved goal: {', '.join(map(str, unachieved[:limit]))}{more}"
    return "\n".join([spoken, *waiting])


def goals_that_wait(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str]
) -> list[str]:
    """Return a line for each unachieved goal that waits for others."""
    waits = direct_waits(orders_of(rules), domain, goal, state, objects)
    awaited = {later: sorted(predecessors(waits, later) - state) for later in sorted(waits.keys() - state)}
    return [f"{later} waits for {', '.join(map(str, earlier))}" for later, earlier in awaited.items() if earlier]


def nearest_instances(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str]
) -> list[NearMiss]:
    """Return for each rule the instance that comes closest; nothing is missing where it applies."""
    waits = direct_waits(orders_of(rules), domain, goal, state, objects)
    facts = with_derived(state, rules, domain)
    facts = facts.union(map(_as_goal, goals_in_turn(waits, goal, state)))
    if any(map(free_variables, rules)):
        facts = facts.union(map(_as_known, objects))
    index: dict[tuple[str | int, ...], list[Atom]] = {}
    for fact in sorted(facts):
        for key in _keys(fact):
            index.setdefault(key, []).append(fact)
    return [_nearest(rule, domain, facts, index, objects) for rule in rules]


def _as_goal(atom: Atom) -> Atom:
    return Atom(f"goal {atom.predicate}", atom.terms)


def _as_known(term: str) -> Atom:
    """Return what is said of every object, to bind the variables that no condition binds."""
    return Atom("known object", (term,))


def _keys(atom: Atom) -> list[tuple[str | int, ...]]:
    """Return under what facts like this one are filed: the predicate, and that with each known argument."""
    places = [(atom.predicate, place, term) for place, term in enumerate(atom.terms) if not is_variable(term)]
    return [(atom.predicate,), *places]


def _nearest(rule: Rule, domain: Domain, facts: Facts, index: Index, objects: Mapping[str, str]) -> NearMiss:
    """Return the binding of one rule that leaves the fewest conditions unmet, and what it lacks."""
    best: NearMiss | None = None
    visits = 0

    def is_over(cost: int) -> bool:
        """Return whether going on at this cost cannot beat the best, or would take too long."""
        return best is not None and (best.cost <= max(cost, 1) or visits > MOST_VISITS)

    def explore(pending: Sequence[Atom], binding: Binding, cost: int) -> None:
        """Meet or give up the pending conditions in every way that could beat the best binding so far."""
        nonlocal best, visits
        if not pending:
            miss = _miss(rule, binding, domain, facts, objects)
            best = miss if best is None or miss.cost < best.cost else best
            return
        choices = [min((index.get(key, ()) for key in _keys(atom)), key=len) for atom in pending]
        chosen = min(range(len(pending)), key=lambda place: len(choices[place]))
        rest = [*pending[:chosen], *pending[chosen + 1 :]]
        for fact in choices[chosen]:
            visits += 1
            found = unify(pending[chosen], fact)
            known = ((objects.get(value), rule.types[variable]) for variable, value in (found or {}).items())
            if found is not None and all(kind is None or domain.is_subtype(kind, wanted) for kind, wanted in known):
                explore([substitute(atom, found) for atom in rest], binding | found, cost)
            if is_over(cost):
                return
        cost += GOAL_COST if pending[chosen].predicate.startswith("goal ") else 1
        if not is_over(cost):
            explore(rest, binding, cost)

    conditions = [*map(_as_goal, sorted(rule.goal_condition)), *sorted(rule.state_condition)]
    explore([*conditions, *map(_as_known, free_variables(rule))], {}, 0)
    return best or _miss(rule, {}, domain, facts, objects)


def _miss(rule: Rule, binding: Binding, domain: Domain, facts: Facts, objects: Mapping[str, str]) -> NearMiss:
    """Return the rule with this binding, and what it then lacks, as it prints its conditions; goals come last."""
    missing, goals = list[str](), list[str]()
    in_turn = " that waits for no other" if rule.orders else ""
    for kind, condition in rule.literals():
        atom = substitute(condition, binding)
        if kind == "" and atom not in facts:
            missing.append(f"{atom} does not hold")
        elif kind == "not" and atom in facts:
            missing.append(f"{atom} holds but must be absent")
        elif kind == "goal" and _as_goal(atom) not in facts:
            goals.append(f"{atom} is not an unachieved goal{in_turn}")
    for left, right in sorted(rule.inequalities):
        if binding.get(left, left) == binding.get(right, right):
            missing.append(f"{left} and {right} are both {binding.get(right, right)}")
    for variable, kind in checked_types(rule, domain).items():
        if variable in binding and not domain.is_subtype(objects.get(binding[variable], ROOT_TYPE), kind):
            missing.append(f"{binding[variable]} is not of type {kind}")
    free = [variable for variable in free_variables(rule) if variable not in binding]
    missing += [f"no {rule.types[variable]} is left for {variable}" for variable in free]
    return NearMiss(Match(rule, binding), (*missing, *goals), len(goals))


# Changes that no action explains


class Difference(NamedTuple):
    """What would have to be otherwise for an action to explain a change."""

    unmet: Facts  # conditions that did not hold
    hindering: Facts  # facts that held and should not have
    not_come: Facts
    not_gone: Facts
    others: Facts  # that changed as well
    arrivals: Facts  # the same, about objects that are seen for the first time

    def __str__(self) -> str:
        said = (
            "did not hold before",
            "held before",
            "did not become true",
            "did not become false",
            "changed as well",
            "appeared at the same step",
        )
        parts = [
            f"{', '.join(map(str, sorted(facts)))} {what}" for facts, what in zip(self, said, strict=True) if facts
        ]
        return "; ".join(parts) or "the labels came to that in several steps"


def difference(action: GroundAction, outcome: Outcome, before: Facts, after: Facts) -> Difference:
    """Return how a change differs from this outcome of an action."""
    known = {term for fact in before for term in fact.terms}
    others = (before ^ after) - outcome.add - outcome.delete
    arrivals = frozenset(fact for fact in others if not known.issuperset(fact.terms))
    condition, gone = action.condition, outcome.delete - outcome.add
    unmet, hindering = condition.positive - before, condition.negative & before
    return Difference(unmet, hindering, outcome.add - after, gone & after, others - arrivals, arrivals)


class Nearest(NamedTuple):
    """The action that comes nearest to a change, and what its likest outcome lacks."""

    action: Action
    lacks: Difference


def nearest_action(domain: Domain, before: Facts, after: Facts, objects: Mapping[str, str]) -> Nearest | None:
    """Return the action whose preconditions and effects differ least from a change, and which has a part in it.

    There is none if more facts would be wrong about it than there are facts that changed.
    """
    ways = [(schema, outcome) for schema in domain.schemas.values() for outcome in schema.outcomes]
    rules, changes = [_as_rule(schema, outcome) for schema, outcome in ways], after - before | _gone(before - after)
    with_gone = replace(
        domain, predicates={**domain.predicates, **{f"not {name}": p for name, p in domain.predicates.items()}}
    )
    misses = nearest_instances(rules, with_gone, before, changes, {**domain.constants, **objects})
    found = []
    for (schema, outcome), (match, _, unmet_goals) in zip(ways, misses, strict=True):
        if unmet_goals < len(match.rule.goal_condition) and match.binding.keys() >= {*match.rule.action.arguments}:
            action = ground(schema, match.action.arguments)
            if action is not None:
                lacks = difference(action, bind_outcome(outcome, match.binding), before, after)
                found.append((sum(map(len, lacks)), Nearest(action.action, lacks)))
    wrong, nearest = min(found, key=lambda each: (each[0], each[1].action), default=(0, None))
    return nearest if wrong <= len(changes) else None


def _gone(atoms: Iterable[Atom]) -> Facts:
    """Return what is said of atoms that do not hold any more."""
    return frozenset(Atom(f"not {atom.predicate}", atom.terms) for atom in atoms)


def _as_rule(schema: Schema, outcome: Outcome) -> Rule:
    """Return a rule with the schema's preconditions whose goals are an outcome's changes."""
    needed = frozenset(atom for atom in schema.precondition if atom.predicate != EQUALITY)
    goals = outcome.add | _gone(outcome.delete - outcome.add)
    action = Action(schema.name, tuple(parameter.name for parameter in schema.parameters))
    variables = (*schema.parameters, *outcome.chosen)
    return Rule(1, variables, needed, goals, action, schema.negative_precondition)


def how_it_differs(domain: Domain, action: Action, before: Facts, after: Facts) -> str:
    """Say how what came of an action differs from the likest of its outcomes."""
    grounded = ground_action(domain, action)
    changed = before ^ after
    outcome = min(grounded.outcomes, key=lambda outcome: len(changed ^ (outcome.add | outcome.delete)))
    return str(difference(grounded, outcome, before, after))

"""When does a rule apply? The definition, written to be read; the fast engine is tested against it.

A rule applies in a state and a goal for a binding of its variables if its state condition is present, its negative
condition absent, its goal condition among the goals not yet achieved that wait for no other, the terms of its action
all different, and each variable's object of the variable's type. Of all that apply, the one that fires is the first by
priority, then by the rule's place in the list, then by the length of its path if it has one, then by the action's
arguments in alphabetical order, then by the goal's arguments, then by the other variables. So the choice is a function
of state and goal alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from bilevel.rules.derived import path_of, paths_for, predicate_of, with_derived
from bilevel.rules.rule import GoalOrder, Rule
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, Domain, Facts, is_variable
from bilevel.symbolic.semantics import substitute, substitute_all

Binding = dict[str, str]


class Match(NamedTuple):
    """A rule and the objects for its variables."""

    rule: Rule
    binding: Binding

    @property
    def action(self) -> Action:
        """The rule's action with its variables bound."""
        return bind_action(self.rule.action, self.binding)

    @property
    def served(self) -> Facts:
        """The goal facts that this instance of the rule works towards."""
        return substitute_all(self.rule.goal_condition, self.binding)


def bind_action(action: Action, binding: Mapping[str, str]) -> Action:
    """Return the action with objects for its variables."""
    return Action(action.name, tuple([binding.get(term, term) for term in action.arguments]))


def free_variables(rule: Rule) -> list[str]:
    """Return the variables that no positive condition binds; they range over the known objects of their type."""
    bound = {term for atom in rule.state_condition | rule.goal_condition for term in atom.terms}
    return [variable.name for variable in rule.variables if variable.name not in bound]


def checked_types(rule: Rule, domain: Domain) -> dict[str, str]:
    """Return the variables whose type the rule's positive conditions do not imply already, with that type.

    An object whose type is not declared passes no such check; what its facts imply it is, it is.
    """
    implied = {
        (term, parameter.type)
        for atom in rule.state_condition | rule.goal_condition
        for term, parameter in zip(atom.terms, predicate_of(atom.predicate, domain).parameters, strict=True)
    }
    return {
        variable.name: variable.type
        for variable in rule.variables
        if variable.type != ROOT_TYPE
        and not any(term == variable.name and domain.is_subtype(kind, variable.type) for term, kind in implied)
    }


def bindings(
    rule: Rule,
    domain: Domain,
    state: Facts,
    goal: Facts,
    objects: Mapping[str, str],
    given: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Binding]:
    """Yield every binding for which the rule applies and in which some variables have given values."""
    unachieved = goal - state
    if rule.orders:
        unachieved = goals_in_turn(direct_waits(rule.orders, domain, goal, state, objects), goal, state)
    state = with_derived(state, [rule], domain)
    conditions = [(atom, state) for atom in sorted(rule.state_condition)]
    conditions += [(atom, unachieved) for atom in sorted(rule.goal_condition)]
    conditions += [(Atom("", (v,)), frozenset(Atom("", (name,)) for name in objects)) for v in free_variables(rule)]
    types = checked_types(rule, domain)
    for binding in join(conditions, dict(given)):
        if (
            all(domain.is_subtype(objects.get(binding[v], ROOT_TYPE), kind) for v, kind in types.items())
            and all(binding.get(a, a) != binding.get(b, b) for a, b in rule.inequalities)
            and substitute_all(rule.absent, binding).isdisjoint(state)
        ):
            yield binding


def join(conditions: Sequence[tuple[Atom, Collection[Atom]]], binding: Binding) -> Iterator[Binding]:
    """Yield every extension of the binding that makes each atom one of its facts."""
    if not conditions:
        yield binding
        return
    (atom, facts), *rest = conditions
    bound = substitute(atom, binding)
    found = (bound,) if bound in facts else facts if any(map(is_variable, bound.terms)) else ()
    for fact in found:
        extended = unify(bound, fact)
        if extended is not None:
            yield from join(rest, binding | extended)


def narrowest_join(conditions: Sequence[tuple[Atom, Collection[Atom]]], binding: Binding) -> Iterator[Binding]:
    """Yield the same as `join`, beginning with the atom that the fewest facts still fit."""
    if not conditions:
        yield binding
        return
    fitting = [
        [found for fact in facts if (found := unify(substitute(atom, binding), fact)) is not None]
        for atom, facts in conditions
    ]
    first = min(range(len(fitting)), key=lambda place: len(fitting[place]))
    for found in fitting[first]:
        yield from narrowest_join([*conditions[:first], *conditions[first + 1 :]], binding | found)


def unify(atom: Atom, fact: Atom) -> Binding | None:
    """Return the binding of the atom's variables that makes it the fact, if there is one."""
    if atom.predicate != fact.predicate or len(atom.terms) != len(fact.terms):
        return None
    binding: Binding = {}
    for term, value in zip(atom.terms, fact.terms, strict=True):
        if binding.setdefault(term, value) != value if is_variable(term) else term != value:
            return None
    return binding


def matches_in_order(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str]
) -> Iterator[Match]:
    """Yield every applicable instance, the one that fires first, then those that would without the ones before."""
    for rule in sorted(rules, key=lambda rule: rule.priority):  # stable: ties keep the given order
        path, lengths, outputs = path_of(rule), paths_for(rule, state), output_variables(rule)
        found = [
            (lengths[substitute(path, binding)] if path else 0, [binding[v] for v in outputs], sorted(binding.items()))
            for binding in bindings(rule, domain, state, goal, objects)
        ]
        for _, _, items in sorted(found):
            yield Match(rule, dict(items))


def output_variables(rule: Rule) -> list[str]:
    """Return the variables that decide ties: the action's, then the goal condition's, in the order they are written."""
    terms = [*rule.action.arguments, *(term for atom in sorted(rule.goal_condition) for term in atom.terms)]
    return list(dict.fromkeys(term for term in terms if is_variable(term)))


# Which goals wait for which


def direct_waits(
    orders: Iterable[GoalOrder], domain: Domain, goals: Facts, facts: Facts, objects: Mapping[str, str]
) -> dict[Atom, set[Atom]]:
    """Return for each goal that waits for others which ones these are; `facts` are those that never change."""
    waits: dict[Atom, set[Atom]] = {}
    for order in orders:
        both = replace(order.as_rule(), goal_condition=frozenset({order.later, order.earlier}))
        types = checked_types(both, domain)
        of_later = [(atom, facts) for atom in sorted(order.condition) if {*atom.terms} <= {*order.later.terms}]
        of_others = [(atom, facts) for atom in sorted(order.condition) if not {*atom.terms} <= {*order.later.terms}]
        by_terms = _filed(order.earlier, order.later, goals)
        for later in goals:
            binding = unify(order.later, later)
            if binding is None:
                continue
            shared = tuple(binding[term] for term in order.earlier.terms if term in binding)
            earlier = (order.earlier, by_terms.get(shared, frozenset()))
            for found in join([*of_later, earlier, *of_others], binding):
                if all(domain.is_subtype(objects.get(found[v], ROOT_TYPE), kind) for v, kind in types.items()):
                    waits.setdefault(later, set()).add(substitute(order.earlier, found))
    return waits


def _filed(atom: Atom, other: Atom, goals: Facts) -> dict[tuple[str, ...], Facts]:
    """Return the goals that an atom may be, by the objects that its terms share with the other atom."""
    filed: dict[tuple[str, ...], set[Atom]] = {}
    places = [place for place, term in enumerate(atom.terms) if term in other.terms and is_variable(term)]
    for goal in goals:
        if goal.predicate == atom.predicate:
            filed.setdefault(tuple(goal.terms[place] for place in places), set()).add(goal)
    return {terms: frozenset(found) for terms, found in filed.items()}


def goals_in_turn(waits: Mapping[Atom, set[Atom]], goal: Facts, state: Facts) -> Facts:
    """Return the unachieved goals that wait for no unachieved one, directly or through others."""
    return frozenset(each for each in goal - state if predecessors(waits, each) <= state)


def predecessors(waits: Mapping[Atom, set[Atom]], goal: Atom) -> set[Atom]:
    """Return the goals that a goal waits for, directly or through others."""
    found = set(waits.get(goal, ()))
    queue = list(found)
    for each in queue:
        new = waits.get(each, set()) - found
        found |= new
        queue += new
    return found

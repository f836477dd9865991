"""The states that a domain's actions and nature's choices can lead to, numbered as they are met.

New objects never end in some domains, yet only a few of them matter at a time. An object that nature made is dropped
from a state once it can no longer matter: no action that has it as an argument can ever become applicable, nature
cannot choose it again, and no rule can ever bind it; each of these is tested with deletes ignored, which errs on the
safe side. The made objects that remain are renamed in one canonical way. So states that differ only in what has been
put away for good, or in names that nature gave, are one state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, groupby, permutations, product
from typing import NamedTuple

from bilevel.rules.matching import unify
from bilevel.rules.rule import Rule
from bilevel.symbolic.domain import EQUALITY, NO_FACTS, ROOT_TYPE, Action, Domain, Facts, Outcome, Parameter, Schema
from bilevel.symbolic.semantics import (
    GroundAction,
    applicable,
    bind_outcome,
    ground,
    natures_choices,
    new_object,
    progress,
    substitute,
    substitute_all,
)

Made = tuple[tuple[str, str], ...]

MOST_RENAMED = 5  # made objects whose every renaming is tried; with more, some equal states stay apart


class Situation(NamedTuple):
    """A state and the objects, with their types, that nature has made and that still matter."""

    facts: Facts
    made: Made = ()


class Result(NamedTuple):
    """What nature made of an action: the outcome with its choices filled in, and the number of the state after it."""

    outcome: Outcome
    node: int


class StateSpace:
    """Situations with their numbers, and the results of actions in them, worked out when first asked for."""

    def __init__(self, domain: Domain, objects: Mapping[str, str], rules: Sequence[Rule]) -> None:
        self.domain = domain
        self.objects = dict(objects)
        self.situations: list[Situation] = []
        self._rules = rules
        schemas = domain.schemas.values()
        self._numbers: dict[Situation, int] = {}
        self.results = cache(self._results)
        self._moves = cache(self._find_moves)
        self._ground_actions = cache(lambda made: [*groundings(schemas, domain, {**self.objects, **dict(made)})])
        self._simplified = cache(self._simplify)

    def __len__(self) -> int:
        return len(self.situations)

    def number(self, situation: Situation) -> int:
        """Return the number of a situation, a new one where it is new."""
        simple = self._simplified(situation)
        if simple not in self._numbers:
            self._numbers[simple] = len(self.situations)
            self.situations.append(simple)
        return self._numbers[simple]

    def knows(self, facts: Facts) -> bool:
        """Return whether a state with these facts, and no object made by nature, has a number."""
        return Situation(facts) in self._numbers

    def facts(self, node: int) -> Facts:
        """Return the facts of the situation with this number."""
        return self.situations[node].facts

    def objects_in(self, node: int) -> dict[str, str]:
        """Return all objects of the situation with this number, those that nature has made included."""
        return {**self.objects, **dict(self.situations[node].made)}

    def _results(self, node: int, action: Action) -> tuple[Result, ...] | None:
        """Return every state that the action may lead to, or `None` where it is not applicable."""
        facts, made = self.situations[node]
        objects = self.objects_in(node)
        schema = self.domain.schemas[action.name]
        for name, parameter in zip(action.arguments, schema.parameters, strict=True):
            if not self.domain.is_subtype(objects.get(name, ROOT_TYPE), parameter.type):
                return None
        grounded = ground(schema, action.arguments)
        if grounded is None or not applicable(facts, grounded):
            return None
        results = []
        for outcome in grounded.outcomes:
            for choice in natures_choices(outcome, self.domain, objects):
                kinds = {p.name: p.type for p in outcome.chosen}
                new = tuple((name, kinds[v]) for v, name in choice.items() if name not in objects)
                bound = bind_outcome(outcome, choice)
                results.append(Result(bound, self.number(Situation(progress(facts, bound), made + new))))
        return tuple(results)

    def actions(self, node: int) -> Iterator[Action]:
        """Yield the applicable actions, in the order of their schemas and objects."""
        facts, made = self.situations[node]
        return (action.action for action in self._ground_actions(made) if applicable(facts, action))

    def explore(self, max_states: int) -> bool:
        """Number every state that any actions lead to from those known; return whether it was done within the bound."""
        node = 0
        while node < len(self.situations) <= max_states:
            for action in self.actions(node):
                self.results(node, action)
            node += 1
        return len(self.situations) <= max_states

    def attainable(self, wanted: Facts) -> frozenset[int]:
        """Return the states from which some policy surely reaches one with all of `wanted`, nature being fair.

        That is the largest set in which each state has a path to such a state by actions that cannot leave the set.
        All states must have been explored.
        """
        inside = frozenset(range(len(self)))
        while (shrunk := self._reaching(wanted, inside)) != inside:
            inside = shrunk
        return inside

    def _reaching(self, wanted: Facts, inside: frozenset[int]) -> frozenset[int]:
        before: dict[int, list[int]] = {}
        for node in sorted(inside):
            for nodes in self._moves(node):
                if nodes <= inside:
                    for after in nodes:
                        before.setdefault(after, []).append(node)
        reached = {node for node in inside if wanted <= self.facts(node)}
        queue = list(reached)
        for after in queue:  # which grows meanwhile
            for node in before.get(after, ()):
                if node not in reached:
                    reached.add(node)
                    queue.append(node)
        return frozenset(reached)

    def _find_moves(self, node: int) -> list[frozenset[int]]:
        """Return for each applicable action the states it may lead to."""
        return [frozenset(r.node for r in self.results(node, action) or ()) for action in self.actions(node)]

    def _simplify(self, situation: Situation) -> Situation:
        """Return the situation without objects that no longer matter, and with canonical names for the others."""
        if not situation.made:
            return situation
        alive = mattering(situation, self.domain, self.objects, self._rules)
        dead = {name for name, _ in situation.made} - alive
        facts = frozenset(atom for atom in situation.facts if dead.isdisjoint(atom.terms))
        return self._renamed(Situation(facts, tuple(made for made in situation.made if made[0] in alive)))

    def _renamed(self, situation: Situation) -> Situation:
        """Return the made objects named by type and number, such that the sorted facts come first among all namings."""
        made = sorted(situation.made, key=lambda named: (named[1], len(named[0]), named[0]))
        fresh: dict[str, str] = {}
        for _, kind in made:
            fresh[new_object(Parameter("?new", kind), {**self.objects, **fresh})] = kind
        groups = [[name for name, _ in group] for _, group in groupby(made, key=lambda named: named[1])]
        orders = product(*map(permutations, groups)) if len(made) <= MOST_RENAMED else [groups]
        namings = [dict(zip(chain(*order), fresh, strict=True)) for order in orders]
        facts = min((substitute_all(situation.facts, naming) for naming in namings), key=sorted)
        return Situation(facts, tuple(fresh.items()))


def groundings(schemas: Iterable[Schema], domain: Domain, objects: Mapping[str, str]) -> Iterator[GroundAction]:
    """Yield every type-correct ground action over the objects."""
    for schema in schemas:
        candidates = [[o for o, kind in objects.items() if domain.is_subtype(kind, p.type)] for p in schema.parameters]
        for arguments in product(*candidates):
            grounded = ground(schema, arguments)
            if grounded is not None:
                yield grounded


def mattering(situation: Situation, domain: Domain, objects: Mapping[str, str], rules: Sequence[Rule]) -> set[str]:
    """Return the made objects that may still matter."""
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    choosable = [p.type for outcome in outcomes for p in outcome.chosen if p.name not in outcome.new]
    known = {**objects, **dict(situation.made)}
    facts, arguments = relaxed_reach(situation.facts, domain, known)
    return {
        name
        for name, kind in situation.made
        if name in arguments
        or any(domain.is_subtype(kind, chosen) for chosen in choosable)
        or any(_may_bind(rule, name, kind, domain, facts) for rule in rules)
    }


def relaxed_reach(facts: Facts, domain: Domain, objects: Mapping[str, str]) -> tuple[Facts, set[str]]:
    """Return the facts that could ever hold and the objects that actions could ever take, were nothing ever deleted.

    One stand-in for every object yet to be made is enough, as differences and absences are not asked for.
    """
    schemas = []
    for schema in domain.schemas.values():
        positive = frozenset(atom for atom in schema.precondition if atom.predicate != EQUALITY)
        schemas.append(replace(schema, precondition=positive, negative_precondition=NO_FACTS))
    # No object's name has a space. Nature makes an object, too, where it has none of the right type to choose.
    stand_ins = {f"{s.name} {p.name}": p.type for s in schemas for outcome in s.outcomes for p in outcome.chosen}
    everything = {**objects, **stand_ins}
    waiting = list(groundings(schemas, domain, everything))
    reached, arguments = set(facts), set[str]()
    while True:
        ready = [action for action in waiting if action.condition.positive <= reached]
        if not ready:
            return frozenset(reached), arguments
        waiting = [action for action in waiting if not action.condition.positive <= reached]
        for action in ready:
            arguments.update(action.action.arguments)
            for outcome in action.outcomes:
                bound = bind_outcome(outcome, {v: f"{action.action.name} {v}" for v in outcome.new})
                for choice in natures_choices(bound, domain, everything):
                    reached |= substitute_all(bound.add, choice)


def _may_bind(rule: Rule, name: str, kind: str, domain: Domain, facts: Facts) -> bool:
    """Return whether some variable of the rule may stand for the object in a state within `facts`; it is in no goal."""
    for variable in rule.variables:
        if not domain.is_subtype(kind, variable.type) or any(variable.name in a.terms for a in rule.goal_condition):
            continue
        known = [atom for atom in rule.state_condition if atom.predicate in domain.predicates]  # no closures
        conditions = [substitute(atom, {variable.name: name}) for atom in known]
        if all(any(unify(atom, fact) is not None for fact in facts) for atom in conditions):
            return True
    return False

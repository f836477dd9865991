"""The states of a problem as a graph: what actions and nature do in them, what a rule policy does, what can be reached.

An object that nature made is dropped from a state once it can no longer matter: by the facts about it no action can
have it as an argument, no rule can bind it, and nature cannot choose it. The made objects that remain are renamed in
one canonical way. So there are finitely many states, although new objects never end.

What a rule needs of a goal is worked out once for each state, whatever the goal is; so a policy can be followed for
thousands of goals.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, groupby, permutations, product
from operator import itemgetter
from typing import NamedTuple

from bilevel.rules.engine import LENGTH, RuleEngine
from bilevel.rules.matching import direct_waits, goals_in_turn
from bilevel.rules.rule import Rule, orders_of
from bilevel.symbolic.axioms import outcome_in
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, BadInput, Domain, Facts, Outcome, Problem, Schema
from bilevel.symbolic.exploration import Choice, PolicyGraph, distances, explore_policy
from bilevel.symbolic.semantics import (
    GroundAction,
    bind_outcome,
    fresh_names,
    ground,
    ground_action,
    natures_choices,
    progress,
    substitute,
    substitute_all,
)

MOST_RENAMED = 5  # made objects whose every renaming is tried; with more, some equal states stay apart


class Situation(NamedTuple):
    """A state and the objects, with their types, that nature has made and that still matter."""

    facts: Facts
    made: tuple[tuple[str, str], ...] = ()


# What nature may make of an action: by the number of the state after it, the outcome with her choices filled in.
Results = Mapping[int, Outcome]


class Instance(NamedTuple):
    """A rule for some objects in a state: it applies where all the facts of `needed` are goals in turn.

    Instances of one rule are tied unless one goes a shorter path than the other: their `length` differs then.
    """

    rule: Rule
    length: str  # of the path, if the rule has one
    action: Action
    needed: Facts
    served: Atom | None  # the goal fact that it works towards


Node = tuple[int, Atom | None]  # a state, and the goal fact that the policy is committed to, if it is to any
PolicyRuns = PolicyGraph[Node, Instance]


class StateGraph:
    """The states of a problem that were met, by their numbers; its initial state has the number 0.

    Results of actions and instances of rules are worked out when first asked for. `rules` are those that can bind
    objects which nature has made, and whose orders of goals hold.
    """

    def __init__(self, domain: Domain, problem: Problem, rules: Sequence[Rule] = ()) -> None:
        self.domain, self.problem, self.objects = domain, problem, problem.all_objects(domain)
        self.goal_facts = problem.goal  # what goals may be made of
        self.looked_at = 0  # states with goals, and instances of rules, as often as they were looked at
        self.situations: list[Situation] = []
        self.numbers: dict[Situation, int] = {}
        self._engines: dict[Rule, RuleEngine] = {}
        self._known: dict[Rule, dict[int, list[Instance]]] = {}
        self._uses = [*_uses(domain, rules)]
        self._simplified = cache(self._simplify)
        self._actions = cache(lambda made: [*groundings(domain.schemas.values(), domain, self.objects | dict(made))])
        self.results = cache(self._results)
        self.moves = cache(self._moves)
        self.distances = cache(self._distances)
        self.attainable = cache(self._attainable)
        orders, static = orders_of(rules), problem.state  # of which orders ask for what no action changes
        self._waits = cache(lambda goal: direct_waits(orders, domain, goal, static, self.objects))
        self._rules: Sequence[Rule] | None = None
        self.number(Situation(problem.state))

    def __len__(self) -> int:
        return len(self.situations)

    def number(self, situation: Situation) -> int:
        """Return the number of a situation, a new one where it is new."""
        simple = self._simplified(situation)
        if simple not in self.numbers:
            self.numbers[simple] = len(self.situations)
            self.situations.append(simple)
        return self.numbers[simple]

    def facts(self, state: int) -> Facts:
        """Return the facts of the state with this number."""
        return self.situations[state].facts

    # What actions do

    def _results(self, state: int, action: Action) -> Results:
        """Return every state that the action may lead to, none where it is not applicable."""
        facts, made = self.situations[state]
        objects, results = self.objects | dict(made), dict[int, Outcome]()
        try:
            grounded = ground_action(self.domain, action, objects)
        except BadInput:
            return {}
        for outcome in grounded.outcomes if grounded.condition.holds(facts) else ():
            for choice in natures_choices(outcome, self.domain, objects):
                new = tuple((choice[v.name], v.type) for v in outcome.chosen if choice[v.name] not in objects)
                bound = outcome_in(facts, bind_outcome(outcome, choice), self.domain, objects | dict(new))
                results.setdefault(self.number(Situation(progress(facts, bound), made + new)), bound)
        return results

    def _moves(self, state: int) -> list[tuple[Action, Results]]:
        """Return the applicable actions, in the order of their schemas and objects, with their results."""
        facts, made = self.situations[state]
        actions = [ground.action for ground in self._actions(made) if ground.condition.holds(facts)]
        return [(action, self.results(state, action)) for action in actions]

    def explore(self, max_states: int) -> bool:
        """Number every state that any actions lead to from those known; return whether it was done within the bound."""
        state = 0
        while state < len(self) <= max_states:
            self.moves(state)
            state += 1
        return len(self) <= max_states

    # What can be reached, where all states were explored

    def _attainable(self, wanted: Facts) -> frozenset[int]:
        """Return the states from which some policy surely reaches one with all of `wanted`, nature being fair."""
        return frozenset(self.sure_distances(wanted, frozenset(range(len(self)))))

    def sure_distances(self, wanted: Facts, inside: frozenset[int]) -> dict[int, int]:
        """Return how far, with luck, states are from one with all of `wanted` by a policy that surely gets there.

        Its states are the largest set inside in which each has a path there by actions that cannot leave the set.
        """
        while (found := self._distances(wanted, inside)).keys() != inside:
            inside = frozenset(found)
        return found

    def _distances(self, wanted: Facts, inside: frozenset[int]) -> dict[int, int]:
        """Return how far, with luck, states are from one with all of `wanted`, by actions that surely stay inside."""
        ways = {
            state: [results for _, results in self.moves(state) if inside.issuperset(results)]
            for state in sorted(inside)
        }
        return distances(ways, [state for state in ways if wanted <= self.facts(state)], every=False)

    # What the rules do

    def in_turn(self, state: int, goal: Facts) -> Facts:
        """Return the unachieved goals that wait for no other, or, where none wait, all goals."""
        waits = self._waits(goal)
        return goals_in_turn(waits, goal, self.facts(state)) if waits else goal

    def _instances(self, rules: Sequence[Rule], state: int) -> list[Instance]:
        """Return the instances of all rules in a state, for whatever goal, in the order in which they fire."""
        if rules is not self._rules:  # what is known of rules that stay is kept
            in_order = sorted(rules, key=lambda rule: rule.priority)  # stable: ties keep the given order
            self._instances_of = [(rule, self._known.setdefault(rule, {})) for rule in in_order]
            self._rules, self._in_order = rules, dict[int, list[Instance]]()
        if state not in self._in_order:
            for rule, known in self._instances_of:
                if state not in known:
                    known[state] = self._find_instances(rule, state)
            self._in_order[state] = [instance for _, known in self._instances_of for instance in known[state]]
        return self._in_order[state]

    def _find_instances(self, rule: Rule, state: int) -> list[Instance]:
        """Return the instances of a rule for every goal, whichever goals wait."""
        (facts, made), found = self.situations[state], list[Instance]()
        if rule not in self._engines:
            every_goal = replace(self.problem, goal=self.goal_facts)
            self._engines[rule] = RuleEngine([replace(rule, orders=())], self.domain, every_goal)
        engine = self._engines[rule]
        engine.follow(facts, self.goal_facts, self.objects | dict(made))
        for match in engine.matches():
            aim = substitute(min(rule.goal_condition), match.binding) if rule.goal_condition else None
            found.append(Instance(rule, match.binding.get(LENGTH, ""), match.action, match.served, aim))
        self.looked_at += 1 + len(found)
        return found

    def follow(
        self, rules: Sequence[Rule], goal: Facts, starts: Iterable[int], *, commit: bool = False, most: int = 0
    ) -> PolicyRuns:
        """Return what the policy of these rules does from the starts on, however ties between names are decided.

        With `commit`, it serves the goal fact that it has begun with until that holds or no rule serves it. With
        `most`, ties are decided by name, and it is followed up to where it stops or in so many states. But names that
        nature gives are arbitrary: no tie between them is decided.
        """

        def choices_in(node: Node) -> list[Choice[Instance, Node]] | None:
            (state, committed), tied = node, list[Instance]()
            if goal <= self.facts(state):
                return None
            goals = self.in_turn(state, goal)
            for aim in (committed, None) if committed else (None,):
                found = self._instances(rules, state)
                ready = (each for each in found if each.needed <= goals and aim in (None, each.served))
                tied = tied or next((list(first) for _, first in groupby(ready, key=itemgetter(0, 1))), [])
            if most and len(self.situations[state].made) < 2:
                tied = tied[:1]
            first = {(each.action, each.served if commit else None): each for each in reversed(tied)}
            return [(each, outcomes(state, *chosen)) for chosen, each in reversed(first.items())]

        def outcomes(state: int, action: Action, aim: Atom | None) -> list[Node]:
            states = self.results(state, action)
            return [(then, None if aim is None or aim in self.facts(then) else aim) for then in states]

        return explore_policy([(state, None) for state in starts], choices_in, most or sys.maxsize, bool(most))

    # Objects that nature makes

    def _simplify(self, situation: Situation) -> Situation:
        """Return the situation without objects that no longer matter, and with canonical names for the others.

        An object matters if an action or a rule may bind it, as far as facts about it say, or nature choose it.
        """
        facts, made = situation
        if not made:
            return situation
        about = {name: _places(name, facts) for name, _ in made}
        alive = [
            (kind, len(name), name)
            for name, kind in made
            if any(self.domain.is_subtype(kind, wanted) and needed <= about[name] for wanted, needed in self._uses)
        ]
        dead = about.keys() - {name for *_, name in alive}
        facts = frozenset(atom for atom in facts if dead.isdisjoint(atom.terms))
        groups = [[name for *_, name in group] for _, group in groupby(sorted(alive), key=itemgetter(0))]
        fresh: dict[str, str] = {}
        for kind, *_ in sorted(alive):
            fresh[next(fresh_names(kind, {**self.objects, **fresh}))] = kind
        orders = product(*map(permutations, groups)) if len(alive) <= MOST_RENAMED else [groups]
        namings = [dict(zip(chain(*order), fresh, strict=True)) for order in orders]
        return Situation(min((substitute_all(facts, names) for names in namings), key=sorted), tuple(fresh.items()))


def _uses(domain: Domain, rules: Sequence[Rule]) -> Iterator[tuple[str, set[tuple[str, int]]]]:
    """Yield for each variable that may bind an object its type, and in which places of facts the object must be.

    What is said by equality or a closure is not looked at, nor a rule's variable that a goal is about.
    """
    uses = [(p, schema.precondition) for schema in domain.schemas.values() for p in schema.parameters]
    outcomes = [outcome for schema in domain.schemas.values() for outcome in schema.outcomes]
    uses += [(v, NO_FACTS) for outcome in outcomes for v in outcome.chosen if v.name not in outcome.new]
    for rule in rules:
        wanted = {term for atom in rule.goal_condition for term in atom.terms}
        uses += [(variable, rule.state_condition) for variable in rule.variables if variable.name not in wanted]
    for variable, atoms in uses:
        yield variable.type, _places(variable.name, (a for a in atoms if a.predicate in domain.predicates))


def _places(term: str, atoms: Iterable[Atom]) -> set[tuple[str, int]]:
    """Return the predicates and places at which a term stands in atoms."""
    return {(atom.predicate, place) for atom in atoms for place, other in enumerate(atom.terms) if other == term}


def groundings(schemas: Iterable[Schema], domain: Domain, objects: Mapping[str, str]) -> Iterator[GroundAction]:
    """Yield every type-correct ground action over the objects."""
    for schema in schemas:
        candidates = [[o for o, kind in objects.items() if domain.is_subtype(kind, p.type)] for p in schema.parameters]
        for arguments in product(*candidates):
            grounded = ground(schema, arguments)
            if grounded is not None:
                yield grounded

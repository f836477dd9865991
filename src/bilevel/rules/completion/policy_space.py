"""Every state of a small problem, what a rule policy does in each of them, and in which it fails.

What a rule needs of a goal is worked out once for each state, whatever the goal is; so the policy can be followed for
thousands of goals. It fails in a state if the whole goal could surely be reached from there and the policy, following
its rules, may never reach it: no rule applies, or it goes round in circles.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from bilevel.rules.closures import closures_in, with_closures
from bilevel.rules.instances import Instances
from bilevel.rules.matching import Binding, asked_types, bind_action, free_variables, output_variables, unify
from bilevel.rules.rule import Rule
from bilevel.rules.traces import TraceStep
from bilevel.rules.verification.state_space import Result, StateSpace
from bilevel.symbolic.domain import ROOT_TYPE, Action, Atom, Facts, is_variable
from bilevel.symbolic.exploration import Choice, PolicyGraph, explore_policy, traps
from bilevel.symbolic.semantics import ground_action, substitute, substitute_all

Node = tuple[int, int]  # a state, and the goal fact that the policy is committed to; both by their numbers
NOTHING = -1  # what a policy is committed to at first, and one without memory always
FAR = sys.maxsize
MOST_LISTED = 1_000_000  # bindings of a rule; where there may be more they are not all listed, but searched


class Instance(NamedTuple):
    """A rule for some objects in some state: it applies for every goal that has all the facts of `needed`."""

    rule: int  # its place in the order in which rules fire
    action: Action
    needed: int  # goal facts as bits
    served: int  # the number of the goal fact that it works towards


class Failing(NamedTuple):
    """A state in which the policy fails, and whether no rule applies there; `lost` if it is too late for any plan."""

    state: int
    stops: bool
    lost: bool = False


Graph = PolicyGraph[Node, Instance]


class PolicySpace:
    """All states of a problem, explored, and a list of rules that may change."""

    def __init__(self, space: StateSpace, goal_facts: Sequence[Atom], goals: Sequence[Facts]) -> None:
        self.space, self.goals = space, goals
        self.attainable = cache(space.attainable)
        self.distances = cache(self._find_distances)
        self._actions = cache(self._find_actions)
        self.goal_facts = tuple(goal_facts)
        self._bits = {fact: 1 << number for number, fact in enumerate(goal_facts)}
        self._held = [self._mask(space.facts(node)) for node in range(len(space))]
        self._facts = [by_predicate(space.facts(node)) for node in range(len(space))]
        self.looked_at = 0  # states with goals, or bindings of rules, as often as they were looked at
        self._instances: list[list[Instance]] = []
        self._of_rule: dict[Rule, list[list[Instance]]] = {}

    def _mask(self, facts: Iterable[Atom]) -> int:
        """Return those of the facts that can be goals, as bits."""
        return sum(self._bits.get(fact, 0) for fact in facts)

    def set_rules(self, rules: Sequence[Rule]) -> None:
        """Follow these rules from now on; what is known of rules that stay is kept."""
        in_order = sorted(rules, key=lambda rule: rule.priority)
        known = [self._instances_of(rule) for rule in in_order]
        self._instances = [
            [instance._replace(rule=place) for place, found in enumerate(known) for instance in found[node]]
            for node in range(len(self.space))
        ]

    def _instances_of(self, rule: Rule) -> list[list[Instance]]:
        if rule not in self._of_rule:
            self._of_rule[rule] = [self._find_instances(rule, node) for node in range(len(self.space))]
            self.looked_at += len(self.space)
        return self._of_rule[rule]

    def _find_instances(self, rule: Rule, node: int) -> list[Instance]:
        """Return the rule's instances in the order in which ties are decided, one for each action and goal."""
        domain, objects, state = self.space.domain, self.space.objects_in(node), self.space.facts(node)
        present = with_closures(state, closures_in([rule], domain))
        facts, wanted = (
            self._facts[node] if present is state else by_predicate(present),
            by_predicate(fact for fact in self.goal_facts if fact not in state),
        )
        conditions = [(atom, facts.get(atom.predicate, [])) for atom in rule.state_condition]
        conditions += [(atom, wanted.get(atom.predicate, [])) for atom in rule.goal_condition]
        asked, unbound = asked_types(rule, domain), free_variables(rule)
        free = {v: [o for o, kind in objects.items() if domain.is_subtype(kind, asked[v])] for v in unbound}
        outputs = output_variables(rule)
        found: dict[tuple[str, ...], Instance] = {}
        bindings = all_bindings(conditions, free, {})
        if len(objects) ** len(rule.variables) > MOST_LISTED:
            searched = Instances([rule], domain).in_order(state, frozenset(self.goal_facts), objects)
            bindings = (match.binding for match in searched)
        for binding in bindings:
            self.looked_at += 1
            if (
                all(domain.is_subtype(objects.get(binding[v], ROOT_TYPE), kind) for v, kind in asked.items())
                and all(binding.get(a, a) != binding.get(b, b) for a, b in rule.inequalities)
                and substitute_all(rule.absent, binding).isdisjoint(present)
            ):
                needed = substitute_all(rule.goal_condition, binding)
                goal = substitute(min(rule.goal_condition), binding) if needed else None
                served = self.goal_facts.index(goal) if goal else NOTHING
                instance = Instance(0, bind_action(rule.action, binding), self._mask(needed), served)
                found.setdefault(tuple(binding[v] for v in outputs), instance)
        return [found[key] for key in sorted(found)]

    # What the policy does

    def follow(self, goal: Facts, commit: bool) -> Graph:
        """Return what the policy does from every state on, however ties between names are decided.

        With `commit`, it serves the goal fact that it has begun with until that holds or no rule serves it.
        """
        wanted = self._mask(goal)

        def choices_in(node: Node) -> list[Choice[Node, Instance]] | None:
            state, committed = node
            if wanted & self._held[state] == wanted:
                return None
            ready = [i for i in self._instances[state] if i.needed & wanted == i.needed]
            if committed != NOTHING:
                ready = [i for i in ready if i.served == committed] or ready
            tied = [i for i in ready if i.rule == ready[0].rule]
            first = {(i.action, i.served if commit else NOTHING): i for i in reversed(tied)}
            return [Choice(i, self._outcomes(state, action, aim)) for (action, aim), i in reversed(first.items())]

        return explore_policy(((state, NOTHING) for state in range(len(self.space))), choices_in, FAR)

    def _outcomes(self, state: int, action: Action, aim: int) -> tuple[Node, ...]:
        nodes = dict.fromkeys(result.node for result in self.space.results(state, action) or ())
        return tuple((node, NOTHING if aim == NOTHING or self._held[node] >> aim & 1 else aim) for node in nodes)

    def failing(self, goal: Facts, commit: bool) -> list[Failing]:
        """Return the states in which the policy fails: first those in which it stops, those nearest to the goal first.

        Where there are none from which a plan could help, a state in which it is too late.
        """
        graph = self.follow(goal, commit)
        self.looked_at += len(graph.choices)
        trapped = traps(graph, graph.goals)
        if not trapped:
            return []
        able, distance = self.attainable(goal), self.distances(goal, goal)
        stops = {node[0] for node in trapped if graph.stops(node)}
        failing = {state for state, _ in trapped} & able
        stuck = sorted(failing, key=lambda state: (state not in stops, distance[state], state))
        lost = sorted(node[0] for node in trapped & _reachable(graph, able)) if not stuck else []
        return [Failing(state, state in stops) for state in stuck] or [Failing(s, s in stops, True) for s in lost[:1]]

    def steps(self, goal: Facts, commit: bool) -> int:
        """Return how many steps the policy takes from all states together, with luck and ties decided by name."""
        graph = self.follow(goal, commit)
        before: dict[Node, list[Node]] = {}
        for node, choices in graph.choices.items():
            for after in choices[0].outcomes if choices else ():
                before.setdefault(after, []).append(node)
        found = _distances(before, sorted(graph.goals))
        return sum(steps for (_, committed), steps in found.items() if committed == NOTHING)

    # What could be done

    def plan(self, state: int, goal: Facts) -> list[TraceStep]:
        """Return a way to one more goal fact, on which the whole goal stays attainable.

        The fact is one that is nearest. Of ways of the same length it is one that undoes the fewest goal facts and
        comes closest to the whole goal.
        """
        inside, remaining = self.attainable(goal), self.distances(goal, goal)
        missing = sorted(goal - self.space.facts(state))
        fact = min(missing, key=lambda fact: self.distances(frozenset({fact}), goal).get(state, FAR))
        distance = self.distances(frozenset({fact}), goal)
        steps = []
        while distance[state]:
            facts = self.space.facts(state)
            ways = [
                (action, result)
                for action, results in self._moves(state, inside)
                for result in results
                if distance.get(result.node, FAR) < distance[state]
            ]
            action, result = min(
                ways, key=lambda way: (len(goal & facts - self.space.facts(way[1].node)), remaining[way[1].node])
            )
            steps.append(TraceStep(facts, ground_action(self.space.domain, action), result.outcome, frozenset({fact})))
            state = result.node
        return steps

    def _find_distances(self, wanted: Facts, goal: Facts) -> Mapping[int, int]:
        """Return how far, with luck, each state is from one with all of `wanted`, the goal staying attainable."""
        inside = self.attainable(goal)
        before: dict[int, list[int]] = {}
        for node in sorted(inside):
            for _, results in self._moves(node, inside):
                for result in results:
                    before.setdefault(result.node, []).append(node)
        return _distances(before, [node for node in sorted(inside) if wanted <= self.space.facts(node)])

    def successors(self, state: int) -> Iterator[int]:
        """Yield the states that some action may lead to."""
        for action in self.space.actions(state):
            yield from (result.node for result in self.space.results(state, action) or ())

    def _moves(self, state: int, inside: frozenset[int]) -> Iterator[tuple[Action, tuple[Result, ...]]]:
        """Yield the actions that surely stay inside, with what they may lead to."""
        for action, results in self._actions(state):
            if all(result.node in inside for result in results):
                yield action, results

    def _find_actions(self, state: int) -> list[tuple[Action, tuple[Result, ...]]]:
        return [(action, self.space.results(state, action) or ()) for action in self.space.actions(state)]


Place = TypeVar("Place", int, Node)


def _distances(before: Mapping[Place, Sequence[Place]], targets: Sequence[Place]) -> dict[Place, int]:
    """Return for each place from which a target can be reached in how many steps; `before` says what leads to each."""
    found = dict.fromkeys(targets, 0)
    queue = deque(targets)
    while queue:
        after = queue.popleft()
        for place in before.get(after, ()):
            if place not in found:
                found[place] = found[after] + 1
                queue.append(place)
    return found


def _reachable(graph: Graph, states: frozenset[int]) -> frozenset[Node]:
    """Return the nodes that the policy may get to from these states."""
    seen = {node for node in graph.choices if node[0] in states}
    queue = deque(sorted(seen))
    while queue:
        for choice in graph.choices[queue.popleft()]:
            for after in choice.outcomes:
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
    return frozenset(seen)


def by_predicate(facts: Iterable[Atom]) -> dict[str, list[Atom]]:
    """Return the facts of each predicate, in order."""
    found: dict[str, list[Atom]] = {}
    for fact in sorted(facts):
        found.setdefault(fact.predicate, []).append(fact)
    return found


def all_bindings(
    conditions: Sequence[tuple[Atom, Sequence[Atom]]], free: Mapping[str, Sequence[str]], binding: Binding
) -> Iterator[Binding]:
    """Yield every binding that makes each condition one of its facts and each free variable one of its objects.

    The condition that the fewest facts still fit is matched first.
    """
    if conditions:
        fitting = [(index, *_fitting(atom, facts, binding)) for index, (atom, facts) in enumerate(conditions)]
        index, bound, found = min(fitting, key=lambda option: len(option[2]))
        rest = [*conditions[:index], *conditions[index + 1 :]]
        for extension in (unify(bound, fact) for fact in found):
            if extension is not None:
                yield from all_bindings(rest, free, binding | extension)
    elif free:
        variable, *others = free
        for name in free[variable]:
            yield from all_bindings((), {v: free[v] for v in others}, binding | {variable: name})
    else:
        yield binding


def _fitting(atom: Atom, facts: Sequence[Atom], binding: Binding) -> tuple[Atom, Sequence[Atom]]:
    """Return the atom with what is bound filled in, and the facts that agree with it there."""
    bound = substitute(atom, binding)
    for place, term in enumerate(bound.terms):
        if not is_variable(term):
            facts = [fact for fact in facts if fact.terms[place] == term]
    return bound, facts

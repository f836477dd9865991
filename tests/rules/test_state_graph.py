"""What a state graph says is what a slow walk by the definition finds, with and without commitment."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from bilevel.rules.complete import failing, small_graphs, way_to_a_goal
from bilevel.rules.matching import Match, bindings, output_variables
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.small_problems import small_problems
from bilevel.rules.state_graph import StateGraph
from bilevel.symbolic.domain import Atom, Domain, Facts, Problem
from bilevel.symbolic.pddl import parse_problem
from bilevel.symbolic.semantics import applicable, ground_action, progress
from bilevel.tabletop.problems import shipped_domain, training_problems
from random_rules import OBJECTS, random_atoms, random_domain, random_rule

Place = tuple[Facts, Atom | None]  # a state, and the goal fact that is being served


def choices(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str], served: Atom | None
) -> list[Match]:
    """Every instance of the first rule that applies, of those that serve the fact if there are any."""
    for wanted in (served, None) if served else (None,):
        for rule in sorted(rules, key=lambda rule: rule.priority):
            found = [Match(rule, binding) for binding in bindings(rule, domain, state, goal, objects)]
            found = [match for match in found if wanted is None or wanted in match.served]
            if found:
                return sorted(found, key=lambda match: [match.binding[v] for v in output_variables(rule)])
    return []


def walks_always_end(
    rules: Sequence[Rule], domain: Domain, start: Facts, goal: Facts, objects: Mapping[str, str], commit: bool
) -> bool:
    """Whether the policy gets from the start into no places that it may stay in for ever, as ties may be decided."""
    after: dict[Place, list[set[Place]]] = {}  # for each choice what it may lead to
    queue: list[Place] = [(start, None)]
    for place in queue:
        state, served = place
        if place in after or goal <= state:
            continue
        after[place] = []
        for match in choices(rules, domain, state, goal, objects, served):
            action = ground_action(domain, match.action)
            if not applicable(state, action):
                return False
            aim = min(match.served) if commit and match.served else None
            afters = [progress(state, outcome) for outcome in action.outcomes]
            after[place].append({(then, None if aim in then else aim) for then in afters})
        queue += [place for choice in after[place] for place in sorted(choice, key=repr)]
    trap = set(after)
    while out := {place for place in trap if after[place] and not any(choice <= trap for choice in after[place])}:
        trap -= out
    return not trap


def assert_agrees(graph: StateGraph, rules: Sequence[Rule], goal: Facts) -> int:
    """Compare for one goal, every state, with and without commitment; return in how many the policy may fail."""
    domain, objects, failures = graph.domain, graph.objects, 0
    for commit in (False, True):
        for (state, committed), chosen in graph.follow(goal, range(len(graph)), commit=commit).choices.items():
            facts = graph.facts(state)
            expected = choices(rules, domain, facts, goal, objects, committed) if not goal <= facts else []
            assert {choice.label.action for choice in chosen} == {match.action for match in expected}
        fails = [
            state
            for state in graph.attainable(goal)
            if not walks_always_end(rules, domain, graph.facts(state), goal, objects, commit)
        ]
        found = failing(graph, goal, commit)
        assert found or not fails
        if not commit:  # with commitment it may also fail in a state that it enters with another goal in mind
            assert bool(found) == bool(fails)
            assert {state for state, _, lost in found if not lost} <= set(fails)
        failures += len(fails)
    return failures


SWAP = """
variables: ?b - block, ?b2 - block, ?p - place, ?s - surface, ?t - table
1: holding(?b) & free(?p) & goal at(?b, ?p) -> place(?b, ?p)
2: at(?b, ?s) & free(?p) & gripper-free() & goal at(?b, ?p) -> pick(?b, ?s)
3: holding(?b) & at(?b2, ?s) & free(?p) & goal at(?b2, ?p) -> put-aside(?b, ?t)
4: at(?b, ?p) & at(?b2, ?s) & gripper-free() & goal at(?b2, ?p) -> pick(?b, ?p)
"""
TOWERS = """
variables: ?x - block, ?y - block, ?z - block, ?t - block
1: holding(?x) & clear(?y) & goal on(?x, ?y) -> stack(?x, ?y)
2: clear(?x) & on-table(?x) & clear(?y) & hand-empty() & ?x != ?y & goal on(?x, ?y) -> pick-up(?x)
3: clear(?t) & on(?t, ?z) & on+(?z, ?x) & hand-empty() & goal on(?x, ?y) -> unstack(?t, ?z)
3: clear(?t) & on(?t, ?x) & hand-empty() & goal on(?x, ?y) -> unstack(?t, ?x)
4: clear(?x) & on(?x, ?z) & hand-empty() & goal on(?x, ?y) -> unstack(?x, ?z)
5: holding(?t) & goal on(?x, ?y) -> put-down(?t)
"""
CASES = {"swap": SWAP, "blocksworld": TOWERS}
SWAP_PROBLEM = """(define (problem swap-1) (:domain swap) (:objects b1 b2 - block p1 p2 - place table - table)
  (:init (at b1 table) (at b2 table) (free p1) (free p2) (free table) (gripper-free)) (:goal (at b1 p1)))"""


def seeds(name: str, domain: Domain) -> list[Problem]:
    return [parse_problem(SWAP_PROBLEM, domain)] if name == "swap" else training_problems(name)[:2]


@pytest.mark.parametrize("name", CASES)
def test_policies_fail_where_running_them_fails(name: str) -> None:
    domain, failures = shipped_domain(name), 0
    rules = parse_rules(CASES[name], name, domain)
    given = seeds(name, domain)
    for graph, goals in small_graphs(small_problems(given, domain, None), given, domain, rules, 1000).spaces:
        failures += sum(assert_agrees(graph, rules, goal) for goal in goals)
    assert failures > 10


@pytest.mark.parametrize("block", range(3))
def test_policies_fail_where_running_them_fails_in_random_domains(block: int) -> None:
    compared = failures = 0
    for seed in range(block * 30, block * 30 + 30):
        rng = random.Random(seed)
        domain = random_domain(rng)
        rules = [random_rule(rng, domain) for _ in range(4)]
        start = random_atoms(rng, domain, OBJECTS, 12)
        graph = StateGraph(domain, Problem("p", domain.name, OBJECTS, start, frozenset()), rules)
        if graph.explore(60) and len(graph) > 2:
            facts = sorted(graph.facts(rng.randrange(len(graph))))
            graph.goal_facts = frozenset(rng.sample(facts, min(3, len(facts))))
            failures += assert_agrees(graph, rules, graph.goal_facts)
            compared += 1
    assert compared > 5
    assert failures > 5


def test_a_plan_leads_to_one_more_goal_fact_and_keeps_the_goal_in_reach() -> None:
    domain = shipped_domain("blocksworld")
    given = training_problems("blocksworld")[:2]
    for graph, goals in small_graphs(small_problems(given, domain, None), given, domain, [], 1000).spaces:
        for goal in goals:
            for state in sorted(graph.attainable(goal)):
                facts = graph.facts(state)
                if not goal <= facts:
                    steps = way_to_a_goal(graph, state, goal)
                    (fact,) = steps[-1].goal
                    for step in steps:
                        assert step.state == facts
                        assert applicable(facts, step.action)
                        assert fact not in facts
                        facts = progress(facts, step.outcome)
                    assert fact in goal & facts

"""What a state graph says is what a slow walk by the definition finds, with and without commitment."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from bilevel.rules.complete import failing, way_to_a_goal
from bilevel.rules.derived import path_of, paths_for
from bilevel.rules.matching import Match, matches_in_order
from bilevel.rules.rule import GoalOrder, Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.small_problems import grown_problems, small_problems
from bilevel.rules.state_graph import StateGraph
from bilevel.rules.verify import Answer, verify
from bilevel.symbolic.domain import Atom, Domain, Facts, Parameter, Problem
from bilevel.symbolic.pddl import parse_problem
from bilevel.symbolic.semantics import ground_action, progress, substitute
from bilevel.tabletop.problems import shipped_domain, training_problems
from engine_cases import random_orders, with_random_path
from random_rules import OBJECTS, random_atoms, random_domain, random_rule

Place = tuple[Facts, Atom | None]  # a state, and the goal fact that is being served


def tied(
    rules: Sequence[Rule], domain: Domain, state: Facts, goal: Facts, objects: Mapping[str, str], served: Atom | None
) -> list[Match]:
    """What fires, of those that serve the fact if there are any, and what only its names put behind."""
    matches = list(matches_in_order(rules, domain, state, goal, objects))
    matches = [match for match in matches if served in match.served] or matches

    def length(match: Match) -> int:
        path = path_of(match.rule)
        return paths_for(match.rule, state)[substitute(path, match.binding)] if path else 0

    return [m for m in matches if m.rule is matches[0].rule and length(m) == length(matches[0])]


def walks_always_end(
    rules: Sequence[Rule], problem: Problem, domain: Domain, commit: bool = False, every_tie: bool = True
) -> bool:
    """Whether the policy gets into no places that it may stay in for ever, however ties are decided, or by name."""
    after: dict[Place, list[set[Place]]] = {}  # for each choice what it may lead to
    queue: list[Place] = [(problem.state, None)]
    for place in queue:
        state, served = place
        if place in after or problem.goal <= state:
            continue
        after[place] = []
        matches = tied(rules, domain, state, problem.goal, problem.all_objects(domain), served)
        for match in matches if every_tie else matches[:1]:
            action = ground_action(domain, match.action)
            if not action.condition.holds(state):
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
        for (state, committed), chosen in graph.follow(rules, goal, range(len(graph)), commit=commit).choices.items():
            facts = graph.facts(state)
            expected = tied(rules, domain, facts, goal, objects, committed) if not goal <= facts else []
            assert {instance.action for instance, _ in chosen} == {match.action for match in expected}
        fails = [
            state
            for state in graph.attainable(goal)
            if not walks_always_end(rules, Problem("p", "", objects, graph.facts(state), goal), domain, commit)
        ]
        found = failing(rules, graph, goal, commit)
        assert found or not fails
        if not commit:  # with commitment it may also fail in a state that it enters with another goal in mind
            assert bool(found) == bool(fails)
            assert set(found) & graph.attainable(goal) <= set(fails)
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


def graphs(given: Sequence[Problem], domain: Domain, rules: Sequence[Rule]) -> list[tuple[StateGraph, Sequence[Facts]]]:
    small = small_problems(given, grown_problems(given, domain, None), domain, rules, 1000)
    return [(graph, goals) for _, graph, goals in small if goals]


@pytest.mark.parametrize("name", CASES)
def test_policies_fail_where_running_them_fails(name: str) -> None:
    domain, failures = shipped_domain(name), 0
    rules = parse_rules(CASES[name], name, domain)
    given = seeds(name, domain)
    for graph, goals in graphs(given, domain, rules):
        failures += sum(assert_agrees(graph, rules, goal) for goal in goals)
    assert failures > 10


def random_rules(rng: random.Random, domain: Domain) -> list[Rule]:
    """Rules with paths and orders of goals, perhaps."""
    orders = random_orders(rng, domain)
    rules = [with_random_path(rng, domain, random_rule(rng, domain)) for _ in range(4)]
    return [replace(rule, orders=orders) for rule in rules]


def test_policies_fail_where_running_them_fails_in_random_domains() -> None:
    compared = failures = 0
    for seed in range(120):
        rng = random.Random(seed)
        domain = random_domain(rng)
        rules = random_rules(rng, domain)
        start = random_atoms(rng, domain, OBJECTS, 12)
        graph = StateGraph(domain, Problem("p", domain.name, OBJECTS, start, frozenset()), rules)
        if graph.explore(60) and len(graph) > 2:
            facts = sorted(graph.facts(rng.randrange(len(graph))))
            graph.goal_facts = frozenset(rng.sample(facts, min(3, len(facts))))
            failures += assert_agrees(graph, rules, graph.goal_facts)
            compared += 1
    assert compared > 20
    assert failures > 20


def test_verdicts_are_those_of_the_definition() -> None:
    differing = 0
    for seed in range(600):
        rng = random.Random(seed)
        domain = random_domain(rng)
        start = random_atoms(rng, domain, OBJECTS, 12)
        graph = StateGraph(domain, Problem("p", domain.name, OBJECTS, start, frozenset()))
        graph.explore(20)
        goal = sorted(graph.facts(rng.randrange(len(graph))) - start)[:6]
        orders = (lifted(*rng.sample(goal, 2)),) if len(goal) > 1 else ()
        rules = [replace(with_random_path(rng, domain, random_rule(rng, domain)), orders=orders) for _ in range(4)]
        problem = Problem("p", domain.name, OBJECTS, start, frozenset(goal))
        answer = verify(rules, domain, problem, max_states=30).answer
        if answer is not Answer.BOUND_HIT:
            assert (answer is Answer.SOLVED) == walks_always_end(rules, problem, domain, every_tie=False), seed
            without_orders = [replace(rule, orders=()) for rule in rules]
            differing += answer is not verify(without_orders, domain, problem, max_states=30).answer
    assert differing > 2


def lifted(later: Atom, earlier: Atom) -> GoalOrder:
    """The order of two goals with a variable for each object."""
    names = {term: f"?{term}" for term in (*later.terms, *earlier.terms)}
    variables = tuple(Parameter(name, "object") for name in names.values())
    return GoalOrder(variables, substitute(later, names), substitute(earlier, names))


def test_a_plan_leads_to_one_more_goal_fact_and_keeps_the_goal_in_reach() -> None:
    domain = shipped_domain("blocksworld")
    given = training_problems("blocksworld")[:2]
    for graph, goals in graphs(given, domain, []):
        for goal in goals:
            for state in sorted(graph.attainable(goal)):
                facts = graph.facts(state)
                if not goal <= facts:
                    steps = way_to_a_goal(graph, state, goal)
                    (fact,) = steps[-1].goal
                    for step in steps:
                        assert step.state == facts
                        assert step.action.condition.holds(facts)
                        assert fact not in facts
                        facts = progress(facts, step.outcome)
                    assert fact in goal & facts

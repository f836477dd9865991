"""Families against a naive check in a Blocks without a way back: no symmetries, no graph, every run by itself."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product

import pytest

from bilevel.rules.families import Family, at_rest, goals_of, grow, sizes
from bilevel.rules.matching import best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.state_graph import StateGraph, groundings
from bilevel.rules.verify import faults, verify_family
from bilevel.symbolic.domain import Atom, Facts, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.semantics import applicable, ground_action, progress, substitute_all

BLOCKS = parse_domain(
    """(define (domain blocks) (:requirements :strips :typing) (:types block place - item)
    (:predicates (at ?x - block ?l - place) (holding ?x - block) (clear ?i - item) (gripper-free))
    (:action pick :parameters (?x - block) :precondition (and (clear ?x) (gripper-free))
      :effect (and (holding ?x) (not (clear ?x)) (not (gripper-free))))
    (:action place :parameters (?x - block ?l - place) :precondition (and (holding ?x) (clear ?l))
      :effect (and (at ?x ?l) (clear ?x) (gripper-free) (not (holding ?x)) (not (clear ?l)))))"""
)
BLOCKS_SEED = parse_problem(
    """(define (problem seed) (:domain blocks) (:objects b1 - block l1 - place)
    (:init (clear b1) (clear l1) (gripper-free)) (:goal (at b1 l1)))""",
    BLOCKS,
)
PLACE = "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)"
PICK = "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)"


def block_rules(*texts: str) -> tuple[Rule, ...]:
    return parse_rules("\n".join(["variables: ?x - block, ?y - block, ?l - place", *texts]))


CASES = {
    "learned": block_rules(PLACE, PICK),
    "printed": block_rules(PLACE, "2: clear(?x) & gripper-free() & goal at(?x, ?l) -> pick(?x)"),
    "never places": block_rules(PICK),
    "places anywhere": block_rules(PLACE, PICK, "3: holding(?x) & clear(?l) & goal at(?y, ?l) -> place(?x, ?l)"),
    "picks anything": block_rules(PLACE, "2: clear(?x) & gripper-free() & goal at(?y, ?l) -> pick(?x)"),
}


def every_state(problem: Problem) -> list[Facts]:
    actions = list(groundings(BLOCKS.schemas.values(), BLOCKS, problem.objects))
    states = [problem.state]
    for state in states:
        for action in actions:
            after = progress(state, action.outcomes[0])
            if applicable(state, action) and after not in states:
                states.append(after)
    return states


def run_ends(rules: tuple[Rule, ...], problem: Problem, state: Facts) -> set[Facts]:
    """The goal facts achieved where runs end. All do here, as each `place` uses up a place for good."""
    ends, seen, queue = set(), {state}, [state]
    for current in queue:
        matches = [] if problem.goal <= current else best_matches(rules, BLOCKS, current, problem.goal, problem.objects)
        afters = []
        for match in matches:
            action = ground_action(BLOCKS, match.action)
            if applicable(current, action):
                afters.append(progress(current, action.outcomes[0]))
        if len(afters) < max(1, len(matches)):
            ends.add(problem.goal & current)
        queue += [after for after in dict.fromkeys(afters) if after not in seen]
        seen.update(afters)
    return ends


@pytest.mark.parametrize("name", CASES)
def test_faults_are_those_that_running_every_problem_finds(name: str) -> None:
    rules, problem = CASES[name], grow(BLOCKS_SEED, BLOCKS, {"block": 2, "place": 2})
    graph = StateGraph(BLOCKS, problem, rules)
    assert graph.explore(1000)
    graph.goal_facts = graph.facts_of({"at"})
    for state, goal in product(range(len(graph)), list(goals_of(sorted(graph.goal_facts)))):
        task = Problem("p", "blocks", problem.objects, graph.facts(state), goal)
        possible = {goal & state for state in every_state(task)}
        naive = any(end < better for end in run_ends(rules, task, task.state) for better in possible)
        assert any(faults(graph, graph.follow(goal, [state]), goal)) == naive, (task.state, goal)


def every_at(size: Mapping[str, int]) -> list[Atom]:
    return [Atom("at", (f"b{b + 1}", f"l{p + 1}")) for b in range(size["block"]) for p in range(size["place"])]


def test_problems_are_counted_up_to_names() -> None:
    names = ("b1", "b2", "l1", "l2")
    swaps = [dict(zip(names, (*b, *p), strict=True)) for b in permutations(names[:2]) for p in permutations(names[2:])]
    distinct = set()
    for size in sizes({"block": 2, "place": 2}):
        problem = grow(BLOCKS_SEED, BLOCKS, size)
        for state, goal in product(every_state(problem), goals_of(every_at(size))):
            if at_rest(problem.state, state):
                renamed = [(sorted(substitute_all(state, s)), sorted(substitute_all(goal, s))) for s in swaps]
                distinct.add((len(problem.objects), repr(min(renamed))))
    family = Family((BLOCKS_SEED,), {"block": 2, "place": 2})
    assert verify_family(CASES["learned"], BLOCKS, family).problems == len(distinct)

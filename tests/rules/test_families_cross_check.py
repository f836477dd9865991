"""Families against a naive check in a Blocks without a way back: no symmetries, no graph, every run by itself."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest

from bilevel.rules.matching import best_matches
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.small_problems import grow, sizes, small_graph
from bilevel.rules.state_graph import groundings
from bilevel.rules.verify import Answer, shortest_failure, verify_family
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


def every_goal(problem: Problem) -> set[Facts]:
    """Every set of places of blocks that some state has."""
    placed = [sorted(fact for fact in state if fact.predicate == "at") for state in every_state(problem)]
    return {frozenset(goal) for facts in placed for size in (1, 2) for goal in combinations(facts, size)}


def fails(rules: tuple[Rule, ...], problem: Problem) -> bool:
    """Whether the goal can be reached and some run ends without it."""
    possible = any(problem.goal <= state for state in every_state(problem))
    return possible and any(end < problem.goal for end in run_ends(rules, problem, problem.state))


@pytest.mark.parametrize("name", CASES)
def test_failures_are_those_that_running_every_problem_finds(name: str) -> None:
    rules, problem = CASES[name], grow(BLOCKS_SEED, BLOCKS, {"block": 2, "place": 2})
    small = small_graph(problem, {"at"}, BLOCKS, rules, 1000)
    assert small is not None
    graph = small.graph
    for state, goal in product(range(len(graph)), every_goal(problem)):
        found = state in graph.attainable(goal) and shortest_failure(graph.follow(goal, [state]))
        task = Problem("p", "blocks", problem.objects, graph.facts(state), goal)
        assert bool(found) == fails(rules, task), (task.state, goal)


@pytest.mark.parametrize("name", CASES)
def test_families_are_all_problems_up_to_names(name: str) -> None:
    names, rules = ("b1", "b2", "l1", "l2"), CASES[name]
    swaps = [dict(zip(names, (*b, *p), strict=True)) for b in permutations(names[:2]) for p in permutations(names[2:])]
    distinct, failing = set(), False
    for size in sizes({"block": 2, "place": 2}):
        problem = grow(BLOCKS_SEED, BLOCKS, size)
        for state, goal in product(every_state(problem), every_goal(problem)):
            task = Problem("p", "blocks", problem.objects, state, goal)
            if Atom("gripper-free") in state and any(goal <= after for after in every_state(task)):
                renamed = [(sorted(substitute_all(state, s)), sorted(substitute_all(goal, s))) for s in swaps]
                distinct.add((len(problem.objects), repr(min(renamed))))
                failing |= fails(rules, task)
    verdict = verify_family(rules, BLOCKS, [BLOCKS_SEED], {"block": 2, "place": 2})
    assert (verdict.answer is Answer.REFUTED) == failing
    assert failing or verdict.text.startswith(f"solved always ({len(distinct)} problems up to names")

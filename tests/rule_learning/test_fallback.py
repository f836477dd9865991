"""Planning where rules stop short: from there, or from the start, with a plan that is valid as a whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bilevel.rule_learning.fallback import solve_with_fallback
from bilevel.rules.rule_file import parse_rules, read_rules
from bilevel.rules.solving import Solution, Stop, solve
from bilevel.symbolic.domain import BadInput, Problem
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.plans import validate
from bilevel.tabletop.problems import generate_problem, shipped_domain
from command_line import run

RULES = Path(__file__).parents[1] / "rules" / "golden"
WAYS = """(define (domain ways) (:constants a b c d) (:predicates (at ?x) (way ?x ?y) (seen ?x))
  (:action go :parameters (?x ?y) :precondition (and (at ?x) (way ?x ?y))
    :effect (and (not (at ?x)) (at ?y) (seen ?y))))"""
DOMAIN = parse_domain(WAYS)


def problem(ways: str, goal: str) -> Problem:
    links = " ".join(f"(way {way[0]} {way[1]})" for way in ways.split())
    text = f"(define (problem p) (:domain ways) (:init (at a) {links}) (:goal (and {goal})))"
    return parse_problem(text, DOMAIN)


def followed(rules: str, task: Problem) -> tuple[Solution, range]:
    """The solution of these rules with the fallback, which is valid if it says so."""
    solution, searched = solve_with_fallback(DOMAIN, task, parse_rules(rules), time_limit=10)
    assert solution.is_solved == validate(DOMAIN, task, solution.plan).is_valid
    return solution, searched


def test_what_the_rules_did_stays_where_it_leads_on() -> None:
    task = problem("ab bc cd", "(seen d)")
    solution, searched = followed("1: at(a) & way(a, ?x) & goal seen(?y) -> go(a, ?x)", task)
    assert solution.is_solved
    assert searched == range(1, 3)


def test_a_dead_end_is_planned_from_the_start() -> None:
    task = problem("ab ac", "(seen c)")
    solution, searched = followed("1: at(a) & way(a, b) & goal seen(?y) -> go(a, b)", task)
    assert solution.is_solved
    assert searched == range(1)


def test_circles_are_left_where_the_fewest_goals_were_open() -> None:
    task = problem("ab ba ac", "(seen b) (seen c)")
    rule = "1: at({0}) & way({0}, {1}) & goal seen(?z) -> go({0}, {1})"
    solution, searched = followed("\n".join([rule.format("a", "b"), rule.format("b", "a")]), task)
    assert solution.is_solved
    assert searched == range(1, 3)


def test_without_a_plan_the_solution_is_that_of_the_rules() -> None:
    task = problem("ab cc", "(seen c)")
    rules = "1: at(a) & way(a, b) & goal seen(?y) -> go(a, b)"
    assert followed(rules, task) == (solve(DOMAIN, task, parse_rules(rules)), range(0))
    assert followed(rules, task)[0].stop is Stop.NO_RULE


def test_rules_that_get_there_need_no_fallback() -> None:
    task = generate_problem("blocks", 6, random.Random(0))
    domain = shipped_domain(task.domain_name)
    rules = read_rules(RULES / "blocks.rules", domain)
    assert solve_with_fallback(domain, task, rules) == (solve(domain, task, rules), range(0))


def test_nature_is_refused() -> None:
    task = generate_problem("colour", 3, random.Random(0))
    with pytest.raises(BadInput, match="nondeterministic"):
        solve_with_fallback(shipped_domain(task.domain_name), task, [])


def test_the_command_says_what_was_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain, task, rules, plan = (tmp_path / name for name in ("d.pddl", "p.pddl", "r.rules", "plan"))
    domain.write_text(WAYS)
    task.write_text("(define (problem p) (:domain ways) (:init (at a) (way a b) (way b c)) (:goal (seen c)))")
    rules.write_text("1: at(a) & way(a, ?x) & goal seen(?y) -> go(a, ?x)\n")
    command = ("solve", domain, task, "--rules", rules, "--plan", plan)
    assert run(capsys, *command)[0] == 1
    code, _, said = run(capsys, *command, "--fallback", "search")
    assert code == 0
    assert "2 to 2" in said
    assert run(capsys, "validate", domain, task, plan)[0] == 0

"""Completed rules: what was given stays, what is said of them is so when every problem is run, and they stay the same.

The completed rules are kept beside the golden rules they begin with. After a change that is meant to change them:
`python tests/rules/test_completing.py`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from bilevel.planning.planners import bounded_plan
from bilevel.rules.complete import (
    Completion,
    complete_rules,
    droppable,
    generalisations,
)
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import format_rules, parse_rules
from bilevel.rules.small_problems import grown_problems, small_problems
from bilevel.rules.solving import solve
from bilevel.symbolic.domain import Atom, Problem
from bilevel.symbolic.pddl import parse_problem
from bilevel.tabletop.problems import shipped_domain, training_problems

GOLDEN = Path(__file__).parent / "golden"
SWAP_PROBLEM = """(define (problem swap-1) (:domain swap) (:objects b1 - block p1 - place table - table)
  (:init (at b1 table) (free p1) (free table) (gripper-free)) (:goal (at b1 p1)))"""
SIZES = {
    "swap": {"block": 3, "place": 3},
    "blocks": {"block": 3, "place": 3},
    "colour": {"block": 2, "colour+tray": 2},
    "gacha": {"colour+tray": 2},
    "blocksworld": {"block": 4},
}


def given_rules(name: str) -> tuple[Rule, ...]:
    return parse_rules((GOLDEN / f"{name}.rules").read_text(encoding="utf-8"), name)


def seeds(name: str) -> list[Problem]:
    domain = shipped_domain(name)
    if name == "swap":
        return [parse_problem(SWAP_PROBLEM, domain)]
    return training_problems(name) if name == "blocksworld" else training_problems(name)[:1]


@cache
def completed(name: str) -> Completion:
    domain, given = shipped_domain(name), seeds(name)
    return complete_rules(
        given_rules(name), domain, given, objects=SIZES[name], plan_for=bounded_plan, random_problems=20
    )


def completed_text(name: str) -> str:
    return format_rules(completed(name).rules, completed(name).statement.splitlines())


@pytest.mark.parametrize("name", SIZES)
def test_completed_rules_stay_the_same(name: str) -> None:
    assert completed_text(name) == (GOLDEN / f"{name}-complete.rules").read_text(encoding="utf-8")
    found, given = completed(name), given_rules(name)
    assert found.is_proved
    assert found.rules[: found.given] == given
    assert all(rule.priority > given[-1].priority for rule in found.rules[found.given :])


@pytest.mark.parametrize("name", ["swap", "blocks", "blocksworld"])
def test_every_small_problem_that_can_be_solved_is_solved(name: str) -> None:
    found, domain = completed(name), shipped_domain(name)
    sizes = {"block": 3} if name == "blocksworld" else {"block": 2, "place": 2}
    grown = grown_problems(seeds(name), domain, sizes)
    commitments = {found.commit, found.commit or "and with commitment, too" in found.statement}
    problems = 0
    for _, graph, goals in small_problems(seeds(name), grown, domain, found.rules, 2000):
        assert goals is not None
        for goal in goals:
            for state in graph.attainable(goal):
                problem = Problem("p", name, graph.objects, graph.facts(state), goal)
                for commit in commitments:
                    assert solve(domain, problem, found.rules, commit=commit).is_solved, problem
                problems += 1
    assert problems >= 40


def test_without_any_rules_all_are_found() -> None:
    found = complete_rules((), shipped_domain("swap"), seeds("swap"), objects={"block": 2, "place": 2})
    assert found.is_proved
    assert found.given == 0
    assert {rule.action.name for rule in found.rules} == {"pick", "place", "put-aside"}


def test_a_budget_that_is_used_up_proves_nothing() -> None:
    found = complete_rules(given_rules("blocks"), shipped_domain("blocks"), seeds("blocks"), budget=1)
    assert not found.is_proved
    assert found.statement.startswith("the budget is used up before all problems of up to 2 places were looked at")


BLOCKSWORLD = shipped_domain("blocksworld")
TOWER = (
    "1: clear(?a) & on(?a, ?b) & on(?b, ?c) & clear(?d) & hand-empty() & ?b != ?d & goal on(?c, ?d) -> unstack(?a, ?b)"
)


def rule(text: str) -> Rule:
    declared = "variables: ?a - block, ?b - block, ?c - block, ?d - block"
    return parse_rules(f"{declared}\n{text}", "rule", BLOCKSWORLD)[0]


def general(text: str, atom: Atom) -> list[Rule]:
    return list(generalisations(rule(text), atom, BLOCKSWORLD))


def test_a_rule_may_lose_what_is_neither_needed_nor_connects_anything() -> None:
    assert [str(atom) for atom in droppable(rule(TOWER), BLOCKSWORLD)] == ["clear(?d)", "on(?b, ?c)", "=(?b, ?d)"]
    assert general(TOWER, Atom("clear", ("?d",))) == [rule(TOWER.replace(" & clear(?d)", ""))]
    assert general(TOWER, Atom("on", ("?b", "?c"))) == [rule(TOWER.replace("on(?b, ?c)", "on+(?b, ?c)"))]
    assert not general("1: clear(?a) & holding(?b) & goal on(?b, ?c) -> stack(?b, ?a)", Atom("clear", ("?a",)))


if __name__ == "__main__":
    for case in SIZES:
        (GOLDEN / f"{case}-complete.rules").write_text(completed_text(case), encoding="utf-8")

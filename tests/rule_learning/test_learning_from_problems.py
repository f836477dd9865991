"""Rules learned from problems whose goals depend on each other solve larger ones; orders and paths read as written."""

from __future__ import annotations

import pytest
from ipc_problems import domain_text, problem_text

from bilevel.planning.planner import Deadline
from bilevel.rule_learning.problems import can_learn_from_spaces, learn_from_problems
from bilevel.rule_learning.spaces import Space
from bilevel.rules.matching import direct_waits, goals_in_turn
from bilevel.rules.rule_file import format_rules, parse_rules
from bilevel.rules.solving import solve
from bilevel.rules.verify import Answer, verify_family
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.symbolic.pddl import parse_domain, parse_problem


@pytest.mark.parametrize(
    ("name", "training", "most_rules", "orders", "sizes"),
    [
        ("blocksworld", range(1, 14, 2), 12, {"on(?x, ?x2) after on(?x2, ?x3)"}, {"object": 3}),
        ("childsnack", range(1, 20, 3), 12, set[str](), {"child+bread+content+sandwich": 2, "tray": 2}),
        ("spanner", range(1, 30, 4), 3, set[str](), {"nut": 2, "spanner": 3}),
        ("transport", range(1, 12, 3), 8, set[str](), {}),
    ],
)
def test_few_rules_learned_from_small_problems_are_proved_on_these_and_solve_large_ones(
    name: str, training: range, most_rules: int, orders: set[str], sizes: dict[str, int]
) -> None:
    domain = parse_domain(domain_text(name))
    problems = [parse_problem(problem_text(name, "training", number), domain) for number in training]
    assert can_learn_from_spaces(domain, problems)
    rules, unsolved = learn_from_problems(domain, problems)
    assert not unsolved
    assert len(rules) <= most_rules
    assert {str(order) for order in rules[0].orders} >= orders
    assert parse_rules(format_rules(rules), domain=domain) == parse_rules(format_rules(rules))
    for number in (1, 15):
        problem = parse_problem(problem_text(name, "medium", number), domain)
        assert solve(domain, problem, rules).is_solved
    assert not sizes or verify_family(rules, domain, problems[:4], sizes).answer is Answer.SOLVED


BLOCKS = parse_domain(domain_text("blocksworld"))


def facts(text: str) -> Facts:
    """`"on a b, on b c"` as facts."""
    return frozenset(Atom(words[0], tuple(words[1:])) for words in map(str.split, filter(None, text.split(", "))))


def test_a_goal_waits_for_what_its_order_says_directly_or_through_others() -> None:
    (rule,) = parse_rules(
        "on(?x, ?y) after on(?y, ?z)\n1: holding(?x) & goal on(?x, ?y) -> stack(?x, ?y)", domain=BLOCKS
    )
    goal, objects = facts("on a b, on b c, on c d"), dict.fromkeys("abcd", "object")
    waits = direct_waits(rule.orders, BLOCKS, goal, facts(""), objects)
    assert goals_in_turn(waits, goal, facts("")) == facts("on c d")
    assert goals_in_turn(waits, goal, facts("on b c")) == facts("on c d")
    assert goals_in_turn(waits, goal, facts("on b c, on c d")) == facts("on a b")


def test_a_space_has_every_state_and_says_how_far_goals_are() -> None:
    problem = parse_problem(problem_text("blocksworld", "training", 8), BLOCKS)
    space = Space.of(BLOCKS, problem, 1000, Deadline(60))
    assert space is not None
    assert all(space.holds(atom)[0] for atom in problem.state)
    solution = solve(BLOCKS, problem, learn_from_problems(BLOCKS, [problem]).rules)
    distance = space.distances(space.all_hold(problem.goal), space.solvable)[0]
    assert solution.is_solved
    assert distance <= len(solution.plan.actions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("on(?x, ?y) after of(?y, ?z)", "unknown predicate 'of'"),
        ("on(?x, ?y) after on(?y)", "'on' has 2 arguments, not 1"),
        ("on(?x, ?y) after on(?y, ?z) if clear(?x)", "an order asks for facts that never change"),
        ("1: on>(?x, ?y, ?z) & goal on(?x, ?y) -> stack(?x, ?y)", "unknown predicate 'on>'"),
    ],
)
def test_orders_and_paths_must_fit_the_domain(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message.replace(">", ".")):
        parse_rules(text, domain=BLOCKS)

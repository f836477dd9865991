"""Policies and plans as text and JSON."""

from __future__ import annotations

from small_policies import COINS, FLIP, FLIPPING, HEADS, WIN, decision

from bilevel.cli.planning import plan_items, plan_text, policy_items, policy_text
from bilevel.planning.planner import ContingentPolicy, PlanStep
from bilevel.symbolic.plans import parse_plan


def test_text_has_a_line_per_decision() -> None:
    assert policy_text(policy_items(FLIPPING)).splitlines() == [
        "1: if heads(penny) do win(penny)",
        "2: if tails(penny) & not lost() do flip(penny)",
        "; 2 decisions; the first whose condition holds counts",
    ]


def test_distances_are_aligned_and_an_empty_condition_is_true() -> None:
    policy = ContingentPolicy((decision([HEADS], WIN, 1), decision([], FLIP, 12)))
    assert policy_text(policy_items(policy)).splitlines()[:2] == [
        " 1: if heads(penny) do win(penny)",
        "12: if true do flip(penny)",
    ]
    assert policy_text([]) == "; 0 decisions; the first whose condition holds counts\n"


def test_a_plan_says_what_it_counts_on_and_is_read_back() -> None:
    steps = [PlanStep(FLIP, 1), PlanStep(FLIP, 0), PlanStep(WIN)]
    text = plan_text(COINS, steps)
    assert text.splitlines() == [
        "(flip penny) ; outcome 2",
        "(flip penny) ; outcome 1",
        "(win penny)",
        "; cost = 3 (unit cost)",
    ]
    assert [move.outcome for move in parse_plan(text, COINS).moves.values()] == [1, 0]
    assert plan_items(steps)[0] == {
        "do": "flip(penny)",
        "outcome": 2,
        "nature": {},
    }


def test_a_policy_as_json() -> None:
    assert policy_items(FLIPPING) == [
        {"if": ["heads(penny)"], "if_not": [], "do": "win(penny)", "distance": 1},
        {"if": ["tails(penny)"], "if_not": ["lost()"], "do": "flip(penny)", "distance": 2},
    ]

"""Policies and plans as text and JSON; what is read back is what was written, and rubbish is refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_policies import COINS, FLIP, FLIPPING, HEADS, ONE_COIN, TAILS, WIN, decision

from bilevel.planning.contingent import ContingentPolicy
from bilevel.planning.planner import Step
from bilevel.planning.policy_formats import (
    parse_policy_json,
    plan_json,
    plan_text,
    policy_json,
    policy_text,
    read_policy_json,
)
from bilevel.symbolic.domain import Atom, BadInput, Problem
from bilevel.symbolic.pddl import parse_plan


def test_text_has_a_line_per_decision() -> None:
    assert policy_text(FLIPPING).splitlines() == [
        "1: if heads(penny) do win(penny)",
        "2: if tails(penny) & not lost() do flip(penny)",
        "; 2 decisions; the first whose condition holds counts",
    ]


def test_distances_are_aligned_and_an_empty_condition_is_true() -> None:
    policy = ContingentPolicy((decision([HEADS], WIN, 1), decision([], FLIP, 12)))
    assert policy_text(policy).splitlines()[:2] == [" 1: if heads(penny) do win(penny)", "12: if true do flip(penny)"]
    assert policy_text(ContingentPolicy(())) == "; 0 decisions; the first whose condition holds counts\n"


def test_a_plan_says_what_it_counts_on_and_is_read_back() -> None:
    steps = [Step(FLIP, 1), Step(FLIP, 0), Step(WIN)]
    text = plan_text(COINS, steps)
    assert text.splitlines() == [
        "(flip penny) ; outcome 2",
        "(flip penny) ; outcome 1",
        "(win penny)",
        "; cost = 3 (unit cost)",
    ]
    assert [move.outcome for move in parse_plan(text, COINS).moves.values()] == [1, 0]
    assert json.loads(plan_json(COINS, ONE_COIN, steps))["plan"][0] == {
        "do": "flip(penny)",
        "outcome": 2,
        "nature": {},
    }


def test_json_is_read_back(tmp_path: Path) -> None:
    policies = [
        FLIPPING,
        ContingentPolicy(()),
        ContingentPolicy((decision([TAILS], FLIP, 3, negative=[Atom("=", ("penny", "b-1")), Atom("lost")]),)),
    ]
    problem = Problem("one", "coins", {"penny": "coin", "b-1": "coin"}, ONE_COIN.state, ONE_COIN.goal)
    for policy in policies:
        file = tmp_path / "policy.json"
        file.write_text(policy_json(COINS, problem, policy))
        assert read_policy_json(file, COINS, problem) == policy
    assert json.loads(policy_json(COINS, problem, FLIPPING)) == {
        "format": 1,
        "domain": "coins",
        "problem": "one",
        "policy": [
            {"if": ["heads(penny)"], "if_not": [], "do": "win(penny)", "distance": 1},
            {"if": ["tails(penny)"], "if_not": ["lost()"], "do": "flip(penny)", "distance": 2},
        ],
    }


def changed(**values: Any) -> str:
    """A policy of one decision with some of it changed."""
    item = {"if": ["tails(penny)"], "if_not": [], "do": "flip(penny)", "distance": 1, **values}
    return json.dumps({"format": 1, "policy": [{key: value for key, value in item.items() if value is not None}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, "not JSON: "),
        ("[]", 'not a policy: expected an object with a list "policy"'),
        ('{"format": 2, "policy": []}', "of format 2, but this version reads 1"),
        ('{"policy": []}', "of format null, but this version reads 1"),
        ('{"format": 1, "policy": [3]}', 'decision 1: expected an object with "if", "if_not", "do" and "distance"'),
        (changed(distance=None), 'decision 1: expected an object with "if", "if_not", "do" and "distance"'),
        (changed(distance=-1), 'decision 1: "distance" is a number of steps, not -1'),
        (changed(distance=True), 'decision 1: "distance" is a number of steps, not true'),
        (changed(do="spin(penny)"), "decision 1: unknown action 'spin'; known actions: flip, push, wait, win"),
        (changed(do="flip()"), "decision 1: action 'flip()' needs 1 arguments, not 0"),
        (changed(do="flip(dime)"), "decision 1: there is no object 'dime' in 'flip(dime)'"),
        (changed(do="flip penny"), "decision 1: expected something like name(object, ...) but found 'flip penny'"),
        (changed(do=7), "decision 1: expected something like name(object, ...) but found 7"),
        (changed(**{"if": "tails(penny)"}), "decision 1: expected a list of facts, not 'tails(penny)'"),
        (changed(**{"if": ["tails()"]}), "decision 1: domain 'coins' has no predicate like 'tails()'"),
        (changed(if_not=["red(penny)"]), "decision 1: domain 'coins' has no predicate like 'red(penny)'"),
        (changed(if_not=["tails(penny,)"]), "decision 1: expected something like name(object, ...) but found"),
    ],
)
def test_rubbish_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_policy_json(text, COINS, ONE_COIN, "p.json")
    assert str(error.value).startswith(f"p.json: {message}")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        read_policy_json(tmp_path / "none.json", COINS, ONE_COIN)

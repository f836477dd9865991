"""What single predicates are turned into, for names of every shape."""

from __future__ import annotations

import pytest

from bilevel.rules.explanation.english import sentence
from bilevel.rules.explanation.wording import with_article, words
from bilevel.rules.rule_file import parse_rules


@pytest.mark.parametrize(
    ("condition", "clause"),
    [
        ("has-key(?x)", "a robot has a key"),
        ("moving(?x)", "a robot is moving"),
        ("door-open(?x)", "a robot's door is open"),
        ("on-table(?x)", "a robot is on the table"),
        ("robot-ready(?x)", "a robot is ready"),
        ("not is-ready(?x)", "a robot is not ready"),
        ("not holding(?x)", "you do not hold a robot"),
        ("carrying(?x, ?y)", "a robot carries a second robot"),
        ("connected(?x, ?y)", "a robot is connected to a second robot"),
        ("connected-to(?x, ?y)", "a robot is connected to a second robot"),
        ("left-of(?x, ?y)", "a robot is left of a second robot"),
        ("road(?x, ?y)", "there is a road from a robot to a second robot"),
        ("not road(?x, ?y)", "there is no road from a robot to a second robot"),
        ("supports(?x, ?y)", "a robot supports a second robot"),
        ("owner-of(?x, ?y)", "a robot's owner is a second robot"),
        ("assigned(?x, depot)", "a robot is assigned to depot"),
        ("goal connected(?x, ?y)", "a robot still has to be connected to a second robot"),
        ("goal holding(?x)", "you still have to hold a robot"),
        ("goal lift-at(?x)", "the lift belongs at a robot"),
        ("between(?x, ?y, ?z)", '"between" holds for a robot, a second robot and a third robot'),
        ("arm-empty()", "the arm is empty"),
        ("raining()", '"raining" holds'),
    ],
)
def test_clauses(condition: str, clause: str) -> None:
    declared = "variables: ?x - robot, ?y - robot, ?z - robot\n"
    (rule,) = parse_rules(f"{declared}1: {condition} -> check(?x, ?y)")
    assert sentence(rule).startswith(f"If {clause}, check ")


def test_words_and_articles() -> None:
    assert words("gripperFree") == words("gripper-free") == words("gripper_free") == ["gripper", "free"]
    assert [with_article(word) for word in ("block", "item", "hour", "unit")] == [
        "a block",
        "an item",
        "an hour",
        "a unit",
    ]

"""Plan files, read and written."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from bilevel.compiled import PURE
from bilevel.symbolic.domain import Action, BadInput
from bilevel.symbolic.packed import NUMBER, Names, PackedActions
from bilevel.symbolic.plans import NaturesMove, Plan, parse_plan, plan_chunks, read_plan, write_plan
from bilevel.tabletop.problems import shipped_domain

BLOCKS = shipped_domain("blocks")
COLOUR = shipped_domain("colour")
GACHA = shipped_domain("gacha")


def test_a_plan_is_one_action_a_line_and_its_cost() -> None:
    plan = Plan([Action("pick", ("b1",)), Action("place", ("b1", "p1"))])
    assert write_plan(plan) == "(pick b1)\n(place b1 p1)\n; cost = 2 (unit cost)\n"
    assert write_plan(Plan([])) == "; cost = 0 (unit cost)\n"


def test_a_plan_is_read_whatever_its_spaces_comments_and_case(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    file.write_bytes(b"; a plan\r\n\r\n  ( PICK b1 ) ; my comment\r\n(place B1\tp1)\r\n; cost = 2 (unit cost)")
    assert read_plan(file, BLOCKS) == Plan([Action("pick", ("b1",)), Action("place", ("b1", "p1"))])


def test_what_nature_did_is_read_and_written() -> None:
    text = "(press b1 u p) ; outcome 1 ?c=red\n(pick b1 p)\n; cost = 2 (unit cost)\n"
    plan = parse_plan(text, COLOUR)
    assert plan.moves == {0: NaturesMove(0, {"?c": "red"})}
    assert write_plan(plan) == text
    assert parse_plan("(roll d u) ; outcome 1 ?c=red ?x=block7", GACHA).moves == {
        0: NaturesMove(0, {"?c": "red", "?x": "block7"})
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(pik b1)", "2:2: unknown action 'pik'; did you mean 'pick'?"),
        ("  (pick b1 b2)", "2:3: action 'pick' takes 1 arguments, not 2"),
        ("pick b1", "2:1: expected one action such as (name argument ...) but found 'pick b1'"),
        ("(pick b1) (pick b2)", "2:1: expected one action such as"),
        ("(pick b1", "2:1: expected one action"),
        ("()", "2:1: expected one action"),
        ("(", "2:1: expected one action"),
        ("(pick ?x)", "2:1: expected one action"),
        ("(pick b1) ; outcome", "2:11: 'pick' has outcomes 1 to 1, not ''"),
        ("(pick b1) ; outcome 2", "2:11: 'pick' has outcomes 1 to 1, not '2'"),
        (f"(pick b1) ; outcome {'1' * 5000}", "2:11: 'pick' has outcomes 1 to 1, not '111"),
        ("(pick b1) ; outcome 1 ?x=b2", "2:11: this outcome of 'pick' binds nothing, not '?x=b2'"),
        ("(pick b1) ; outcome 1 x", "2:11: expected a variable and its value such as ?c=red but found 'x'"),
    ],
)
def test_mistakes_in_a_plan(line: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_plan(f"; plan\n{line}\n", BLOCKS, "plan")
    assert str(error.value).startswith(f"plan:{message}")


def test_a_move_must_bind_what_nature_chooses() -> None:
    with pytest.raises(BadInput, match=r"plan:1:14: this outcome of 'press' binds \?c=…, not ''"):
        parse_plan("(press b u p) ; outcome 1".replace(" ;", ";"), COLOUR, "plan")


def test_a_plan_of_integers_is_written_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(b"b1\nb2\np1\np2\n")
    packed = PackedActions(BLOCKS, names, array(NUMBER, [0, 2] * 60_000), array(NUMBER, [0, 0, 3] * 60_000))
    assert list(packed)[:2] == [Action("pick", ("b1",)), Action("place", ("b1", "p2"))]
    plan = Plan(packed, {4: NaturesMove(1, {"?x": "l1"}), 0: NaturesMove(0, {})})
    blocks = b"".join(plan_chunks(plan))
    assert blocks.decode() == write_plan(plan)
    monkeypatch.setenv(PURE, "1")
    assert b"".join(plan_chunks(plan)) == blocks

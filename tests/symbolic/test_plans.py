"""Plan files, read and written; plans that reach the goal, and every way in which one may not; what nature may do."""

from __future__ import annotations

import random
import re
from array import array
from pathlib import Path

import pytest

from bilevel.native import PURE
from bilevel.symbolic.domain import NO_FACTS, Action, BadInput, Domain, Outcome, Parameter, Problem, Schema
from bilevel.symbolic.packed import NUMBER, Names, PackedActions
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.plans import (
    Nature,
    NaturesMove,
    Plan,
    PlanCheck,
    parse_plan,
    plan_chunks,
    read_plan,
    validate,
    write_plan,
)
from bilevel.symbolic.semantics import natures_choices
from bilevel.tabletop.problems import shipped_domain

BLOCKS, COLOUR, GACHA = map(shipped_domain, ("blocks", "colour", "gacha"))


def test_a_plan_is_read_whatever_its_spaces_comments_and_case(tmp_path: Path) -> None:
    file = tmp_path / "plan"
    file.write_bytes(b"; a plan\r\n\r\n  ( PICK b1 ) ; my comment\r\n(place B1\tp1)\r\n; cost = 2 (unit cost)")
    assert read_plan(file, BLOCKS) == Plan([Action("pick", ("b1",)), Action("place", ("b1", "p1"))])


def test_what_nature_did_is_read_and_written() -> None:
    text = "(press b1 u p) ; outcome 1 ?c=red\n(pick b1 p)\n; cost = 2 (unit cost)\n"
    plan = parse_plan(text, COLOUR)
    assert plan.moves == {0: NaturesMove(0, {"?c": "red"})}
    assert write_plan(plan) == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(pik b1)", "2:2: unknown action 'pik'; did you mean 'pick'?"),
        ("  (pick b1 b2)", "2:3: action 'pick' takes 1 arguments, not 2"),
        ("(pick b1) (pick b2)", "2:1: expected one action such as"),
        (f"(pick b1) ; outcome {'1' * 5000}", "2:11: nature in 'pick' is '; outcome 1', not 'outcome 111"),
        ("(pick b1) ; outcome 1 ?x=b2", "2:11: nature in 'pick' is '; outcome 1', not 'outcome 1 ?x=b2'"),
    ],
)
def test_mistakes_in_a_plan(line: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^plan:{re.escape(message)}"):
        parse_plan(f"; plan\n{line}\n", BLOCKS, "plan")


def test_a_plan_of_integers_is_written_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(b"b1\nb2\np1\np2\n")
    packed = PackedActions(BLOCKS, names, array(NUMBER, [0, 2] * 60_000), array(NUMBER, [0, 0, 3] * 60_000))
    plan = Plan(packed, {4: NaturesMove(1, {"?x": "l1"}), 0: NaturesMove(0, {})})
    blocks = b"".join(plan_chunks(plan))
    assert blocks.decode() == write_plan(plan)
    monkeypatch.setenv(PURE, "1")
    assert b"".join(plan_chunks(plan)) == blocks


TWO_BLOCKS = parse_problem(
    "(define (problem p) (:domain blocks) (:objects b1 b2 - block p1 p2 - place)"
    " (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free)) (:goal (and (at b1 p1) (at b2 p2))))",
    BLOCKS,
)
ONE_BOX = parse_problem(
    "(define (problem p) (:domain gacha) (:objects red - colour t - tray d - box u - button)"
    " (:init (clear d) (closed d) (gripper-free) (tray-colour t red)) (:goal (achieved-goal red)))",
    GACHA,
)


def verdict(plan: str, domain: Domain = BLOCKS, problem: Problem = TWO_BLOCKS) -> PlanCheck:
    return validate(domain, problem, parse_plan(plan, domain))


@pytest.mark.parametrize(
    ("plan", "steps", "words"),
    [
        ("(pick b1)\n(place b1 p1)\n(pick b2)\n(place b2 p2)", 4, "valid: 4 steps reach the goal"),
        ("(pick b1)\n(pick b2)\n(pick b9)", 1, "not valid: step 2, pick(b2): gripper-free() does not hold"),
        ("(pick b1)\n(place b1 p1)", 2, "the goal is not reached after 2 steps: at(b2, p2) does not hold"),
        ("(pick p1)", 0, "there is no block 'p1'"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(plan: str, steps: int, words: str) -> None:
    found = verdict(plan)
    assert (found.steps, found.is_valid) == (steps, steps == 4)
    assert words in str(found)


@pytest.mark.parametrize(
    ("move", "fault"),
    [
        (None, "what nature did is not recorded; write it at the end of the line as '; outcome 1 ?x=… ?c=…'"),
        (NaturesMove(0, {"?x": "u", "?c": "red"}), "'u' is not new"),
        (NaturesMove(0, {"?x": "x1", "?c": "t"}), "there is no colour 't'"),
    ],
)
def test_moves_that_nature_cannot_make(move: NaturesMove | None, fault: str) -> None:
    plan = Plan([Action("roll", ("d", "u"))], {} if move is None else {0: move})
    assert fault in validate(GACHA, ONE_BOX, plan).fault


def test_the_recorded_outcome_is_the_one_that_happens() -> None:
    domain = parse_domain("(define (domain d) (:predicates (p) (q)) (:action a :effect (oneof (p) (q))))")
    problem = parse_problem("(define (problem x) (:domain d) (:goal (q)))", domain)
    assert [verdict(f"(a) ; outcome {number}", domain, problem).is_valid for number in (1, 2)] == [False, True]


@pytest.mark.parametrize("new", [(), ("?b",), ("?c",), ("?b", "?c")])
@pytest.mark.parametrize("kinds", [("ball", "ball"), ("red-ball", "ball"), ("red-ball", "red-ball"), ("hue", "hue")])
@pytest.mark.parametrize("objects", [{}, {"u": "ball"}, {"u": "ball", "v": "red-ball", "ball1": "hue", "w": "hue"}])
def test_nature_draws_by_her_seed_all_that_the_semantics_allows(
    new: tuple[str, ...], kinds: tuple[str, str], objects: dict[str, str]
) -> None:
    domain = Domain("d", {}, {}, {"red-ball": "ball", "ball": "object", "hue": "object"})
    outcome = Outcome(NO_FACTS, NO_FACTS, tuple(map(Parameter, ("?b", "?c"), kinds)), frozenset(new))
    schema = Schema("act", (), NO_FACTS, (outcome,))
    drawn, again = (
        [dict(Nature(domain, objects, random.Random(seed)).move(schema).binding) for seed in range(60)]
        for _ in range(2)
    )
    allowed = list(natures_choices(outcome, domain, objects))
    assert drawn == again
    assert all(binding in allowed for binding in drawn)
    assert all(binding in drawn for binding in allowed)

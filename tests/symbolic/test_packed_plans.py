"""Plans as integers: written like ordinary ones, and valid if these are."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bilevel.compiled import PURE
from bilevel.symbolic.domain import Action, Domain, Problem
from bilevel.symbolic.packed import NUMBER, Names, pack
from bilevel.symbolic.packed_plans import PackedActions, plan_chunks, validate_packed
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.plans import NaturesMove, Plan, PlanCheck, parse_plan, validate, write_plan
from bilevel.symbolic.semantics import ground, progress
from bilevel.tabletop.problems import shipped_domain
from drawn_domains import PATIENT, draw_mutated

plans = pytest.importorskip("bilevel.symbolic._plans")

BLOCKS = shipped_domain("blocks")
TWO_BLOCKS = parse_problem(
    "(define (problem p) (:domain blocks) (:objects b1 b2 - block p1 p2 - place)"
    " (:init (clear b1) (clear b2) (clear p1) (clear p2) (gripper-free)) (:goal (and (at b1 p1) (at b2 p2))))",
    BLOCKS,
)
SOLUTION = "(pick b1)\n(place b1 p1)\n(pick b2)\n(place b2 p2)\n; cost = 4 (unit cost)\n"

# Types, constants, equality, negative preconditions, facts with none and with three terms, one both deleted and added.
MAIL = parse_domain(
    """(define (domain mail)
      (:types van bike - vehicle vehicle letter - movable movable spot)
      (:constants office - spot)
      (:predicates (at ?m - movable ?s - spot) (link ?v - vehicle ?a ?b - spot) (open) (seen ?x))
      (:action go :parameters (?v - vehicle ?a ?b - spot)
        :precondition (and (at ?v ?a) (link ?v ?a ?b) (not (= ?a ?b)) (not (seen ?v)))
        :effect (and (at ?v ?b) (not (at ?v ?a)) (seen ?v)))
      (:action back :parameters (?v - van ?s - spot)
        :precondition (and (at ?v ?s) (seen ?v) (= ?s office))
        :effect (and (not (seen ?v)) (open) (not (open))))
      (:action close :parameters () :precondition (open) :effect (and (not (open)) (seen office)))
      (:action load :parameters (?l - letter ?v - vehicle ?s - spot)
        :precondition (and (at ?l ?s) (at ?v ?s) (not (open)))
        :effect (and (not (at ?l ?s)) (at ?l office) (not (seen ?v)))))"""
)


def random_problem(rng: Random) -> Problem:
    spots, vehicles = ["a", "b", "office"], ["van1", "bike1"]
    facts = [f"(at {mover} {rng.choice(spots)})" for mover in (*vehicles, "l1", "l2")]
    facts += [f"(link {' '.join(terms)})" for terms in product(vehicles, spots, spots) if rng.random() < 0.7]
    return parse_problem(
        "(define (problem p) (:domain mail) (:objects van1 - van bike1 - bike l1 l2 - letter a b - spot)"
        f" (:init {' '.join(facts)}) (:goal (and)))",
        MAIL,
    )


ACTIONS = [
    Action(schema.name, terms)
    for schema in MAIL.schemas.values()
    for terms in product(["a", "b", "bike1", "l1", "l2", "office", "van1"], repeat=len(schema.parameters))
]


def random_walk(problem: Problem, rng: Random, mistakes: float) -> tuple[list[Action], Problem]:
    """Some actions, and the problem with a goal that they achieve; both but for mistakes of this probability."""
    actions: list[Action] = []
    state = problem.state
    for _ in range(rng.randrange(8)):
        here, some = replace(problem, state=state), rng.sample(ACTIONS, 200)
        can_be_done = [action for action in some if validate(MAIL, here, Plan([action])).action is None]
        actions.append(rng.choice(ACTIONS if rng.random() < mistakes else can_be_done or ACTIONS))
        if grounded := ground(MAIL.schemas[actions[-1].name], actions[-1].arguments):
            state = progress(state, grounded.outcomes[0])
    facts = sorted(problem.state if rng.random() < mistakes else state)
    return actions, replace(problem, goal=frozenset(rng.sample(facts, 3)))


def packed(actions: list[Action], domain: Domain, names: Names) -> PackedActions:
    schemas = [[*domain.schemas].index(action.name) for action in actions]
    arguments = [names.numbers[name] for action in actions for name in action.arguments]
    return PackedActions(domain, names, array(NUMBER, schemas), array(NUMBER, arguments))


def test_plans_are_valid_that_are_so_by_definition() -> None:
    rng, valid = Random(0), 0
    for _ in range(300):
        actions, problem = random_walk(random_problem(rng), rng, mistakes=0.1)
        whole = pack(problem, MAIL)
        expected = validate(MAIL, problem, Plan(actions)).is_valid
        assert plans.reaches_goal(whole, packed(actions, MAIL, whole.names)) == expected
        valid += expected
    assert 50 < valid < 250  # else the test says little


def test_a_packed_plan_is_written_like_an_ordinary_one() -> None:
    rng = Random(1)
    for _ in range(20):
        actions = rng.choices(ACTIONS, k=rng.randrange(5))
        plan = Plan(packed(actions, MAIL, pack(random_problem(rng), MAIL).names))
        text = write_plan(Plan(actions))
        assert b"".join(plan_chunks(plan)).decode() == text == write_plan(plan)


def test_what_nature_did_is_written_too() -> None:
    names = pack(random_problem(Random(2)), MAIL).names
    actions = packed([Action("close", ())] * 5, MAIL, names)
    moves = {4: NaturesMove(1, {"?x": "l1", "?y": "new"}), 0: NaturesMove(0, {}), 3: NaturesMove(2, {"?x": "a"})}
    text = b"".join(plan_chunks(Plan(actions, moves))).decode()
    assert text == write_plan(Plan(actions, moves))
    assert text.splitlines()[3:5] == ["(close) ; outcome 3 ?x=a", "(close) ; outcome 2 ?x=l1 ?y=new"]


def test_a_long_plan_comes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    names = pack(TWO_BLOCKS, BLOCKS).names
    plan = Plan(packed([Action("pick", ("b1",)), Action("place", ("b1", "p2"))] * 60_000, BLOCKS, names))
    blocks = list(plan_chunks(plan))
    assert len(blocks) > 2
    assert b"".join(blocks).decode() == write_plan(plan)
    monkeypatch.setenv(PURE, "1")
    assert b"".join(plan_chunks(plan)) == b"".join(blocks)


def test_packed_actions_are_actions() -> None:
    names = pack(TWO_BLOCKS, BLOCKS).names
    actions = packed([Action("pick", ("b2",)), Action("place", ("b2", "p1"))], BLOCKS, names)
    assert list(actions) == [Action("pick", ("b2",)), Action("place", ("b2", "p1"))]
    assert (len(actions), actions[1:]) == (2, [Action("place", ("b2", "p1"))])


@pytest.mark.parametrize(
    "text",
    [
        SOLUTION,
        SOLUTION.upper(),
        "; a plan\r\n\r\n" + SOLUTION.replace("\n", "\r\n").replace("(", "\t( ").replace(")", " )"),
        SOLUTION.replace("\n", "\r"),
        SOLUTION[: SOLUTION.index(";")].strip(),
        "",
    ],
)
def test_plain_plans_are_read(text: str) -> None:
    actions = plans.packed_actions(text.encode(), BLOCKS, pack(TWO_BLOCKS, BLOCKS).names)
    assert Plan(list(actions)) == parse_plan(text, BLOCKS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(pick b1)", "(pick b1) ; outcome 1"),
        ("(pick b1)", "(pick b1) ;outcome 1\n; more"),
        ("(pick b1)\n", "(pick b1) "),
        ("(pick b1)", "(pick\nb1)"),
        ("(pick b1)", "(pick b1 b2)"),
        ("(pick b1)", "(pick b3)"),
        ("(pick b1)", "(pick -b1)"),
        ("(pick b1)", "(peck b1)"),
        ("(pick b1)", "pick b1"),
        ("(pick b1)", "((pick b1))"),
        ("(pick b1)", "(pick b1"),
        ("(pick b1)", "(pick\x0bb1)"),
        ("(pick b1)", "()"),
        ("; cost", "; côst"),
    ],
)
def test_other_plans_are_left_to_the_ordinary_reader(old: str, new: str) -> None:
    assert old in SOLUTION
    names = pack(TWO_BLOCKS, BLOCKS).names
    assert plans.packed_actions(SOLUTION.replace(old, new, 1).encode(), BLOCKS, names) is None


@settings(PATIENT, max_examples=200)
@given(st.data())
def test_both_readers_agree_on_mutated_plans(data: st.DataObject) -> None:
    text = draw_mutated(data.draw, SOLUTION)
    actions = plans.packed_actions(text.encode(), BLOCKS, pack(TWO_BLOCKS, BLOCKS).names)
    assert actions is None or Plan(list(actions)) == parse_plan(text, BLOCKS)


def test_plan_files_are_validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, file = pack(TWO_BLOCKS, BLOCKS), tmp_path / "plan"
    file.write_text(SOLUTION)
    assert validate_packed(BLOCKS, problem, file) == PlanCheck(4)
    file.write_text(SOLUTION.replace("b2 p2", "b2 p1"))
    assert validate_packed(BLOCKS, problem, file) is None
    assert validate_packed(BLOCKS, problem, tmp_path / "missing") is None
    file.write_text(SOLUTION)
    monkeypatch.setenv(PURE, "1")
    assert validate_packed(BLOCKS, problem, file) is None


def test_what_nature_does_is_left_to_the_ordinary_validator(tmp_path: Path) -> None:
    domain = parse_domain("(define (domain d) (:predicates (p) (q)) (:action a :effect (oneof (p) (q))))")
    problem = pack(parse_problem("(define (problem x) (:domain d) (:goal (q)))", domain), domain)
    file = tmp_path / "plan"
    file.write_text("(a)\n")
    assert validate_packed(domain, problem, file) is None

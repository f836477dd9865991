"""Plans that reach the goal, and every way in which one may not."""

from __future__ import annotations

from random import Random

import pytest

from bilevel.symbolic.domain import Action, Atom, Domain, Outcome, Parameter, Predicate, Problem, Schema
from bilevel.symbolic.pddl import parse_domain, parse_problem
from bilevel.symbolic.plans import NaturesMove, Plan, PlanCheck, parse_plan, validate
from bilevel.symbolic.semantics import applicable, ground, progress
from bilevel.tabletop.problems import shipped_domain

BLOCKS = shipped_domain("blocks")
GACHA = shipped_domain("gacha")
COLOUR = shipped_domain("colour")
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


def test_a_valid_plan() -> None:
    result = verdict("(pick b1)\n(place b1 p1)\n(pick b2)\n(place b2 p2)")
    assert result == PlanCheck(4)
    assert result.is_valid
    assert str(result) == "valid: 4 steps reach the goal"


def test_the_first_step_that_cannot_be_carried_out_is_named() -> None:
    result = verdict("(pick b1)\n(pick b2)\n(pick b9)")
    assert result == PlanCheck(1, Action("pick", ("b2",)), missing=(Atom("gripper-free"),))
    assert str(result) == "not valid: step 2, pick(b2): these facts do not hold: gripper-free()"


@pytest.mark.parametrize(
    ("action", "fault"),
    [
        (Action("pick", ("b9",)), "action 'pick(b9)' cannot be done: there is no block 'b9'"),
        (Action("pick", ("p1",)), "action 'pick(p1)' cannot be done: there is no block 'p1'"),
        (Action("pick"), "action 'pick()' needs 1 arguments, not 0"),
        (Action("kick", ("b1",)), "unknown action 'kick'; known actions: pick, place, put-aside, take"),
    ],
)
def test_actions_that_fit_no_schema(action: Action, fault: str) -> None:
    assert validate(BLOCKS, TWO_BLOCKS, Plan([action])) == PlanCheck(0, action, fault=fault)


@pytest.mark.parametrize(
    ("move", "fault"),
    [
        (None, "what nature did is not recorded; write it at the end of the line, such as '; outcome 1 ?x=… ?c=…'"),
        (NaturesMove(0, {"?x": "u", "?c": "red"}), "'u' is not new: there is such an object already"),
        (NaturesMove(0, {"?x": "x1", "?c": "blue"}), "there is no colour 'blue'"),
        (NaturesMove(0, {"?x": "x1", "?c": "t"}), "there is no colour 't'"),
    ],
)
def test_moves_that_nature_cannot_make(move: NaturesMove | None, fault: str) -> None:
    roll = Action("roll", ("d", "u"))
    plan = Plan([roll], {} if move is None else {0: move})
    assert validate(GACHA, ONE_BOX, plan) == PlanCheck(0, roll, fault=f"roll(d, u): {fault}")


def test_the_recorded_outcome_is_the_one_that_happens() -> None:
    domain = parse_domain("(define (domain d) (:predicates (p) (q)) (:action a :effect (oneof (p) (q))))")
    problem = parse_problem("(define (problem x) (:domain d) (:goal (q)))", domain)
    assert verdict("(a) ; outcome 2", domain, problem).is_valid
    assert verdict("(a) ; outcome 1", domain, problem).unmet == (Atom("q"),)
    assert not verdict("(a)", domain, problem).is_valid


def test_validation_follows_the_definitions() -> None:
    """Random walks in Blocks: applicable as `applicable` says, and the state as `progress` says."""
    rng = Random(0)
    blocks, places = ["b1", "b2"], ["p1", "p2"]
    for _ in range(200):
        state, possible = TWO_BLOCKS.state, True
        actions: list[Action] = []
        while possible and len(actions) < 6:
            x, place = rng.choice(blocks), rng.choice(places)
            action = Action(*rng.choice([("pick", (x,)), ("place", (x, place))]))
            actions.append(action)
            grounded = ground(BLOCKS.schemas[action.name], action.arguments)
            assert grounded is not None
            possible = applicable(state, grounded)
            if possible:
                state = progress(state, grounded.outcomes[0])
        result = validate(BLOCKS, TWO_BLOCKS, Plan(actions))
        assert (result.action is None) == possible
        assert result.steps == len(actions) - (not possible)
        assert not possible or result.unmet == tuple(sorted(TWO_BLOCKS.goal - state))


def test_nature_may_make_the_first_two_objects_of_a_type_at_once() -> None:
    pair = Outcome(
        frozenset({Atom("twins", ("?a", "?b"))}), frozenset(), (Parameter("?a", "egg"), Parameter("?b", "egg"))
    )
    domain = Domain(
        "hens",
        {"twins": Predicate("twins", (Parameter("?x", "egg"), Parameter("?y", "egg")))},
        {"lay": Schema("lay", (), frozenset(), (pair,))},
        {"egg": "object"},
    )
    problem = Problem("two", "hens", {}, frozenset(), frozenset({Atom("twins", ("egg1", "egg2"))}))
    plan = Plan([Action("lay")], {0: NaturesMove(0, {"?a": "egg1", "?b": "egg2"})})
    assert validate(domain, problem, plan).is_valid

"""Families: what is proved of the learned rules, and what the printed one gets wrong."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.rules.verify import Answer, Ending, Starts, Verdict, verify_family
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts
from bilevel.symbolic.pddl import parse_domain, parse_problem, read_domain


def domain(name: str) -> Domain:
    return read_domain(str(files("bilevel.tabletop") / "worlds" / f"{name}.pddl"))


BLOCKS, COLOUR, GACHA = domain("blocks"), domain("colour"), domain("gacha")

PLACE = "1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)"
PICK = "2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)"
PRINTED_PICK = "2: clear(?x) & gripper-free() & goal at(?x, ?l) -> pick(?x)"


def block_rules(*texts: str) -> tuple[Rule, ...]:
    return parse_rules("\n".join(["variables: ?x - block, ?y - block, ?l - place", *texts]))


LEARNED, PRINTED = block_rules(PLACE, PICK), block_rules(PLACE, PRINTED_PICK)

GOLDEN = Path(__file__).parent / "golden"
COLOUR_RULES, GACHA_RULES = (parse_rules((GOLDEN / f"{name}.rules").read_text()) for name in ("colour", "gacha"))

BLOCKS_SEED = parse_problem(
    """(define (problem seed) (:domain blocks) (:objects b1 - block l1 - place t1 - table)
    (:init (clear b1) (clear l1) (gripper-free)) (:goal (at b1 l1)))""",
    BLOCKS,
)
COLOUR_SEED = parse_problem(
    """(define (problem seed) (:domain colour)
    (:objects b1 - block c1 - colour t1 - tray button1 - button table1 - table p1 - platform)
    (:init (on b1 table1) (unknown b1) (free p1) (gripper-free) (tray-colour t1 c1)) (:goal (achieved-goal b1)))""",
    COLOUR,
)
GACHA_SEED = parse_problem(
    """(define (problem seed) (:domain gacha) (:objects c1 - colour t1 - tray box1 - box button1 - button)
    (:init (closed box1) (clear box1) (gripper-free) (tray-colour t1 c1)) (:goal (achieved-goal c1)))""",
    GACHA,
)


def verify_blocks(rules: tuple[Rule, ...], most: int, starts: Starts, max_states: int = 10_000) -> Verdict:
    counts = {"block": most, "place": most}
    return verify_family(rules, BLOCKS, [BLOCKS_SEED], counts, starts=starts, max_states=max_states)


def refuted(verdict: Verdict) -> tuple[Facts, list[str], Facts]:
    """The goal, the actions and the missed goals of a counterexample that ends without a rule."""
    assert verdict.answer is Answer.REFUTED
    found = verdict.counterexample
    assert found is not None
    assert found.ending is Ending.NO_RULE
    assert not found.only_some_ties
    return found.problem.goal, [str(step.action) for step in found.steps], found.missed


def at(*pairs: str) -> Facts:
    return frozenset(Atom("at", tuple(pair.split())) for pair in pairs)


# Blocks


def test_the_learned_blocks_rules_are_right_on_every_problem_up_to_four_blocks_and_places() -> None:
    verdict = verify_blocks(LEARNED, 4, "initial")
    assert verdict.answer is Answer.SOLVED
    assert str(verdict).startswith("solved always (30 problems up to names")


def test_the_printed_rule_picks_a_block_whose_place_is_taken() -> None:
    away = parse_problem(
        """(define (problem p) (:domain blocks) (:objects b1 b2 - block l1 - place t1 - table)
        (:init (clear b1) (at b2 l1) (gripper-free)) (:goal (at b1 l1)))""",
        BLOCKS,
    )
    _, actions, missed = refuted(verify_family(PRINTED, BLOCKS, [away], {}, starts="initial"))
    assert (actions, missed) == (["pick(b1)"], at("b1 l1"))


# Colour and Gacha


@pytest.mark.parametrize(("starts", "complete_goals"), [("initial", False), ("at-rest", True)])
def test_the_colour_rules_are_right_up_to_four_blocks_and_three_colours(starts: Starts, complete_goals: bool) -> None:
    counts = {"block": 4, "colour+tray": 3}
    found = verify_family(COLOUR_RULES, COLOUR, [COLOUR_SEED], counts, starts=starts, complete_goals=complete_goals)
    assert found.answer is Answer.SOLVED


def test_the_gacha_rules_are_right_though_new_blocks_never_end() -> None:
    assert verify_family(GACHA_RULES, GACHA, [GACHA_SEED], {"colour+tray": 4}).answer is Answer.SOLVED


@pytest.mark.parametrize("missing", [4, 5, 6, 7, 8])
def test_gacha_needs_its_rules_for_rolling_and_for_wrong_rolls(missing: int) -> None:
    fewer = tuple(rule for rule in GACHA_RULES if rule.priority != missing)
    found = verify_family(fewer, GACHA, [GACHA_SEED], {"colour+tray": 2}, starts="initial")
    assert found.answer is Answer.REFUTED


# The definition


RISK = parse_domain(
    """
    (define (domain risk)
      (:requirements :strips :typing :non-deterministic)
      (:types thing)
      (:predicates (done ?x - thing) (lost ?x - thing) (open ?x - thing))
      (:action safe :parameters (?x - thing) :precondition (open ?x) :effect (done ?x))
      (:action gamble :parameters (?x - thing) :precondition (open ?x)
        :effect (and (not (open ?x)) (oneof (done ?x) (lost ?x)))))
    """
)
ONLY_GAMBLE = Domain("risk", RISK.predicates, {"gamble": RISK.schemas["gamble"]}, RISK.types)
GAMBLE = parse_rules("variables: ?x - thing\n1: open(?x) & goal done(?x) -> gamble(?x)")


def verify_gamble(domain: Domain, init: str) -> Verdict:
    text = f"(define (problem p) (:domain risk) (:objects x - thing) (:init {init}) (:goal (done x)))"
    return verify_family(GAMBLE, domain, [parse_problem(text, domain)], {}, starts="initial")


def test_losing_a_goal_by_a_needless_risk_is_a_failure() -> None:
    _, actions, missed = refuted(verify_gamble(RISK, "(open x)"))
    assert actions == ["gamble(x)"]
    assert missed == {Atom("done", ("x",))}


def test_a_family_without_goals_that_can_surely_be_reached_is_refused() -> None:
    for domain, init in ((ONLY_GAMBLE, "(open x)"), (RISK, "(lost x)")):
        with pytest.raises(BadInput, match="the family is empty"):
            verify_gamble(domain, init)


def test_sizes_beyond_the_bound_are_named_and_the_others_proved() -> None:
    verdict = verify_blocks(LEARNED, 17, "initial", max_states=8)
    assert verdict.answer is Answer.BOUND_HIT
    assert str(verdict).startswith("bound hit (7 problems up to names")
    assert "too large: seed, block=2, place=2, or larger" in str(verdict)
    assert len(str(verdict).splitlines()) < 5


def test_rules_of_another_domain_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown type 'place'"):
        verify_family(LEARNED, GACHA, [GACHA_SEED], {})

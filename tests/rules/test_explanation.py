"""Rules and domains in plain English: sentences for domains of every kind, and no gap in any sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilevel.rules.explanation import FORMATS, domain_in_english, sentence
from bilevel.rules.rule import Rule
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import Action, Atom, Parameter
from bilevel.symbolic.pddl import parse_domain

BLOCKS = """variables: ?x - block, ?l - place

1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)
"""
ENGLISH = """2 rules. For at: pick, then place.

1. If you hold block x, place l is clear and it is a goal that x is at l, do place(x, l).
2. If block x is clear, place l is clear, the gripper is free and it is a goal that x is at l, do pick(x).
"""


def test_rules_are_shown_in_every_format() -> None:
    rules = parse_rules(BLOCKS)
    assert FORMATS["text"](rules) == BLOCKS
    assert FORMATS["english"](rules) == ENGLISH
    assert [FORMATS[name](()).splitlines()[0] for name in FORMATS] == ["", "0 rules."]


def test_orders_and_paths_are_sentences() -> None:
    rules = parse_rules(
        """variables: ?r - rover, ?x - place, ?y - place, ?z - place
        on(?x, ?y) after on(?y, ?z) if wide(?z)
        1: road>(?r, ?x, ?y, ?z) & goal at(?r, ?z) -> drive(?r, ?x, ?y)"""
    )
    assert FORMATS["english"](rules).splitlines()[2:] == [
        "If place z is wide, achieve that place y is on z before place x is on y.",
        "1. If a shortest way for rover r from place x to place z begins with place y and it is a goal that r is at z, "
        "do drive(r, x, y).",
    ]


def test_the_reason_for_one_action_names_its_objects() -> None:
    assert sentence(parse_rules(BLOCKS)[0], {"?x": "block3", "?l": "place7"}) == (
        "Because you hold block3, place7 is clear and it is a goal that block3 is at place7, do place(block3, place7)."
    )


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("robot-at(?a)", "the robot is at thing a"),
        ("at-robby(?a)", "the robby is at thing a"),
        ("on-table(?a)", "thing a is on the table"),
        ("power-on(?a)", "the power is on thing a"),
        ("dust-free(?a)", "thing a is dust-free"),
        ("dust-free-room(?a)", "thing a is dust-free room"),
        ("door-open(?a)", "the door of thing a is open"),
        ("on-thing(?a, ?b)", "thing a is on thing b"),
        ("colour-of(?a, ?b)", "the colour of thing a is thing b"),
        ("on-board(?a, ?b)", "thing a is on board thing b"),
        ("connected-to(?a, ?b)", "thing a is connected to thing b"),
        ("supports(?a, ?b)", "thing a supports thing b"),
        ("between(?a, ?b, home)", '"between" is true of thing a, thing b and home'),
        ("on+(?a, ?b)", "thing a is on thing b in one or more steps"),
        ("not on(?a, ?b)", "thing a is not on thing b"),
        ("not holding(?a)", "it is not so that you hold thing a"),
        ("?a != ?b", "thing a is not thing b"),
        ("raining()", '"raining" is true'),
        ("emptyFerry()", "the ferry is empty"),
    ],
)
def test_clauses(condition: str, said: str) -> None:
    (rule,) = parse_rules(f"variables: ?a - thing, ?b - thing\n1: {condition} -> wait()")
    assert sentence(rule) == f"If {said}, do wait()."


BELT = """
(define (domain belt)
  (:types block colour place - object tray - place)
  (:constants home - place)
  (:predicates (on-belt ?x - block) (colour-of ?x - block ?c - colour) (at ?x - block ?p - place) (free) (locked))
  (:action wait :parameters ())
  (:action toss :parameters (?x - block) :precondition (free)
    :effect (oneof (at ?x home) (exists (?t - tray) (at ?x ?t)) ()))
  (:action swap :parameters (?x ?y - block) :precondition (and (not (on-belt ?x)) (not (= ?x ?y)))
    :effect (and (on-belt ?x) (not (on-belt ?y))))
  (:event arrive :effect (exists (?x - block ?c - colour) (and (new ?x) (on-belt ?x) (colour-of ?x ?c)))))
"""
BELT_ENGLISH = """\
The domain belt has 5 predicates, 3 actions and 1 events.
  Each block is a kind of object.
  Each colour is a kind of object.
  Each place is a kind of object.
  Each tray is a kind of place.
  There is always place home.

wait()
  It can be done at any time.
  Then nothing changes.

toss(?x - block)
  It can be done when the robot is free.
  Then nature decides between 3 outcomes:
    1. x is at home
    2. for some tray t x is at t
    3. nothing changes

swap(?x - block, ?y - block)
  It can be done when x is not y and x is not on the belt.
  Then x is on the belt and y is no longer on the belt.

arrive()
  It can happen by itself at any time.
  Then for a new block x and some colour c the colour of x is c and x is on the belt.
"""


def test_all_that_a_domain_can_have_is_told() -> None:
    assert domain_in_english(parse_domain(BELT)) == BELT_ENGLISH


TERMS = st.sampled_from(["?a", "?b", "?c", "depot"])
NAMES = st.sampled_from(
    ["at", "holding", "colour-of", "Ünder-ground", "-", "_", "goal", "7", "a/b", "on/", "{0}", "is"]
)
ATOMS = st.builds(Atom, NAMES, st.lists(TERMS, max_size=4).map(tuple))
FACTS = st.frozensets(ATOMS, max_size=4)
UNEQUAL = st.frozensets(st.builds(Atom, st.just("="), st.tuples(TERMS, TERMS)), max_size=1)
VARIABLES = tuple(Parameter(name, "block") for name in ("?a", "?b", "?c"))
ACTIONS = st.builds(Action, NAMES, st.lists(TERMS, max_size=4).map(tuple))
RULES = st.builds(Rule, st.integers(1, 5), st.just(VARIABLES), FACTS, FACTS, ACTIONS, FACTS | UNEQUAL)


@given(RULES)
def test_any_rule_is_a_sentence_without_variables(rule: Rule) -> None:
    for text in (sentence(rule), sentence(rule, {"?a": "a1", "?b": "b1", "?c": "c1"})):
        assert text.endswith(").")
        assert not set(text) & set("?\n")
        assert "  " not in text

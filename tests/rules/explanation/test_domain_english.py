"""Domains are told in whole sentences: when actions can be done, what they do, what nature decides."""

from __future__ import annotations

import pytest

from bilevel.rules.explanation.domains import domain_in_english
from bilevel.symbolic.adl import parse_adl_domain
from bilevel.symbolic.pddl import parse_domain
from bilevel.tabletop.problems import shipped_domain

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
  (:event jump :parameters (?x - block ?p ?q - place) :precondition (and (at ?x ?p) (not (locked)))
    :effect (and (not (at ?x ?p)) (at ?x ?q)))
  (:event arrive :effect (exists (?x - block ?c - colour) (and (new ?x) (on-belt ?x) (colour-of ?x ?c)))))
"""
EXPECTED = """\
The domain belt has 5 predicates, 3 actions and 2 events.
  An object is a block, a colour or a place; a place is a tray.
  There is always a place called home.

wait
  Wait.
  It can be done at any time.
  Then nothing changes.

toss (?x - block)
  Toss a block.
  It can be done when you are free.
  Then nature decides between 3 outcomes:
    1. The block is at home.
    2. The block is at a tray. Nature picks the tray.
    3. Nothing changes.

swap (?x - block, ?y - block)
  Swap a block with a second block.
  It can be done when the first block is not on the belt and it is not the second block.
  Then the first block is on the belt; the second block is no longer on the belt.

jump (?x - block, ?p - place, ?q - place)
  This happens by itself.
  It can happen when a block is at a place and you are not locked.
  Then the block is at a second place; it is no longer at the first place.

arrive
  This happens by itself.
  It can happen at any time.
  Then a new block appears, the block is on the belt and it has a colour. Nature picks the colour.
"""


def test_all_that_a_domain_can_have_is_told() -> None:
    assert domain_in_english(parse_domain(BELT)) == EXPECTED


@pytest.mark.parametrize(
    ("domain", "sentences"),
    [
        (
            "blocks",
            ["Put aside a block on a table.", "Then the block is clear and the gripper is free; you no longer hold"],
        ),
        ("colour", ["Then the block has a colour; it is no longer unknown. Nature picks the colour."]),
        (
            "gacha",
            ["Then a new block appears, the block is in the box and it has a colour; the box is no longer clear."],
        ),
    ],
)
def test_the_domains_of_the_package_are_told(domain: str, sentences: list[str]) -> None:
    text = domain_in_english(shipped_domain(domain))
    assert all(sentence in text for sentence in sentences)


def test_of_a_domain_in_adl_only_the_orders_are_told() -> None:
    domain = parse_adl_domain(
        "(define (domain d) (:requirements :adl) (:types lamp) (:predicates (lit ?l - lamp))"
        " (:action flip :parameters (?l - lamp) :effect (when (lit ?l) (not (lit ?l)))))"
    )
    assert "Flip a lamp.\n  What it needs and does is written in ADL" in domain_in_english(domain)

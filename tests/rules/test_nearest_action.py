"""For a change that no action explains, the nearest one is found, and what it lacks is said."""

from __future__ import annotations

import pytest

from bilevel.rules.nearest_action import how_it_differs, nearest_action
from bilevel.symbolic.domain import Action, Atom, Facts
from bilevel.symbolic.pddl import parse_domain

DOMAIN = parse_domain("""
(define (domain delivery)
  (:requirements :strips :typing :negative-preconditions)
  (:types parcel spot)
  (:predicates (free) (lying ?p - parcel) (carrying ?p - parcel) (at ?p - parcel ?s - spot) (empty ?s - spot) (wet))
  (:action pick :parameters (?p - parcel)
    :precondition (and (free) (lying ?p))
    :effect (and (carrying ?p) (not (free)) (not (lying ?p))))
  (:action put :parameters (?p - parcel ?s - spot)
    :precondition (and (carrying ?p) (empty ?s) (not (wet)))
    :effect (and (at ?p ?s) (free) (not (carrying ?p)) (not (empty ?s)))))
""")
OBJECTS = {"p1": "parcel", "p2": "parcel", "s1": "spot", "s2": "spot"}


def facts(text: str) -> Facts:
    """Facts such as `at p1 s1, free`."""
    words = (part.split() for part in text.split(",") if part.strip())
    return frozenset(Atom(predicate, tuple(terms)) for predicate, *terms in words)


CARRIED = "carrying p1, lying p2, empty s1, empty s2"


@pytest.mark.parametrize(
    ("before", "after", "action", "lacks"),
    [
        (
            CARRIED,
            "at p1 s2, lying p2, empty s1, empty s2, free",
            Action("put", ("p1", "s2")),
            "empty(s2) did not become false",
        ),
        (
            CARRIED,
            "at p1 s2, lying p2, empty s1",
            Action("put", ("p1", "s2")),
            "free() did not become true",
        ),
        (
            "carrying p1, lying p2, empty s1",
            "at p1 s2, lying p2, empty s1, free",
            Action("put", ("p1", "s2")),
            "empty(s2) did not hold before",
        ),
        (
            CARRIED + ", wet",
            "at p1 s2, lying p2, empty s1, free, wet",
            Action("put", ("p1", "s2")),
            "wet() held before",
        ),
        (
            "free, lying p1, lying p2, empty s1, empty s2",
            "carrying p2, lying p1, empty s1",
            Action("pick", ("p2",)),
            "empty(s2) changed as well",
        ),
    ],
)
def test_the_nearest_action_and_what_it_lacks(before: str, after: str, action: Action, lacks: str) -> None:
    found = nearest_action(DOMAIN, facts(before), facts(after), OBJECTS)
    assert found is not None
    assert (found.action.action, str(found.lacks)) == (action, lacks)
    assert how_it_differs(DOMAIN, action, facts(before), facts(after)) == lacks


def test_what_nature_chose_is_not_lacking() -> None:
    domain = parse_domain("""
    (define (domain dice) (:types die number) (:predicates (shows ?d - die ?n - number) (thrown ?d - die) (loud))
      (:action throw :parameters (?d - die) :effect (and (thrown ?d) (exists (?n - number) (shows ?d ?n)))))
    """)
    objects = {"d": "die", "two": "number", "six": "number"}
    found = nearest_action(domain, facts(""), facts("thrown d, shows d six, loud"), objects)
    assert found is not None
    assert str(found.lacks) == "loud() changed as well"


@pytest.mark.parametrize("after", [CARRIED + ", at p2 s1, wet", CARRIED + ", wet", CARRIED])
def test_no_action_is_near_to_what_none_has_a_part_in(after: str) -> None:
    assert nearest_action(DOMAIN, facts(CARRIED), facts(after), OBJECTS) is None

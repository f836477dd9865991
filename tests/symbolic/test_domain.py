"""Types, constants and what can be said of a domain as a whole."""

from __future__ import annotations

from bilevel.symbolic.domain import (
    NO_FACTS,
    Atom,
    Domain,
    Outcome,
    Parameter,
    Predicate,
    Schema,
)

TYPES = {"van": "vehicle", "vehicle": "object", "town": "object"}


def domain(*adds: Atom, parameter: str = "vehicle", **constants: str) -> Domain:
    """One action over a variable of the given type, with these effects."""
    at = Predicate("at", (Parameter("?v", "vehicle"), Parameter("?t", "town")))
    schema = Schema("go", (Parameter("?x", parameter),), NO_FACTS, (Outcome(frozenset(adds), NO_FACTS),))
    return Domain("d", {"at": at, "done": Predicate("done")}, {"go": schema}, TYPES, constants)


def test_subtypes_follow_the_hierarchy_up_to_object() -> None:
    kinds = domain()
    assert kinds.is_subtype("van", "van")
    assert kinds.is_subtype("van", "vehicle")
    assert kinds.is_subtype("van", "object")
    assert kinds.is_subtype("object", "object")
    assert not kinds.is_subtype("vehicle", "van")
    assert not kinds.is_subtype("van", "town")
    assert not kinds.is_subtype("object", "van")


def test_a_schema_is_deterministic_if_nature_has_nothing_to_choose() -> None:
    one, two = Outcome(NO_FACTS, NO_FACTS), Outcome(frozenset({Atom("done")}), NO_FACTS)
    drawn = Outcome(NO_FACTS, NO_FACTS, chosen=(Parameter("?c"),))
    assert Schema("a", (), NO_FACTS, (one,)).is_deterministic
    assert not Schema("a", (), NO_FACTS, (one, two)).is_deterministic
    assert not Schema("a", (), NO_FACTS, (drawn,)).is_deterministic
    assert domain().is_deterministic
    assert not Domain("d", {}, {"a": Schema("a", (), NO_FACTS, (drawn,))}).is_deterministic


def test_types_are_kept_if_effects_fit_the_predicates() -> None:
    at_home = Atom("at", ("?x", "home"))
    assert domain(at_home, home="town").keeps_types
    assert domain(at_home, parameter="van", home="town").keeps_types
    assert not domain(at_home, parameter="object", home="town").keeps_types
    assert not domain(at_home, home="vehicle").keeps_types


def test_constants_that_a_schema_mentions_are_named() -> None:
    assert domain(Atom("at", ("?x", "home")), home="town", away="town").named_constants == {"home"}
    assert domain(Atom("done"), home="town").named_constants == frozenset()

"""A learned domain is written with what was seen of it; what a user made of an earlier text stays."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.domain_learning.learned import Dropped, LearnedDomain
from bilevel.domain_learning.text import HEADER, domain_text
from bilevel.symbolic.domain import Atom, BadInput, Domain, Outcome, Parameter, Schema
from bilevel.symbolic.pddl import parse_domain, write_domain
from drawn_domains import domains

PATIENT = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

DOMAIN = parse_domain("""
(define (domain learned)
  (:types shirt line colour)
  (:predicates (free) (holding ?x0 - shirt) (torn ?x0 - shirt)
               (on ?x0 - shirt ?x1 - line) (hue ?x0 - shirt ?x1 - colour))
  (:action pick :parameters (?shirt - shirt) :precondition (free) :effect (and (holding ?shirt) (not (free))))
  (:action place :parameters (?shirt - shirt ?line - line) :precondition (holding ?shirt)
    :effect (and (on ?shirt ?line) (free) (not (holding ?shirt))))
  (:action wash :parameters (?shirt - shirt ?line - line) :precondition (and (holding ?shirt) (free))
    :effect (oneof (torn ?shirt) (exists (?colour - colour) (hue ?shirt ?colour))))
  (:event fall :parameters (?shirt - shirt ?line - line) :precondition (on ?shirt ?line)
    :effect (not (on ?shirt ?line))))
""")
COUNTS = {"pick": (12,), "place": (11,), "wash": (2, 1), "fall": (1,)}
LEARNED = LearnedDomain(DOMAIN, COUNTS, {"wash": ("?line",)}, (Dropped("torn(a), not free()", 2, 5, 31),))


def edited(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def without(learned: LearnedDomain, name: str) -> LearnedDomain:
    schemas = {each: schema for each, schema in learned.domain.schemas.items() if each != name}
    return replace(learned, domain=replace(learned.domain, schemas=schemas))


def with_condition(learned: LearnedDomain, name: str, *atoms: Atom) -> LearnedDomain:
    schema = replace(learned.domain.schemas[name], precondition=frozenset(atoms))
    return replace(learned, domain=replace(learned.domain, schemas={**learned.domain.schemas, name: schema}))


def test_counts_and_what_was_dropped_are_comments() -> None:
    text = domain_text(LEARNED)
    assert parse_domain(text) == DOMAIN
    assert text.startswith(HEADER + "(define (domain learned)\n")
    assert "\n  ;# seen 12 times\n  (:action pick\n" in text
    wash = ";# seen 3 times: outcome 1 2 times, outcome 2 once; the controls do not depend on ?line"
    assert f"\n  {wash}\n  (:action wash\n" in text
    assert "\n  ;# seen once\n  (:event fall\n" in text
    assert text.endswith(
        "\n\n;# Changes that were not taken for operators:\n"
        ";#   2 times, first in episode 5 at step 31: torn(a), not free()\n"
    )
    assert domain_text(LEARNED, text) == text


MINE = """\
    ; Laundry: what hangs on lines.
    (define (domain laundry) ; mine
      (:requirements :strips :typing :non-deterministic)
      (:types shirt line colour)  ; of objects
      (:predicates
        (free)  ; the hand
        (holding ?s - shirt) (on ?s - shirt ?l - line) (hue ?s - shirt ?c - colour) (torn ?s - shirt))

      ; Hanging comes first.
      (:action Hang ; with both hands
        :parameters (?l - line ?s - shirt)
        ; only then
        :precondition (holding ?s)
        :effect (and (on ?s ?l)  ; there
                     (free) (not (holding ?s))))  ; done

      (:action grab :parameters (?s - shirt) :precondition (free) :effect (and (not (free)) (holding ?s)))
      (:event gust :parameters (?l - line ?s - shirt) :precondition (on ?s ?l) :effect (not (on ?s ?l)))
      (:action dye
        :parameters (?s - shirt ?l - line)
        :precondition (and (holding ?s) (free))
        :effect (oneof (exists (?c - colour) (hue ?s ?c)) (torn ?s)))) ; the end
    ; goodbye
"""


def test_a_users_text_gets_counts_and_is_else_the_same() -> None:
    mine = dedent(MINE)
    text = domain_text(LEARNED, mine)
    assert re.sub(r"^ *;#.*\n", "", text, flags=re.M).rstrip() == mine.rstrip()
    assert "  ; Hanging comes first.\n  ;# seen 11 times\n  (:action Hang" in text
    dye = ";# seen 3 times: outcome 1 once, outcome 2 2 times; the controls do not depend on ?l"
    assert f"\n  {dye}\n  (:action dye\n" in text
    assert domain_text(LEARNED, text) == text
    assert domain_text(LEARNED, text.replace("\n", "\r\n")) == text


def test_new_conditions_stand_in_the_users_words_and_the_old_ones_are_told() -> None:
    former = domain_text(LEARNED, dedent(MINE))
    more = with_condition(LEARNED, "place", Atom("holding", ("?shirt",)), Atom("torn", ("?shirt",)))
    text = domain_text(more, former)
    changed = """\
        ; only then
        ; formerly :precondition (holding ?s)
        :precondition (and (holding ?s) (torn ?s))
    """
    old = """\
        ; only then
        :precondition (holding ?s)
    """
    assert text == former.replace(dedent(old).replace("\n", "\n    "), dedent(changed).replace("\n", "\n    "))
    assert domain_text(more, text) == text
    back = domain_text(LEARNED, text)
    assert "    ; formerly :precondition (and (holding ?s) (torn ?s))\n    :precondition (and (holding ?s))\n" in back
    assert back.count("formerly") == 1


def test_what_is_new_comes_last_under_a_name_of_its_own() -> None:
    former = edited(
        domain_text(without(LEARNED, "place")), ("(:action pick", "(:action place"), (")))\n\n;#", "))) ; end\n\n;#")
    )
    text = domain_text(LEARNED, former)
    domain = parse_domain(text)
    assert [*domain.schemas] == ["place", "wash", "place-2"]
    assert domain.schemas["place-2"] == replace(DOMAIN.schemas["place"], name="place-2")
    assert "(not (on ?shirt ?line)))) ; end\n\n  ;# seen 11 times\n  (:action place-2\n" in text
    assert domain_text(LEARNED, text) == text


def test_what_is_no_longer_seen_becomes_a_comment_unless_a_user_wrote_it() -> None:
    former = edited(domain_text(LEARNED), ("(:action wash", "(:action dye ; with care"))
    text = domain_text(without(LEARNED, "wash"), former)
    assert parse_domain(text).schemas.keys() == {"pick", "place"}
    assert (
        "\n  ; no longer seen:\n  ;   (:action dye ; with care\n  ;   :parameters (?shirt - shirt ?line - line)\n"
        in text
    )
    assert domain_text(without(LEARNED, "wash"), text) == text
    unmarked = re.sub(r"^ *;#.*\n", "", former, flags=re.M)
    kept = domain_text(without(LEARNED, "wash"), unmarked)
    assert "  ;# not seen in the demonstrations\n  (:action dye ; with care\n" in kept
    assert domain_text(without(LEARNED, "wash"), kept) == kept


def test_what_comes_last_can_become_a_comment() -> None:
    learned = replace(LEARNED, domain=replace(DOMAIN, events={}))
    text = domain_text(learned, domain_text(LEARNED))
    assert parse_domain(text) == learned.domain
    assert domain_text(learned, text) == text


def test_an_action_may_turn_out_to_be_an_event() -> None:
    former = edited(domain_text(LEARNED), ("(:event fall", "(:action drop"))
    text = domain_text(LEARNED, former)
    assert parse_domain(text).events["drop"] == replace(DOMAIN.events["fall"], name="drop")
    assert text == former.replace("(:action drop", "(:event drop")


def test_of_operators_with_the_same_effects_the_nearest_is_the_same() -> None:
    wet = replace(
        DOMAIN.schemas["pick"], name="pick-2", precondition=frozenset({Atom("free"), Atom("torn", ("?shirt",))})
    )
    domain = replace(DOMAIN, schemas={**DOMAIN.schemas, "pick-2": wet})
    both = replace(LEARNED, domain=domain, counts={**COUNTS, "pick-2": (7,)})
    former = edited(
        domain_text(both), ("(:action pick\n", "(:action take\n"), ("(:action pick-2\n", "(:action rescue\n")
    )
    assert domain_text(both, former) == former
    first = without(without(both, "pick"), "wash")
    assert "rescue" in parse_domain(domain_text(first, former)).schemas


def test_an_outcome_more_is_the_same_operator() -> None:
    former = edited(domain_text(LEARNED), ("(:action wash", "; of wool\n  (:action boil"))
    schema = DOMAIN.schemas["wash"]
    third = Outcome(frozenset({Atom("free")}), frozenset())
    more = replace(DOMAIN, schemas={**DOMAIN.schemas, "wash": replace(schema, outcomes=(third, *schema.outcomes))})
    text = domain_text(replace(LEARNED, domain=more, counts={**COUNTS, "wash": (4, 2, 1)}), former)
    assert parse_domain(text).schemas["boil"].outcomes == (*schema.outcomes, third)
    assert ";# seen 7 times: outcome 1 2 times, outcome 2 once, outcome 3 4 times" in text
    assert "; of wool" in text


def test_new_predicates_and_types_are_declared_and_old_ones_stay() -> None:
    former = edited(domain_text(LEARNED), ("    (free)\n", "    (free) ; hands\n    (dry ?s - shirt)\n"))
    sock = Domain("x", {"wet": replace(DOMAIN.predicates["torn"], name="wet")}, {}, {"sock": "object"})
    more = replace(DOMAIN, types={**DOMAIN.types, **sock.types}, predicates={**DOMAIN.predicates, **sock.predicates})
    text = domain_text(replace(LEARNED, domain=more), former)
    found = parse_domain(text)
    assert {"dry", "wet", "free"} <= found.predicates.keys()
    assert "sock" in found.types
    assert "; hands" in text
    assert domain_text(replace(LEARNED, domain=more), text) == text


def test_a_former_text_that_is_no_domain_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^mine.pddl:1:1: this '\(' is never closed"):
        domain_text(LEARNED, "(define (domain d)", "mine.pddl")


def renamed(schema: Schema) -> Schema:
    """The schema, called otherwise, with all its variables."""
    names = {p.name: f"{p.name}-mine" for p in (*schema.parameters, *(v for o in schema.outcomes for v in o.chosen))}

    def facts(atoms: frozenset[Atom]) -> frozenset[Atom]:
        return frozenset(Atom(atom.predicate, tuple(names.get(term, term) for term in atom.terms)) for atom in atoms)

    outcomes = tuple(
        Outcome(
            facts(outcome.add),
            facts(outcome.delete),
            tuple(Parameter(names[variable.name], variable.type) for variable in outcome.chosen),
            frozenset(names[variable] for variable in outcome.new),
        )
        for outcome in schema.outcomes
    )
    parameters = tuple(Parameter(names[p.name], p.type) for p in schema.parameters)
    positive, negative = facts(schema.precondition), facts(schema.negative_precondition)
    return Schema(f"{schema.name}-mine", parameters, positive, outcomes, negative)


@PATIENT
@given(domains(), st.data())
def test_learning_again_from_the_same_data_changes_nothing(domain: Domain, data: st.DataObject) -> None:
    schemas = {**domain.schemas, **domain.events}
    counts = {name: tuple(data.draw(st.integers(1, 9)) for _ in each.outcomes) for name, each in schemas.items()}
    learned = LearnedDomain(domain, counts, {}, ())
    text = domain_text(learned)
    assert parse_domain(text) == domain
    assert domain_text(learned, text) == text
    mine = replace(
        domain,
        name="mine",
        schemas={f"{name}-mine": renamed(schema) for name, schema in domain.schemas.items()},
        events={f"{name}-mine": renamed(event) for name, event in domain.events.items()},
    )
    lines = write_domain(mine).splitlines()
    commented = "\n".join(f"{line} ; comment {number}" for number, line in enumerate(lines))
    again = domain_text(learned, commented)
    found = parse_domain(again)
    assert found.schemas.keys() == mine.schemas.keys()
    assert found.events.keys() == mine.events.keys()
    assert all(f"; comment {number}\n" in again for number in range(len(lines)))
    assert domain_text(learned, again) == again

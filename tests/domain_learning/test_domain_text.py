"""A learned domain is written with what was seen of it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.domain_learning.operators import HEADER, Dropped, LearnedDomain
from bilevel.symbolic.domain import Domain
from bilevel.symbolic.pddl import parse_domain
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


def test_counts_and_what_was_dropped_are_comments() -> None:
    text = LEARNED.text
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


@PATIENT
@given(domains(), st.data())
def test_the_text_of_any_domain_is_that_domain(domain: Domain, data: st.DataObject) -> None:
    schemas = {**domain.schemas, **domain.events}
    counts = {name: tuple(data.draw(st.integers(1, 9)) for _ in each.outcomes) for name, each in schemas.items()}
    assert parse_domain(LearnedDomain(domain, counts, {}, ()).text) == domain

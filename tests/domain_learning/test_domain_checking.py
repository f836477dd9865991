"""A domain is compared with episodes: a right one is confirmed, and of a wrong one the report names what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest
from acted_episodes import still_episode

from bilevel.domain_learning.changes import ShownEpisode
from bilevel.domain_learning.check import DomainReport, Finding, check_domain
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.symbolic.semantics import ground, progress

LAUNDRY = """
(define (domain laundry)
  (:types shirt line)
  (:predicates (free) (lying ?s - shirt) (holding ?s - shirt) (on ?s - shirt ?l - line) (empty ?l - line)
               (dirty ?s - shirt) (clean ?s - shirt) (torn ?s - shirt))
  (:action grab :parameters (?s - shirt)
    :precondition (and (free) (lying ?s))
    :effect (and (holding ?s) (not (free)) (not (lying ?s))))
  (:action wash :parameters (?s - shirt)
    :precondition (and (holding ?s) (dirty ?s))
    :effect (and (clean ?s) (not (dirty ?s))))
  (:action hang :parameters (?s - shirt ?l - line)
    :precondition (and (holding ?s) (clean ?s) (empty ?l))
    :effect (and (on ?s ?l) (free) (not (holding ?s)) (not (empty ?l))))
  (:event soil :parameters (?s - shirt)
    :precondition (and (lying ?s) (clean ?s))
    :effect (and (dirty ?s) (not (clean ?s)))))
"""
OBJECTS = {"s1": "shirt", "s2": "shirt", "s3": "shirt", "l1": "line", "l2": "line", "l3": "line"}
FIRST = "free, lying s1, lying s2, lying s3, dirty s1, clean s2, dirty s3, empty l1, empty l2, empty l3"
PLAN = "grab s1, wash s1, hang s1 {0}, soil s2, grab s3, wash s3, hang s3 {1}, grab s2, wash s2, hang s2 {2}"
LASTING = 10  # steps of each state


def facts(text: str) -> Facts:
    """Facts such as `on s1 l1, free`."""
    return frozenset(Atom(name, tuple(terms)) for name, *terms in map(str.split, text.split(",")))


def states(plan: str) -> Iterator[Facts]:
    """What comes of the actions and events of a plan."""
    domain = parse_domain(LAUNDRY)
    state = facts(FIRST)
    yield state
    for name, *arguments in map(str.split, plan.split(",")):
        action = ground({**domain.schemas, **domain.events}[name], tuple(arguments))
        assert action is not None
        assert action.condition.holds(state)
        state = progress(state, action.outcomes[0])
        yield state


def episodes(number: int = 6) -> Iterator[ShownEpisode]:
    for seed in range(number):
        lines = Random(seed).sample(["l1", "l2", "l3"], 3)
        lasting = [state for state in states(PLAN.format(*lines)) for _ in range(LASTING)]
        yield still_episode(lasting, OBJECTS)


def check(domain: str, seen: Iterable[ShownEpisode]) -> DomainReport:
    return check_domain(parse_domain(domain), enumerate(seen))


def report_of(old: str = "", new: str = "", number: int = 6) -> DomainReport:
    """What is said of the domain with one part of its text replaced."""
    assert LAUNDRY.count(old) == 1 or not old
    return check(LAUNDRY.replace(old, new) if old else LAUNDRY, episodes(number))


def test_a_right_domain_explains_every_change() -> None:
    report = report_of()
    assert report.fits
    assert (report.episodes, report.steps, report.changes) == (6, 654, 60)
    assert report.actions == {"grab": 18, "wash": 18, "hang": 18}
    assert report.events == {"soil": 6}
    first = report.by_event[0]
    assert (first.change, first.episode, first.step) == ("+dirty(?shirt) -clean(?shirt)", 0, 4 * LASTING)
    assert (first.first, first.actions) == ("+dirty(s2) -clean(s2)", ("soil(s2)",))
    assert not report.contradicted
    assert not any(finding.is_wrong for finding in report.findings)


PICKED, WASHED, HUNG = LASTING, 2 * LASTING, 3 * LASTING


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "(and (free) (lying ?s))\n",
            "(and (free) (lying ?s) (torn ?s))\n",
            Finding("grab", "contradicted precondition", "torn(?s)", 18, 18, 0, PICKED),
            id="superfluous precondition",
        ),
        pytest.param(
            "(and (free) (lying ?s))\n",
            "(and (free) (lying ?s) (dirty ?s) (not (clean ?s)))\n",
            Finding("grab", "untested precondition", "not clean(?s)"),
            id="precondition that follows from another",
        ),
        pytest.param(
            "(and (holding ?s) (dirty ?s))",
            "(and (holding ?s) (dirty ?s) (not (free)))",
            Finding("wash", "untested precondition", "not free()"),
            id="precondition that never matters",
        ),
        pytest.param(
            "(clean ?s) (empty ?l))\n",
            "(empty ?l))\n",
            Finding("hang", "possible precondition", "clean(?s)", 0, 18),
            id="missing precondition",
        ),
        pytest.param(
            "(on ?s ?l) (free) (not (holding ?s)) (not (empty ?l))",
            "(on ?s ?l) (not (holding ?s)) (not (empty ?l))",
            Finding("hang", "unlisted effect", "free()", 18, 18, 0, HUNG),
            id="missing effect",
        ),
        pytest.param(
            "(holding ?s) (not (free)) (not (lying ?s))",
            "(holding ?s) (not (free))",
            Finding("grab", "unlisted effect", "not lying(?s)", 18, 18, 0, PICKED),
            id="missing deletion",
        ),
        pytest.param(
            "(and (clean ?s) (not (dirty ?s))",
            "(and (clean ?s) (torn ?s) (not (dirty ?s))",
            Finding("wash", "missing effect", "torn(?s)", 18, 18, 0, WASHED),
            id="effect that never comes",
        ),
        pytest.param(
            "(and (clean ?s) (not (dirty ?s))",
            "(and (clean ?s) (not (dirty ?s)) (not (torn ?s))",
            Finding("wash", "unseen effect", "not torn(?s)", 0, 18),
            id="effect that cannot be seen",
        ),
        pytest.param(
            "(and (clean ?s) (not (dirty ?s))",
            "(and (lying ?s) (not (dirty ?s))",
            Finding("wash", "missing effect", "lying(?s)", 18, 18, 0, WASHED),
            id="wrong effect",
        ),
        pytest.param(
            "(and (clean ?s) (not (dirty ?s))",
            "(oneof (and (clean ?s) (not (dirty ?s))) (torn ?s)",
            Finding("wash", "outcome never seen", "torn(?s)", 0, 18),
            id="outcome that never comes",
        ),
        pytest.param(
            "(:event",
            "(:action mend :parameters (?s - shirt) :precondition (torn ?s) :effect (not (torn ?s))) (:event",
            Finding("mend", "never seen"),
            id="action that is never done",
        ),
    ],
)
def test_what_is_wrong_or_not_confirmed_is_named(old: str, new: str, expected: Finding) -> None:
    report = report_of(old, new)
    assert expected in report.findings
    assert expected not in report_of().findings
    assert expected.is_wrong == bool(report.contradicted) == (not report.fits)
    assert [finding.is_wrong for finding in report.findings] == sorted(
        (finding.is_wrong for finding in report.findings), reverse=True
    )


def test_an_effect_that_comes_sometimes_is_told_with_how_often() -> None:
    often = [*episodes(5)]
    rare = [state - {Atom("clean", ("s1",))} for state in often[0].states]
    report = check(LAUNDRY, [*often, still_episode(rare[: WASHED + LASTING], OBJECTS)])
    (finding,) = (each for each in report.findings if each.is_wrong)
    assert (finding.sort, finding.what, finding.count, finding.of) == ("missing effect", "clean(?s)", 1, 16)
    assert (finding.episode, finding.step) == (5, WASHED)


def test_an_event_is_no_action() -> None:
    report = report_of("(:event soil", "(:action soil")
    assert report.actions["soil"] == 6
    without = check(LAUNDRY.split("(:event")[0] + ")", episodes())
    assert not without.fits
    (kind,) = without.contradicted
    assert (kind.change, kind.count, kind.nearest) == ("+dirty(?shirt) -clean(?shirt)", 6, None)
    assert not [finding for finding in without.findings if finding.is_wrong]  # it is nobody's effect


def test_what_happens_at_the_same_step_is_taken_apart() -> None:
    first = facts("free, lying s1, lying s2, lying s3, clean s1, clean s2, clean s3")
    grabbed = (first - facts("free, lying s1, clean s2, clean s3")) | facts("holding s1, dirty s2, dirty s3")
    report = check(LAUNDRY, [still_episode([first] * LASTING + [grabbed] * LASTING, OBJECTS)])
    (kind,) = report.by_event
    assert kind.actions == ("soil(s2)", "soil(s3)", "grab(s1)")
    assert (report.changes, report.actions["grab"], report.events["soil"]) == (1, 1, 2)
    assert report.fits


def test_what_arrives_now_and_then_is_no_effect() -> None:
    runs = [*episodes(5)]
    arriving = [
        state if step < PICKED else state | facts("lying s4, torn s4") for step, state in enumerate(runs[0].states)
    ]
    report = check(LAUNDRY, [*runs, still_episode(arriving, {**OBJECTS, "s4": "shirt"})])
    assert sum(kind.count for kind in report.contradicted) == 1
    assert not any(finding.is_wrong for finding in report.findings)


def test_what_several_actions_explain_is_ambiguous() -> None:
    report = report_of(
        "(:event", "(:action rinse :parameters (?s - shirt) :effect (and (clean ?s) (not (dirty ?s)))) (:event"
    )
    (kind,) = report.ambiguous
    assert (kind.count, kind.actions) == (18, ("rinse(s1)", "wash(s1)"))
    assert report.fits
    assert Finding("rinse", "never seen", count=18) in report.findings


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(dirty ?s - shirt) ", ""),
        ("(on ?s - shirt ?l - line)", "(on ?s - shirt)"),
        ("(on ?s - shirt ?l - line)", "(on ?s - shirt ?l - shirt)"),
    ],
)
def test_labels_that_the_domain_does_not_declare_are_refused(old: str, new: str) -> None:
    text = LAUNDRY.split("(:action")[0].replace(old, new) + "(:action rest))"
    with pytest.raises(BadInput, match=r"^episode 0, step \d+: the label (dirty|on)\(.*none that the domain 'laundry'"):
        check(text, episodes(2))


def test_flickers_and_settling_are_no_contradictions() -> None:
    lasting = next(episodes(1)).states
    flicker = lasting[3] - {Atom("free")}
    late = lasting[PICKED] | {Atom("free")}
    seen = [*lasting[:3], flicker, flicker, *lasting[5:PICKED], late, late, *lasting[PICKED + 2 :]]
    report = check(LAUNDRY, [still_episode(seen, OBJECTS)])
    assert report.fits
    assert (report.changes, report.settled, sum(kind.count for kind in report.flickers)) == (10, 1, 1)


def test_objects_that_are_not_there_yet_test_nothing() -> None:
    """Before it appears, nothing can be said of the third shirt: not even that it does not lie there."""
    domain = parse_domain(
        "(define (domain d) (:types t) (:predicates (p ?x - t) (q ?x - t))"
        " (:action a :parameters (?x - t) :precondition (p ?x) :effect (q ?x)))"
    )
    first, second = facts("p a"), facts("p a, q a")
    later = second | facts("p b, q b")
    run = [state for state in (first, second, later) for _ in range(LASTING)]
    report = check_domain(domain, [(0, still_episode(run, {"a": "t", "b": "t"}))])
    assert Finding("a", "untested precondition", "p(?x)") in report.findings


def test_a_domain_without_actions_and_one_in_adl_are_refused() -> None:
    with pytest.raises(BadInput, match="domain 'laundry' has no actions to check"):
        check(LAUNDRY.split("(:action")[0] + ")", episodes())
    with pytest.raises(BadInput, match="domain 'laundry' is in ADL"):
        check_domain(replace(parse_domain(LAUNDRY), adl="(define ...)"), [])

"""Applicability, successors and regression have the properties that define them."""

from __future__ import annotations

from itertools import product
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bilevel.symbolic.domain import (
    EQUALITY,
    NO_FACTS,
    Action,
    Atom,
    BadInput,
    Domain,
    Facts,
    Outcome,
    Parameter,
    Schema,
)
from bilevel.symbolic.semantics import (
    Condition,
    GroundAction,
    ground,
    ground_action,
    progress,
    regress,
)

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

T = TypeVar("T")

PREDICATES = {"p": 0, "q": 1, "r": 2}
OBJECTS = ("a", "b", "c")


def atoms(terms: tuple[str, ...], equality: bool = False) -> st.SearchStrategy[Atom]:
    predicates = PREDICATES | ({EQUALITY: 2} if equality else {})
    return st.sampled_from([Atom(name, ts) for name, n in predicates.items() for ts in product(terms, repeat=n)])


def sets_of(elements: st.SearchStrategy[T]) -> st.SearchStrategy[frozenset[T]]:
    return st.frozensets(elements, max_size=5)


TERMS = ("?x", "?y", "a")
FACTS = sets_of(atoms(OBJECTS))
CONDITIONS = st.builds(Condition, FACTS, FACTS)
OUTCOMES = st.builds(Outcome, sets_of(atoms(TERMS)), sets_of(atoms(TERMS)))
SCHEMAS = st.builds(
    lambda precondition, negative, outcomes: Schema(
        "act", (Parameter("?x"), Parameter("?y")), precondition, tuple(outcomes), negative
    ),
    sets_of(atoms(TERMS, equality=True)),
    sets_of(atoms(TERMS, equality=True)),
    st.lists(OUTCOMES, min_size=1, max_size=3),
)


@st.composite
def applicable_actions(draw: st.DrawFn) -> tuple[Facts, GroundAction]:
    """A state and an action that can be done in it; the state is made to fit the action."""
    action = ground(draw(SCHEMAS), (draw(st.sampled_from(OBJECTS)), draw(st.sampled_from(OBJECTS))))
    assume(action is not None)
    assert action is not None
    state = (draw(FACTS) | action.condition.positive) - action.condition.negative
    assume(action.condition.holds(state))
    return state, action


@PATIENT
@given(applicable_actions(), CONDITIONS)
def test_where_the_regressed_condition_holds_the_action_brings_the_condition_about(
    case: tuple[Facts, GroundAction], condition: Condition
) -> None:
    state, action = case
    for outcome in action.outcomes:
        before = regress(condition, action, outcome)
        if before is not None:
            if before.holds(state):
                assert condition.holds(progress(state, outcome))
            # The state that barely meets the regressed condition will do too.
            assert action.condition.holds(before.positive)
            assert condition.holds(progress(before.positive, outcome))


@PATIENT
@given(applicable_actions(), st.data())
def test_the_regressed_condition_is_the_weakest(case: tuple[Facts, GroundAction], data: st.DataObject) -> None:
    state, action = case
    outcome = data.draw(st.sampled_from(action.outcomes))
    after = progress(state, outcome)
    positive = data.draw(st.frozensets(st.sampled_from(sorted(after)))) if after else NO_FACTS
    condition = Condition(positive, data.draw(FACTS) - after)
    before = regress(condition, action, outcome)
    assert before is not None
    assert before.holds(state)


NOTHING = Outcome(NO_FACTS, NO_FACTS)


def test_an_action_that_a_user_names_must_fit() -> None:
    different = frozenset({Atom(EQUALITY, ("?x", "?y"))})
    act = Schema("act", (Parameter("?x"), Parameter("?y")), NO_FACTS, (NOTHING,), different)
    domain = Domain("d", {}, {"act": act, "rest": Schema("rest", (), NO_FACTS, (NOTHING,))})
    assert ground_action(domain, Action("act", ("a", "b"))).action == Action("act", ("a", "b"))
    with pytest.raises(BadInput, match="unknown action 'run'; known actions: act, rest"):
        ground_action(domain, Action("run"))
    with pytest.raises(BadInput, match="needs 2 arguments, not 1"):
        ground_action(domain, Action("act", ("a",)))
    with pytest.raises(BadInput, match=r"\(in\)equality"):
        ground_action(domain, Action("act", ("a", "a")))
    with pytest.raises(BadInput, match="action 'act\\(a, b\\)' cannot be done: there is no object 'b'"):
        ground_action(domain, Action("act", ("a", "b")), {"a": "object"})

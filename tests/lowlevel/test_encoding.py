"""What the network is told, number by number, for a world of the test's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilevel.lowlevel.encoding import agent_state, encoding_of, object_states, placed_rows
from bilevel.symbolic.domain import NO_FACTS, Action, Atom, Domain, Facts, Outcome, Parameter, Predicate, Schema
from bilevel.tabletop.observation import FEATURES, RGB, Array, Slots, slots


def predicate(name: str, arity: int) -> Predicate:
    return Predicate(name, tuple(Parameter(f"?{index}") for index in range(arity)))


def schema(name: str, arity: int) -> Schema:
    return Schema(name, predicate(name, arity).parameters, NO_FACTS, (Outcome(NO_FACTS, NO_FACTS),))


PREDICATES = [predicate("wet", 1), predicate("raining", 0), predicate("next-to", 2), predicate("dry", 1)]
SCHEMAS = [schema("wipe", 1), schema("dip", 3)]
DOMAIN = Domain("laundry", {p.name: p for p in PREDICATES}, {s.name: s for s in SCHEMAS})
ENCODING = encoding_of(DOMAIN)

SLOTS = slots({"block": ["sock"], "button": ["tap"], "colour": ["pink"]})
AGENT = np.array([0.1, 0.5, 0.2, 0.75], np.float32)
SOCK, TAP, PINK = range(3)


def facts(*atoms: tuple[str, ...]) -> Facts:
    return frozenset(Atom(name, tuple(terms)) for name, *terms in atoms)


def seen() -> Array:
    """A sock to the right, a tap above that is half turned, and a colour, which is nowhere."""
    objects = np.zeros((3, len(FEATURES)), np.float32)
    for row, features in {
        SOCK: {"x": 0.3, "y": 0.5, "z": 0.02, "red": 1.0, "serial": 4.0},
        TAP: {"x": 0.1, "y": 0.6, "z": 0.5, "travel": 0.05},
        PINK: {"red": 1.0, "blue": 0.7, "wanted": 1.0},
    }.items():
        for name, value in features.items():
            objects[row, FEATURES.index(name)] = value
    return objects


# What there is


def test_names_are_sorted_by_the_number_of_their_arguments() -> None:
    assert (ENCODING.nullary, ENCODING.unary) == (("raining",), ("dry", "wet"))
    assert (ENCODING.schemas, ENCODING.arity) == (("dip", "wipe"), 3)
    assert (ENCODING.global_size, ENCODING.object_size) == (2 + 2, 4 + 4 + 3)


def test_the_order_in_a_domain_does_not_matter() -> None:
    predicates = {p.name: p for p in reversed(PREDICATES)}
    schemas = {s.name: s for s in reversed(SCHEMAS)}
    turned = replace(DOMAIN, predicates=predicates, schemas=schemas)
    assert encoding_of(turned) == ENCODING


# Facts


@pytest.mark.parametrize(
    ("state", "goal", "numbers"),
    [
        (facts(), facts(), [0, 0]),
        (facts(("raining",)), facts(), [1, 0]),
        (facts(("wet", "sock")), facts(("raining",), ("dry", "sock")), [0, 1]),
    ],
)
def test_facts_without_arguments_of_state_then_goal(state: Facts, goal: Facts, numbers: list[int]) -> None:
    assert ENCODING.global_facts(state, goal).tolist() == numbers


def test_facts_about_each_argument_and_its_position() -> None:
    state = facts(("wet", "sock"), ("dry", "tap"), ("next-to", "sock", "tap"), ("wet", "other"))
    goal = facts(("dry", "sock"), ("wet", "pink"))
    rows = ENCODING.object_facts(state, goal, Action("dip", ("tap", "sock", "pink")))
    assert rows.dtype == np.float32
    assert rows.tolist() == [
        # dry, wet in the state; dry, wet in the goal; which argument
        [1, 0, 0, 0, 1, 0, 0],
        [0, 1, 1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0, 0, 1],
    ]


def test_an_action_with_fewer_arguments_has_its_last_again_and_again() -> None:
    rows = ENCODING.object_facts(facts(("wet", "sock")), facts(), Action("wipe", ("sock",)))
    assert rows.tolist() == [[0, 1, 0, 0, 1, 0, 0]] * 3
    assert ENCODING.padded(["a", "b"]) == ["a", "b", "b"]
    assert ENCODING.padded(["a", "b", "c"]) == ["a", "b", "c"]


def test_an_action_without_arguments_has_no_rows() -> None:
    resting = replace(DOMAIN, schemas={**DOMAIN.schemas, "rest": schema("rest", 0)})
    encoding = encoding_of(resting)
    assert encoding == replace(ENCODING, schemas=("dip", "rest", "wipe"), bare=("rest",))
    assert encoding.object_facts(facts(("wet", "sock")), facts(), Action("rest")).shape == (0, 7)
    assert encoding.padded([]) == []


def test_where_no_action_has_arguments_there_is_room_for_one() -> None:
    encoding = encoding_of(replace(DOMAIN, schemas={"rest": schema("rest", 0)}))
    assert (encoding.arity, encoding.object_size) == (1, 4 + 4 + 1)


# States


def test_of_the_hand_height_and_opening_are_told() -> None:
    assert agent_state(AGENT) == pytest.approx([2.0, 1.5])
    assert agent_state(np.stack([AGENT, 2 * AGENT])) == pytest.approx(np.array([[2.0, 1.5], [4.0, 3.0]]))


def test_objects_are_seen_from_the_hand_in_decimetres() -> None:
    states = object_states(AGENT, seen(), placed_rows(SLOTS))
    assert states.dtype == np.float32
    assert states[SOCK] == pytest.approx([2.0, 0.0, -1.8, 0.0], abs=1e-6)
    assert states[TAP] == pytest.approx([0.0, 1.0, 3.0, 0.5], abs=1e-6)


def test_what_has_no_place_is_all_zeros() -> None:
    assert placed_rows(SLOTS).tolist() == [1, 1, 0]
    assert object_states(AGENT, seen(), placed_rows(SLOTS))[PINK].tolist() == [0, 0, 0, 0]
    assert placed_rows(Slots()).tolist() == []


def test_many_steps_at_once_give_the_same_as_each_of_them() -> None:
    agents = np.stack([AGENT, AGENT[[1, 0, 2, 3]]])
    objects = np.stack([seen(), 2 * seen()])
    placed = placed_rows(SLOTS)
    together = object_states(agents, objects, placed)
    assert together.shape == (2, 3, 4)
    for step in range(2):
        assert np.array_equal(together[step], object_states(agents[step], objects[step], placed))


COLOURS = st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3)


@given(COLOURS)
def test_colours_change_nothing(rgb: list[float]) -> None:
    painted = seen()
    painted[:, RGB] = rgb
    placed = placed_rows(SLOTS)
    assert np.array_equal(object_states(AGENT, painted, placed), object_states(AGENT, seen(), placed))


METRES = st.floats(-1, 1, width=32)


@given(METRES, METRES)
def test_it_does_not_matter_where_on_the_table_something_happens(x: float, y: float) -> None:
    offset = np.array([x, y, 0], np.float32)
    agent, objects, placed = AGENT.copy(), seen(), placed_rows(SLOTS)
    agent[:3] += offset
    objects[:PINK, :3] += offset  # a colour is nowhere
    assert np.array_equal(agent_state(agent), agent_state(AGENT))
    assert object_states(agent, objects, placed) == pytest.approx(object_states(AGENT, seen(), placed), abs=1e-5)


@given(METRES.filter(lambda z: abs(z) > 1e-3))
def test_it_does_matter_how_high(z: float) -> None:
    raised = AGENT + np.array([0, 0, z, 0], np.float32)
    assert agent_state(raised)[0] != agent_state(AGENT)[0]

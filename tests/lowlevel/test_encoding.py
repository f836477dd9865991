"""What the network is told, number by number, for a task of the test's own."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, pi, sin
from typing import TypeVar

import numpy as np
import pytest

from bilevel.lowlevel.encoding import Encoding, FeatureEncoder, encoding_of
from bilevel.lowlevel.network import GraphNetwork, weights_of
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.symbolic.pddl import parse_domain
from bilevel.tasks.controls import BoxControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Angle, Features, LabelOnly, Position, Scalar, Spec

Value = TypeVar("Value")

DOMAIN = parse_domain("""
(define (domain laundry)
  (:requirements :strips :typing)
  (:types sock line)
  (:constants floor - line)
  (:predicates (wet ?s - sock) (raining) (hangs ?s - sock ?l - line) (dry ?s - sock))
  (:action wipe :parameters (?s - sock) :precondition (wet ?s) :effect (dry ?s))
  (:action hang :parameters (?s ?t - sock ?l - line) :precondition (wet ?s) :effect (hangs ?s ?l)))
""")
SOCK: Features = {"x": Position, "y": Position, "yaw": Angle(symmetry=2), "red": LabelOnly}
LINE: Features = {"x": Position(absolute=True), "left": Position(along="y"), "tight": Scalar}
AGENT: Features = {"x": Position, "y": Position(absolute=True), "yaw": Angle, "grip": Scalar, "mood": LabelOnly}
SPEC = Spec(AGENT, {"sock": SOCK, "line": LINE})
ENCODING = encoding_of(DOMAIN, SPEC)


def scene(spec: Spec = SPEC) -> Scene:
    """With zeros for whatever else a spec has."""
    agent = {"x": 1.0, "y": 2.0, "yaw": 0.5, "grip": 0.25}
    sock, line = {"x": 4.0, "y": 6.0, "yaw": 0.75, "red": 9.0}, {"x": 0.5, "left": 5.0, "tight": 0.125}
    objects = {
        kind: {name: {feature: values.get(feature, 0.0) for feature in spec.objects[kind]}}
        for kind, name, values in (("sock", "sock1", sock), ("line", "line1", line))
    }
    return Scene(spec, {feature: agent.get(feature, 0.0) for feature in spec.agent}, objects)


def facts(*atoms: tuple[str, ...]) -> Facts:
    return frozenset(Atom(name, tuple(terms)) for name, *terms in atoms)


def reverse(mapping: Mapping[str, Value]) -> dict[str, Value]:
    return dict(reversed(list(mapping.items())))


def told(spec: Spec, label_only: bool = False) -> dict[str, list[float]]:
    """What is told of each object."""
    seen, encoder = scene(spec), FeatureEncoder(spec, label_only)
    mask = encoder.mask(list(seen.objects.values()))
    rows = encoder.objects(seen.values, seen.features, mask)
    return dict(zip(seen.objects, rows.round(5).tolist(), strict=True))


# Features


def test_features_are_told_in_their_roles() -> None:
    angle = [round(f(2 * 0.25), 5) for f in (sin, cos)]
    # x, y, yaw of socks; x relative and absolute, left along y, tight of lines
    assert told(SPEC) == {
        "sock1": pytest.approx([3, 4, *angle, 0, 0, 0, 0], abs=1e-4),
        "line1": pytest.approx([0, 0, 0, 0, -0.5, 0.5, 3, 0.125], abs=1e-4),
    }
    agent = FeatureEncoder(SPEC).agent(scene().values)
    assert agent.tolist() == pytest.approx([2, 0.25, sin(0.5), cos(0.5)])


def test_without_labels_the_features_for_labels_are_told_too() -> None:
    assert told(Spec({"x": Position}, {"sock": {"red": LabelOnly}, "line": {"x": LabelOnly(None)}})) == {
        "sock1": [],
        "line1": [],
    }
    both = Spec({"x": Position}, {"sock": {"red": LabelOnly}, "line": {"x": LabelOnly(Position())}})
    assert told(both, label_only=True) == {"sock1": [9, 0], "line1": [0, -0.5]}


def test_in_a_frame_positions_are_told_as_the_agent_sees_them() -> None:
    """Facing 90 degrees to the left, what was 4 farther along y is 4 ahead."""
    objects: dict[str, Features] = {
        "sock": {"x": Position, "y": Position},
        "line": {"y": Position, "x": Position(absolute=True)},
    }
    spec = Spec({"x": Position, "y": Position, "yaw": Angle}, objects, ("x", "y", "yaw"))
    encoder = FeatureEncoder(spec)
    features = np.zeros((2, 2), np.float32)
    features[:, spec.column["x"]], features[:, spec.column["y"]] = (4, 0.5), (6, 2)
    agent = np.array([1, 2, pi / 2], np.float32)
    rows = encoder.objects(agent, features, encoder.mask(["sock", "line"]))
    # x and y of socks, of which lines share the y; x of lines, relative and absolute
    assert rows == pytest.approx(np.array([[4, -3, 0, 0], [0, 0.5, 0, 0.5]]), abs=1e-5)


def test_many_steps_at_once_give_the_same_as_each_of_them() -> None:
    spec = Spec(AGENT, {"sock": SOCK, "line": {"left": Position(along="y"), "tight": Scalar}}, ("x", "y", "yaw"))
    rng, encoder = np.random.default_rng(0), FeatureEncoder(spec)
    values = rng.normal(size=(5, len(spec.agent))).astype(np.float32)
    features = rng.normal(size=(5, 3, len(spec.columns))).astype(np.float32)
    mask = encoder.mask(["sock", "sock", "line"])
    together = encoder.objects(values, features, mask)
    for step in range(5):
        assert np.array_equal(together[step], encoder.objects(values[step], features[step], mask))
        assert np.array_equal(encoder.agent(values)[step], encoder.agent(values[step]))


# Facts


def test_a_constant_need_not_be_seen() -> None:
    rows, mask = ENCODING.arguments(scene(), Action("hang", ("sock1", "sock1", "floor")))
    assert (rows, mask[2].any()) == ([0, 0, -1], False)


# Other specs


def accepts(spec: Spec) -> Encoding:
    """The encoding for another spec, whose network answers as before."""
    controls = BoxControls([-1.0], [1.0], [1])
    weights = weights_of(GraphNetwork(ENCODING, controls, hidden=4))
    policy, action = NumpyNetwork(ENCODING, controls, weights, 2), Action("hang", ("sock1", "sock1", "line1"))
    answers = [policy.control(seen, facts(), facts(), action) for seen in (scene(), scene(spec), scene())]
    assert answers[0] == answers[1] == answers[2]
    return ENCODING.for_spec(spec)


def test_a_spec_that_differs_in_what_is_not_told_is_accepted() -> None:
    more = Spec({"new": LabelOnly, **AGENT}, {"sock": {"new": LabelOnly, **SOCK}, "line": {**LINE, "old": LabelOnly}})
    assert accepts(more).spec is more
    less = Spec({**AGENT}, {"sock": {name: role for name, role in SOCK.items() if name != "red"}, "line": LINE})
    assert accepts(less).features.layout == ENCODING.features.layout
    unseen = Spec(AGENT, {"peg": {"red": LabelOnly}, "sock": SOCK, "line": LINE})
    assert ENCODING.for_spec(unseen).features.layout == ENCODING.features.layout


def test_a_spec_in_another_order_is_accepted() -> None:
    accepts(Spec(reverse(AGENT), {"line": reverse(LINE), "sock": reverse(SOCK)}))


@pytest.mark.parametrize(
    "spec",
    [
        Spec(AGENT, {"sock": {**SOCK, "red": Scalar}, "line": LINE}),
        Spec(AGENT, {"sock": SOCK, "line": {**LINE, "tight": LabelOnly}}),
        Spec(AGENT, {"sock": {**SOCK, "yaw": Angle}, "line": LINE}),
        Spec({**AGENT, "grip": LabelOnly}, {"sock": SOCK, "line": LINE}),
        Spec(AGENT, {"sock": SOCK}),
        Spec(AGENT, {"sock": LINE, "line": SOCK}),
    ],
    ids=["more", "less", "another role", "another agent", "no such type", "other types"],
)
def test_a_spec_that_differs_in_what_is_told_is_refused(spec: Spec) -> None:
    with pytest.raises(
        BadInput, match="the scenes have other features, or in other roles, than those that the network"
    ):
        ENCODING.for_spec(spec)


def test_of_untold_parameters_nothing_is_told() -> None:
    """Neither where the argument is nor what is known of it makes a difference; which of the others is which does."""
    encoding = encoding_of(DOMAIN, Spec(AGENT, {"sock": SOCK, "line": LINE}, untold={"hang": ("?t",)}))
    seen, action = scene(encoding.spec), Action("hang", ("sock1", "nowhere", "line1"))
    rows, mask = encoding.arguments(seen, action)
    assert rows == [seen.roster.row[name] for name in ("sock1", "line1", "line1")]
    _, all_told = ENCODING.arguments(scene(), Action("hang", ("sock1", "sock1", "line1")))
    np.testing.assert_array_equal(mask, all_told[[0, 2, 2]])
    state = facts(("wet", "nowhere"), ("dry", "sock1"))
    told_facts = encoding.object_facts(state, frozenset(), action)
    numbers = told_facts[:, -3:].argmax(axis=1)
    assert numbers.tolist() == [0, 2, 2]
    np.testing.assert_array_equal(
        told_facts, encoding.object_facts(state - facts(("wet", "nowhere")), frozenset(), action)
    )


@pytest.mark.parametrize(
    ("untold", "message"),
    [
        ({"fold": ("?s",)}, "it has none"),
        ({"hang": ("?x",)}, "of its parameters in the domain 'laundry': \\?s, \\?t, \\?l"),
        ({"wipe": ("?s",)}, "some, and not all, of its parameters"),
    ],
)
def test_untold_parameters_must_be_those_of_the_domain(untold: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        encoding_of(DOMAIN, Spec(AGENT, {"sock": SOCK, "line": LINE}, untold=untold))

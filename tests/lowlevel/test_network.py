"""The network in torch and in NumPy: both are what the definition says, on random specs, domains and scenes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import Case, cases, random_scene

from bilevel.lowlevel.encoding import FeatureEncoder, encoding_of, turns
from bilevel.lowlevel.network import GraphNetwork, TorchNetwork, scales_of, weights_of
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.symbolic.domain import Action, BadInput
from bilevel.tasks.controls import BoxControls, DiscreteControls
from bilevel.tasks.scene import Scene
from bilevel.tasks.spec import Angle, Position, Scalar, Spec
from tiny_task import DOMAIN, SPEC

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

BOX = BoxControls([-1.0] * 3, [1.0] * 3, [3])


def agree(control: object, outputs: object, case: Case) -> bool:
    """Whether a control is the one that these outputs stand for; where two are as good, either."""
    controls = case.network.controls
    if isinstance(controls, DiscreteControls):
        best = np.sort(np.array(outputs, np.float32))
        return bool(best[-1] - best[-2] < 1e-3) or control == controls.decode(np.array(outputs, np.float32))
    return np.allclose(np.asarray(control), controls.decode(np.array(outputs, np.float32)), atol=1e-3)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_both_networks_are_what_the_definition_says(case: Case) -> None:
    slowly = case.ask_slowly()
    assert case.ask_torch() == pytest.approx(slowly, rel=1e-3, abs=1e-3)
    assert agree(case.numpy_network().control(case.scene, *case.situation), slowly, case)
    assert agree(TorchNetwork(case.network, case.weights).control(case.scene, *case.situation), slowly, case)


@given(cases(), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_a_policy_remembers_nothing_that_no_longer_holds(case: Case, seed: int) -> None:
    """It keeps what the symbols contribute, but only as long as they and the visible objects last."""
    rng = np.random.default_rng(seed)
    state, goal, action = case.situation
    same = {kind: len(case.scene.roster.of_type(kind)) for kind in ("cube", "spot")}
    more = {kind: count + 1 for kind, count in same.items()}
    scenes = [case.scene, *(random_scene(rng, case.scene.spec, counts) for counts in (same, more, same))]
    policy = case.numpy_network()
    for scene in scenes:
        for situation in ((state, goal, action), (goal, state, action), (state, state, action)):
            asked_alone = replace(case, scene=scene).numpy_network().control(scene, *situation)
            assert np.array_equal(policy.control(scene, *situation), asked_alone)


# What cannot be answered


def small_network() -> NumpyNetwork:
    encoding = encoding_of(DOMAIN, SPEC)
    return NumpyNetwork(encoding, BOX, weights_of(GraphNetwork(encoding, BOX, hidden=2, rounds=1)), 1)


SCENE = Scene(
    SPEC, {"x": 0.0, "y": 0.0, "closed": 0.0}, {"parcel": {"parcel1": {"x": 1.0, "y": 0.0, "held": 0.0}}, "spot": {}}
)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Action("pick", ("parcel7",)), r"the policy wants pick\(parcel7\), but no 'parcel7' is seen"),
        (Action("fly"), r"fly\(\) is none of the actions that the network knows: pick, put"),
    ],
)
def test_what_is_not_seen_or_not_known_is_named(action: Action, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        small_network().control(SCENE, frozenset(), frozenset(), action)


def test_weights_of_another_network_are_refused() -> None:
    encoding = encoding_of(DOMAIN, SPEC)
    other = weights_of(GraphNetwork(encoding, BOX, hidden=3))
    with pytest.raises(BadInput, match="the weights are not those of this network"):
        TorchNetwork(GraphNetwork(encoding, BOX, hidden=2), other)


# Scales


def test_rounding_errors_of_an_angle_that_never_changes_are_not_blown_up() -> None:
    """The sine of half a turn is hardly ever nought; noise may turn what the demonstrations never turned."""
    numbers = np.array([[8e-8, -1.0], [-9e-8, 1.0], [3e-8, -1.0]], np.float32)
    assert scales_of(numbers, turns=[0, 1]).tolist() == [1.0, pytest.approx(1 / numbers[:, 1].std())]
    told = FeatureEncoder(Spec({"x": Position, "way": Angle, "speed": Scalar}, {"car": {"way": Angle, "x": Position}}))
    assert (turns(told.agent_numbers), turns(told.object_numbers)) == ([1, 2], [0, 1])

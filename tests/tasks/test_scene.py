from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene import Roster, Scene
from bilevel.tasks.spec import Position, Scalar, Spec

SPEC = Spec(
    agent={"x": Position, "grip": Scalar},
    objects={"cube": {"x": Position, "mass": Scalar}, "spot": {"x": Position, "wide": Scalar}},
)
AGENT = {"x": 0.5, "grip": 1.0}
OBJECTS = {"cube": {"a": {"x": 1.0, "mass": 2.0}, "b": {"x": 3.0, "mass": 4.0}}, "spot": {"s": {"x": 5.0, "wide": 6.0}}}


def test_things_are_found_by_name() -> None:
    scene = Scene(SPEC, AGENT, OBJECTS)
    assert (scene.agent.x, scene["b"].mass, scene["s"]["wide"]) == (0.5, 4.0, 6.0)
    assert scene["a"].type == "cube"
    assert [thing.name for thing in scene.of_type("cube")] == ["a", "b"]
    assert scene.objects == {"a": "cube", "b": "cube", "s": "spot"}
    assert "a" in scene
    assert "z" not in scene


def test_things_are_equal_by_name() -> None:
    one, other = Scene(SPEC, AGENT, OBJECTS), Scene(SPEC, {"x": 0.0, "grip": 0.0}, OBJECTS)
    assert one["a"] == other["a"] != one["b"]
    assert other["a"] in [one["a"]]
    assert {one["a"], other["a"], one["s"]} == {one["a"], one["s"]}


def test_what_is_not_there_is_named() -> None:
    scene = Scene(SPEC, AGENT, OBJECTS)
    with pytest.raises(KeyError, match="'z' is not visible"):
        scene["z"]
    with pytest.raises(AttributeError, match="'a' has no feature 'wide'"):
        _ = scene["a"].wide


def test_scenes_from_arrays_are_the_same() -> None:
    features = np.array([[1, 2, 0], [3, 4, 0], [5, 0, 6]], np.float32)
    roster = Roster({"a": "cube", "b": "cube", "s": "spot"})
    assert Scene.from_arrays(SPEC, np.array([0.5, 1], np.float32), features, roster) == Scene(SPEC, AGENT, OBJECTS)


names = st.lists(st.sampled_from("abcdefgh"), unique=True)
numbers = st.floats(-10, 10, width=32)


@given(names, names, st.data())
def test_any_dictionary_comes_back(cubes: list[str], spots: list[str], data: st.DataObject) -> None:
    objects = {
        "cube": {name: {"x": data.draw(numbers), "mass": data.draw(numbers)} for name in cubes},
        "spot": {f"spot-{name}": {"x": data.draw(numbers), "wide": data.draw(numbers)} for name in spots},
    }
    scene = Scene(SPEC, AGENT, objects)
    for kind, members in objects.items():
        assert scene.roster.of_type(kind) == tuple(members)
        for name, features in members.items():
            assert {feature: scene[name][feature] for feature in features} == features


@pytest.mark.parametrize(
    ("agent", "objects", "message"),
    [
        ({"x": 1.0}, {}, "the agent has the features x, but in the spec are x, "),
        ({**AGENT, "y": 1.0}, {}, "the agent has the features .*y, but"),
        (AGENT, {"ball": {}}, "no type 'ball'"),
        (AGENT, {"cube": {"a": {"x": 1.0}}}, "'a' has the features x, but"),
        (AGENT, {"cube": {"a": {"x": 1.0, "mass": 1.0}}, "spot": {"a": {"x": 1.0, "wide": 1.0}}}, "two objects called"),
    ],
)
def test_what_does_not_fit_the_spec_is_refused(agent: object, objects: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Scene(SPEC, agent, objects)  # type: ignore[arg-type]


def test_objects_of_a_type_stand_side_by_side() -> None:
    with pytest.raises(BadInput, match="'c' is not beside"):
        Roster({"a": "cube", "s": "spot", "c": "cube"}).rows("cube")

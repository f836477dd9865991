from __future__ import annotations

import msgspec
import pytest

from bilevel.symbolic.domain import BadInput
from bilevel.tasks.spec import Angle, LabelOnly, Position, Scalar, Spec

SPEC = Spec(
    agent={"x": Position, "y": Position(absolute=True), "theta": Angle, "grip": Scalar},
    objects={
        "cube": {"x": Position, "y": Position, "yaw": Angle(symmetry=4), "red": LabelOnly},
        "tray": {"x": Position, "y": Position, "left": LabelOnly(Position(along="x")), "full": Scalar},
    },
    frame=("x", "y", "theta"),
)


def test_a_spec_survives_json() -> None:
    again = msgspec.json.decode(msgspec.json.encode(SPEC), type=Spec)
    assert again == SPEC
    assert again.object_roles["tray"]["left"] == LabelOnly(Position(along="x"))


@pytest.mark.parametrize(
    ("agent", "objects", "frame", "message"),
    [
        ({"x": Position}, {"cube": {"z": Position}}, None, "the agent has no 'z'"),
        ({"x": Position}, {"cube": {"left": LabelOnly(Position(along="q"))}}, None, "the agent has no 'q'"),
        ({"x": float}, {}, None, "the feature 'x'"),
        ({"x": Position}, {"cube": {"colour": "red"}}, None, "the type 'cube' has the feature 'colour'"),
        ({"x": Position}, {}, ("x", "y", "theta"), "the frame names 'y'"),
        (
            {"x": Position, "y": Position, "theta": Angle},
            {"wall": {"x": Position, "y": LabelOnly(Position())}},
            ("x", "y", "theta"),
            "the type 'wall' needs both 'x' and 'y' as Positions",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(agent: object, objects: object, frame: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Spec(agent, objects, frame)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [[], {"agent": 3}, {"agent": {"x": {"type": "colour"}}, "objects": {}}, None])
def test_what_is_no_spec_is_refused(value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Spec)


def test_untold_parameters_are_kept() -> None:
    spec = Spec({"x": Position}, {"cube": {"x": Position}}, untold={"pick": ("?from",)})
    assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec
    assert spec != Spec({"x": Position}, {"cube": {"x": Position}})

"""A demonstration as a file: everything comes back, and what is damaged is refused with a reason."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bilevel.demonstrations.collect import Recorder, collection_settings
from bilevel.demonstrations.dataset import Demonstration
from bilevel.demonstrations.dataset import decode_demonstration as decode_with
from bilevel.demonstrations.dataset import encode_demonstration as encode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls, DiscreteControls
from bilevel.tasks.scene_env import SceneEnv
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE

NAMES = ["agent", "features", "visible", "controls", "executed", "action", "metadata"]
MANY = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
BOX = SceneEnv(TINY, 1).controls
DISCRETE = SceneEnv(TINY_DISCRETE, 1).controls


def decode(data: bytes, controls: Controls = BOX) -> Demonstration:
    return decode_with(data, SPEC, controls)


def test_everything_comes_back(eventful: Demonstration) -> None:
    again = decode(encode(eventful))
    for part in fields(Demonstration):
        before, after = getattr(eventful, part.name), getattr(again, part.name)
        if isinstance(before, np.ndarray):
            assert before.dtype == after.dtype
            assert np.array_equal(before, after)
        elif part.name == "snapshots":
            assert before.keys() == after.keys()
            assert all(np.array_equal(before[name], after[name]) for name in before)
        else:
            assert before == after
    assert eventful.events


def test_the_same_demonstration_gives_the_same_bytes(eventful: Demonstration) -> None:
    discrete = Recorder(TINY_DISCRETE, collection_settings(TINY_DISCRETE, 1)).record(0)[0]
    acting = Recorder(TINY_ACTING, collection_settings(TINY_ACTING, 1)).record(0)[0]
    for demonstration, controls in ((eventful, BOX), (discrete, DISCRETE), (acting, BOX)):
        data = encode(demonstration)
        assert encode(demonstration) == data
        again = decode(data, controls)
        assert encode(again) == data
        assert (again.actions, again.states) == (demonstration.actions, demonstration.states)


def changed(demonstration: Demonstration, name: str, value: Any) -> bytes:
    """The file of a demonstration with another array in the place of one, or without it."""
    with np.load(io.BytesIO(encode(demonstration))) as archive:
        arrays = {**archive, name: value}
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in arrays.items() if array is not None})
    return buffer.getvalue()


@MANY
@given(place=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_damaged_or_truncated_file_is_refused_or_harmless(eventful: Demonstration, place: float, bit: int) -> None:
    """Every byte of content is under a checksum; but of the index, where a snapshot may be lost."""
    data = encode(eventful)
    index = min(int(place * len(data)), len(data) - 1)
    with pytest.raises(BadInput, match="the archive: damaged"):
        decode(data[:index])
    damaged = bytearray(data)
    damaged[index] ^= 1 << bit
    with suppress(BadInput):
        assert encode(replace(decode(bytes(damaged)), snapshots=eventful.snapshots)) == data


@MANY
@given(name=st.sampled_from(NAMES), dtype=st.sampled_from(["float32", "float64", "int8", "int32", "bool", "S8", "O"]),
       shape=st.lists(st.integers(0, 3), max_size=3), value=st.sampled_from([0, np.nan, 99, -2]))  # fmt: skip
def test_any_other_array_is_refused(
    eventful: Demonstration, name: str, dtype: str, shape: list[int], value: float
) -> None:
    with np.errstate(invalid="ignore"):
        other = np.full(shape, value).astype(dtype)
    for array in (other, None):
        with pytest.raises(BadInput):
            decode(changed(eventful, name, array))


def test_numbers_that_are_not_finite_and_actions_out_of_range_are_refused(eventful: Demonstration) -> None:
    for name, value, reason in (
        ("features", np.full_like(eventful.features, np.nan), "'features' holds numbers that are not finite"),
        ("surprise", np.zeros(3), "unknown array 'surprise'"),
        ("snapshot.agent", np.zeros(3), "the snapshots' 'agent' is float64 of shape .*, not numbers for 4 keyframes"),
        ("action", np.full(eventful.steps, 99, np.int32), "'action' is out of range"),
    ):
        with pytest.raises(BadInput, match=reason):
            decode(changed(eventful, name, value))
    discrete = encode(Recorder(TINY_DISCRETE, collection_settings(TINY_DISCRETE, 1)).record(0)[0])
    with pytest.raises(BadInput, match="a control is out of range: there are 3 controls from 0"):
        decode(discrete, DiscreteControls(3))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("seed", "1", r"Expected `int`, got `str` - at `\$.seed`"),
        ("objects", {"parcel1": "cube"}, r"'features' holds .*, not float32 of shape \(\d+, 1, 4\)"),
        ("objects", dict.fromkeys("abcdef", "cube"), "'a' is of the type 'cube', which the spec does not have"),
        ("objects", {**dict.fromkeys("abcd", "spot"), "e": "parcel", "f": "spot"}, "'f' is not beside the other"),
        ("goals", [], "'goals' do not begin with the episode"),
        ("actions", [[]] * 9, "of length >= 1"),
        ("facts", [["free"]], "the archive: damaged, or of another format: list index"),
        ("goals", [[0, []], [100000, []]], "'goals' have timesteps that are not in order"),
        ("events", [[3, "slip a"], [2, "slip b"]], "'events' have timesteps that are not in order"),
    ],
)
def test_metadata_that_makes_no_sense_is_refused(eventful: Demonstration, key: str, value: object, reason: str) -> None:
    with np.load(io.BytesIO(encode(eventful))) as archive:
        metadata = {**json.loads(archive["metadata"].tobytes()), key: value}
    with pytest.raises(BadInput, match=reason):
        decode(changed(eventful, "metadata", np.frombuffer(json.dumps(metadata).encode(), np.uint8)))

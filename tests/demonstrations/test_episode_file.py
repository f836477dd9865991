"""A demonstration as a file: everything comes back, and what is damaged is refused with a reason."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bilevel.demonstrations.collect import Recorder, collection_settings
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.demonstration import decode_demonstration as decode_with
from bilevel.demonstrations.demonstration import encode_demonstration as encode
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls, DiscreteControls
from bilevel.tasks.scene_env import SceneEnv
from tiny_task import SPEC, TINY, TINY_ACTING, TINY_DISCRETE

Arrays = dict[str, NDArray[Any]]
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
    discrete = Recorder(TINY_DISCRETE, collection_settings(TINY_DISCRETE, 1)).record(0)
    acting = Recorder(TINY_ACTING, collection_settings(TINY_ACTING, 1)).record(0)
    for demonstration, controls in ((eventful, BOX), (discrete, DISCRETE), (acting, BOX)):
        data = encode(demonstration)
        assert encode(demonstration) == data
        again = decode(data, controls)
        assert encode(again) == data
        assert (again.actions, again.states) == (demonstration.actions, demonstration.states)


def test_controls_outside_of_a_discrete_space_are_refused() -> None:
    data = encode(Recorder(TINY_DISCRETE, collection_settings(TINY_DISCRETE, 1)).record(0))
    with pytest.raises(BadInput, match="'controls' is out of range: there are 3 controls from 0"):
        decode(data, DiscreteControls(3))


def test_what_is_in_memory_is_checked_as_well(eventful: Demonstration) -> None:
    def hold(*items: Demonstration) -> Demonstrations:
        return Demonstrations(items, task="tiny", spec=SPEC, domain=TINY.domain, controls=BOX)

    data = hold(eventful, eventful)
    assert (len(data), data[1], data.folder, data.arguments) == (2, eventful, None, {})
    for broken, reason in (
        (replace(eventful, actions=eventful.actions[1:]), "controls need as many actions"),
        (replace(eventful, agent=eventful.agent[1:]), "'agent' has shape"),
    ):
        with pytest.raises(BadInput, match=f"demonstration 1: .*{reason}"):
            hold(eventful, broken)


def test_a_file_of_any_shorter_length_is_refused(eventful: Demonstration) -> None:
    data = encode(eventful)
    for length in [0, 1, 10, *range(100, len(data), len(data) // 40), len(data) - 1]:
        with pytest.raises(BadInput, match="no whole npz archive"):
            decode(data[:length])


def test_a_damaged_file_is_refused_or_harmless(eventful: Demonstration) -> None:
    """Every byte of content is under a checksum; what is not, such as a date, does not matter."""
    data = encode(eventful)
    rng = random.Random(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            assert encode(decode(bytes(damaged))) == data
        except BadInput:
            refused += 1
    assert refused > 100


def changed(demonstration: Demonstration, change: Callable[[Arrays], None]) -> bytes:
    """The file of a demonstration after a change to its arrays."""
    with np.load(io.BytesIO(encode(demonstration))) as archive:
        arrays = dict(archive)
    change(arrays)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def set_nan(arrays: Arrays, name: str) -> None:
    arrays[name][0] = np.nan


def shorten(arrays: Arrays, *names: str) -> None:
    for name in names:
        arrays[name] = arrays[name][:-1]


def convert(arrays: Arrays, name: str, dtype: str) -> None:
    arrays[name] = arrays[name].astype(dtype)


def set_object(arrays: Arrays) -> None:
    arrays["agent"] = np.array([{}, {}], object)


def set_index(arrays: Arrays, index: int) -> None:
    arrays["action"][0] = index


def drop(arrays: Arrays, names: str) -> None:
    for name in [name for name in arrays if name.startswith(names)]:
        del arrays[name]


def add(arrays: Arrays) -> None:
    arrays["surprise"] = np.zeros(3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: set_nan(a, "features"), "'features' holds numbers that are not finite"),
        (lambda a: set_nan(a, "controls"), "'controls' holds numbers that are not finite"),
        (lambda a: shorten(a, "features"), r"'features' has shape \(\d+, 6, 4\), not \(\d+, 6, 4\)"),
        (lambda a: shorten(a, "executed"), r"'executed' has shape \(\d+, 3\), not \(\d+, 3\)"),
        (lambda a: shorten(a, "agent", "features", "visible"), "'agent' has shape"),
        (lambda a: shorten(a, "snapshot.agent"), "the snapshots' 'agent' has shape .*, but there are .* keyframes"),
        (lambda a: convert(a, "snapshot.agent", "S8"), "the snapshots' 'agent' holds |S8, not numbers"),
        (lambda a: convert(a, "agent", "float64"), "'agent' holds float64, not float32"),
        (lambda a: convert(a, "visible", "int8"), "'visible' holds int8, not bool"),
        (lambda a: set_object(a), "no whole npz archive of plain arrays"),
        (lambda a: set_index(a, 99), "'action' is out of range"),
        (lambda a: set_index(a, -2), "'action' is out of range"),
        (lambda a: shorten(a, "action"), "controls need as many actions"),
        (lambda a: drop(a, "executed"), "the array 'executed' is missing"),
        (lambda a: a.update(agent=np.array(1.0)), "'agent' holds a single number"),
        (lambda a: add(a), "unknown array 'surprise'"),
    ],
)
def test_arrays_that_make_no_sense_are_refused(
    eventful: Demonstration, change: Callable[[Arrays], None], reason: str
) -> None:
    with pytest.raises(BadInput, match=reason):
        decode(changed(eventful, change))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("seed", "1", r"Expected `int`, got `str` - at `\$.seed`"),
        ("attempt", -1, r"Expected `int` >= 0 - at `\$.attempt`"),
        ("objects", {"parcel1": ["parcel"]}, "Expected `str`"),
        ("objects", {"parcel1": "cube"}, r"'features' has shape .*, not \(\d+, 1, 4\)"),
        ("objects", dict.fromkeys("abcdef", "cube"), "'a' is of the type 'cube', which the spec does not have"),
        ("objects", {**dict.fromkeys("abcd", "spot"), "e": "parcel", "f": "spot"}, "'f' is not beside the other"),
        ("goals", [], "'goals' do not begin with the episode"),
        ("states", [[1, [0]]], "'states' do not begin with the episode"),
        ("actions", [[]] * 9, "of length >= 1"),
        ("facts", [["free"]], "there are only 1 facts"),
        ("goals", [[0, [0], 5]], "Expected `array` of length 2"),
        ("goals", [[0, []], [100000, []]], "'goals' have timesteps that are not in order"),
        ("events", [[3, "slip a"], [2, "slip b"]], "'events' have timesteps that are not in order"),
        ("mood", "good", "unknown field `mood`"),
    ],
)
def test_metadata_that_makes_no_sense_is_refused(eventful: Demonstration, key: str, value: object, reason: str) -> None:
    def change(arrays: Arrays) -> None:
        metadata = {**json.loads(arrays["metadata"].tobytes()), key: value}
        arrays["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)

    with pytest.raises(BadInput, match=reason):
        decode(changed(eventful, change))


def test_an_episode_that_ends_at_a_keyframe_has_one_snapshot_there(eventful: Demonstration) -> None:
    shorter = replace(
        eventful,
        agent=eventful.agent[:129],
        features=eventful.features[:129],
        visible=eventful.visible[:129],
        controls=eventful.controls[:128],
        executed=eventful.executed[:128],
        actions=eventful.actions[:128],
        states=eventful.states[:1],
        goals=eventful.goals[:1],
        events=(),
        snapshots={name: part[:3] for name, part in eventful.snapshots.items()},
    )
    assert decode(encode(shorter)).keyframes.tolist() == [0, 64, 128]

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

from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.episode_file import decode, encode
from bilevel.symbolic.domain import BadInput

Arrays = dict[str, NDArray[Any]]


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
    data = encode(eventful)
    assert encode(eventful) == data
    assert encode(decode(data)) == data


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
        (lambda a: set_nan(a, "objects"), "'objects' holds numbers that are not finite"),
        (lambda a: set_nan(a, "controls"), "'controls' holds numbers that are not finite"),
        (lambda a: set_nan(a, "snapshot.physics"), "'snapshot.physics' holds what is no finite number"),
        (lambda a: shorten(a, "objects"), r"'objects' has shape \(\d+, 6, 11\), not \(\d+, \?, 11\)"),
        (lambda a: shorten(a, "executed"), r"'executed' has shape \(\d+, 4\), not \(\d+, 4\)"),
        (lambda a: shorten(a, "agent", "objects", "visible"), "controls need .* observations"),
        (lambda a: shorten(a, "snapshot.sleep"), "'snapshot.sleep' has shape .*, but there are .* keyframes"),
        (lambda a: convert(a, "agent", "float64"), "'agent' holds float64, not float32"),
        (lambda a: convert(a, "visible", "bool"), "'visible' holds bool, not int8"),
        (lambda a: set_object(a), "no whole npz archive of plain arrays"),
        (lambda a: set_index(a, 99), "'action' is out of range"),
        (lambda a: set_index(a, -1), "'action' is out of range"),
        (lambda a: drop(a, "executed"), "the array 'executed' is missing"),
        (lambda a: drop(a, "snapshot"), "no snapshots"),
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
        ("seed", "1", "'seed' in the metadata cannot be \"1\""),
        ("seed", True, "'seed' in the metadata cannot be true"),
        ("attempt", -1, "'attempt' in the metadata cannot be -1"),
        ("types", {"block1": ["block"]}, "the type of 'block1' in the metadata cannot be"),
        ("goals", [], "'goals' in the metadata do not begin with the episode"),
        ("goals", [[1, ["at block1 place1"]]], "'goals' in the metadata do not begin with the episode"),
        ("recipe", {"task": "blocks"}, "the recipe has no 'arguments'"),
        ("actions", [""] * 9, "where an action or a fact should be"),
        ("goals", [[0, ["at block1 place1"], 5]], "'goals' in the metadata cannot hold"),
        ("goals", [[100000, []]], "'goals' in the metadata cannot hold"),
        ("events", [[3, "teleport a"], [2, "teleport b"]], "'events' in the metadata cannot hold"),
        ("mood", "good", "the metadata has an unknown 'mood'"),
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
        objects=eventful.objects[:129],
        visible=eventful.visible[:129],
        controls=eventful.controls[:128],
        executed=eventful.executed[:128],
        actions=eventful.actions[:128],
        goals=eventful.goals[:1],
        events=(),
        snapshots={name: part[:3] for name, part in eventful.snapshots.items()},
    )
    assert decode(encode(shorter)).keyframes.tolist() == [0, 64, 128]

"""A demonstration as the bytes of a file: a compressed npz archive of plain arrays, with the rest as JSON among them.

The same demonstration always gives the same bytes. Reading checks everything: a file is whole and sensible, or it is
refused with the reason.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from tokenize import TokenError
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Changes, Demonstration
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.tasks.controls import Controls
from bilevel.tasks.spec import Spec

ARRAYS = ("agent", "features", "visible", "controls", "executed")
ACTION, METADATA = "action", "metadata"
SNAPSHOT = "snapshot."  # what the names of a snapshot's parts begin with
UNREADABLE = (
    OSError, EOFError, KeyError, ValueError, TypeError, SyntaxError, MemoryError, NotImplementedError, RuntimeError,
    struct.error, zlib.error, zipfile.BadZipFile, TokenError,
)  # fmt: skip

Words = Annotated[list[str], msgspec.Meta(min_length=1)]  # the name of an action or a predicate, and its arguments
Count = Annotated[int, msgspec.Meta(ge=0)]


class Metadata(msgspec.Struct, forbid_unknown_fields=True):
    """What is no array. Facts, and actions in the array of that name, are given by their numbers in a list."""

    seed: int
    attempt: Count
    outcome: str
    objects: dict[str, str]
    actions: list[Words]
    facts: list[Words]
    states: list[tuple[Count, list[Count]]]
    goals: list[tuple[Count, list[Count]]]
    events: list[tuple[Count, str]]


def encode(demonstration: Demonstration) -> bytes:
    actions = {action: number for number, action in enumerate(dict.fromkeys(filter(None, demonstration.actions)))}
    all_facts = [
        fact for changes in (demonstration.states, demonstration.goals) for _, facts in changes for fact in facts
    ]
    facts = {fact: number for number, fact in enumerate(sorted(set(all_facts)))}
    metadata = Metadata(
        seed=demonstration.seed,
        attempt=demonstration.attempt,
        outcome=demonstration.outcome,
        objects=dict(demonstration.objects),
        actions=[[name, *arguments] for name, arguments in actions],
        facts=[[predicate, *terms] for predicate, terms in facts],
        states=[(start, sorted(facts[fact] for fact in state)) for start, state in demonstration.states],
        goals=[(start, sorted(facts[fact] for fact in goal)) for start, goal in demonstration.goals],
        events=list(demonstration.events),
    )
    arrays: dict[str, NDArray[Any]] = {name: getattr(demonstration, name) for name in ARRAYS}
    arrays[ACTION] = np.array([-1 if action is None else actions[action] for action in demonstration.actions], np.int32)
    arrays[METADATA] = np.frombuffer(msgspec.json.encode(metadata), np.uint8)
    arrays |= {SNAPSHOT + name: part for name, part in demonstration.snapshots.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(data: bytes, spec: Spec, controls: Controls) -> Demonstration:
    """Return the demonstration in the bytes of a file; `BadInput` with the reason where there is none."""
    arrays = _load(data)
    try:
        metadata = msgspec.json.decode(arrays[METADATA].tobytes(), type=Metadata)
    except msgspec.DecodeError as error:
        raise BadInput(f"the metadata makes no sense: {error}") from None
    demonstration = Demonstration(
        objects=metadata.objects,
        **{name: arrays[name] for name in ARRAYS},
        actions=_actions(metadata.actions, arrays[ACTION]),
        states=_facts(metadata.states, metadata.facts),
        goals=_facts(metadata.goals, metadata.facts),
        events=tuple(metadata.events),
        outcome=metadata.outcome,
        seed=metadata.seed,
        attempt=metadata.attempt,
        snapshots={name.removeprefix(SNAPSHOT): part for name, part in arrays.items() if name.startswith(SNAPSHOT)},
    )
    demonstration.check(spec, controls)
    return demonstration


def _load(data: bytes) -> dict[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except UNREADABLE:
        raise BadInput("no whole npz archive of plain arrays; it may be truncated") from None
    expected = (*ARRAYS, ACTION, METADATA)
    for name in expected:
        if name not in arrays:
            raise BadInput(f"the array '{name}' is missing")
        if arrays[name].ndim == 0:
            raise BadInput(f"'{name}' holds a single number")
    for name in arrays:
        if name not in expected and not name.startswith(SNAPSHOT):
            raise BadInput(f"unknown array '{name}'")
    return arrays


def _actions(words: Sequence[Words], numbers: NDArray[Any]) -> tuple[Action | None, ...]:
    in_range = numbers.dtype.kind == "i" and numbers.ndim == 1
    if not in_range or (numbers.size and not -1 <= numbers.min() <= numbers.max() < len(words)):
        raise BadInput(f"'{ACTION}' is out of range: there are {len(words)} actions")
    known = [*(Action(name, tuple(arguments)) for name, *arguments in words), None]
    return tuple(known[number] for number in numbers)


def _facts(entries: Sequence[tuple[int, list[int]]], words: Sequence[Words]) -> Changes[Facts]:
    known = [Atom(predicate, tuple(terms)) for predicate, *terms in words]
    try:
        return tuple((start, frozenset(known[number] for number in facts)) for start, facts in entries)
    except IndexError:
        raise BadInput(f"the metadata makes no sense: there are only {len(known)} facts") from None

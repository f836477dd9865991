"""A demonstration as the bytes of a file: a compressed npz archive of plain arrays, with the rest as JSON among them.

The same demonstration always gives the same bytes. Reading checks everything: a file is whole and sensible, or it is
refused with the reason.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from tokenize import TokenError
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.demonstration import Demonstration, Recipe, keyframes
from bilevel.demonstrations.json_objects import RECIPE, Keys, checked, shortened
from bilevel.symbolic.domain import Action, Atom, BadInput, Facts
from bilevel.tabletop.observation import AGENT_FEATURES, FEATURES

SNAPSHOT = "snapshot."  # what the names of a snapshot's parts begin with


class Kind(NamedTuple):
    """What an array must be; dimensions with a name have the same length wherever they occur."""

    dtype: type
    shape: tuple[str | int, ...]


ARRAYS = {
    "agent": Kind(np.float32, ("moments", len(AGENT_FEATURES))),
    "objects": Kind(np.float32, ("moments", "slots", len(FEATURES))),
    "visible": Kind(np.int8, ("moments", "slots")),
    "controls": Kind(np.float32, ("steps", 4)),
    "executed": Kind(np.float32, ("steps", 4)),
    "action": Kind(np.int16, ("steps",)),  # as an index of the actions in the metadata
    "metadata": Kind(np.uint8, ("bytes",)),  # JSON
}
METADATA: Keys = {
    "recipe": dict,
    "seed": int,
    "attempt": int,
    "outcome": str,
    "types": dict,
    "actions": list,
    "goals": list,
    "events": list,
}
UNREADABLE = (
    OSError, EOFError, KeyError, ValueError, TypeError, SyntaxError, MemoryError, NotImplementedError, RuntimeError,
    struct.error, zlib.error, zipfile.BadZipFile, TokenError,
)  # fmt: skip


# Writing


def encode(demonstration: Demonstration) -> bytes:
    names = [_words(action.name, action.arguments) for action in demonstration.actions]
    distinct = list(dict.fromkeys(names))
    index = {name: number for number, name in enumerate(distinct)}
    metadata = {
        "recipe": asdict(demonstration.recipe),
        "seed": demonstration.seed,
        "attempt": demonstration.attempt,
        "outcome": demonstration.outcome,
        "types": dict(demonstration.types),
        "actions": distinct,
        "goals": [[moment, [_words(*fact) for fact in sorted(goal)]] for moment, goal in demonstration.goals],
        "events": [list(event) for event in demonstration.events],
    }
    arrays = {name: getattr(demonstration, name) for name in ("agent", "objects", "visible", "controls", "executed")}
    arrays["action"] = np.array([index[name] for name in names], np.int16)
    arrays["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    arrays |= {SNAPSHOT + name: part for name, part in demonstration.snapshots.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _words(name: str, terms: Iterable[str]) -> str:
    """As in PDDL, without the parentheses."""
    return " ".join((name, *terms))


# Reading


def decode(data: bytes) -> Demonstration:
    """The demonstration in the bytes of a file; `BadInput` with the reason where there is none."""
    arrays = _load(data)
    lengths = _check_kinds(arrays)
    steps = lengths["steps"]
    if lengths["moments"] != steps + 1:
        raise BadInput(f"{steps} controls need {steps + 1} observations, not {lengths['moments']}")
    snapshots = {name.removeprefix(SNAPSHOT): part for name, part in arrays.items() if name.startswith(SNAPSHOT)}
    _check_snapshots(snapshots, steps)
    metadata = _metadata(arrays["metadata"])
    return Demonstration(
        recipe=_recipe(metadata["recipe"]),
        seed=metadata["seed"],
        attempt=metadata["attempt"],
        outcome=metadata["outcome"],
        types=metadata["types"],
        agent=arrays["agent"],
        objects=arrays["objects"],
        visible=arrays["visible"],
        controls=arrays["controls"],
        executed=arrays["executed"],
        actions=_actions(metadata["actions"], arrays["action"]),
        goals=_goals(metadata["goals"], steps),
        events=_events(metadata["events"], steps),
        snapshots=snapshots,
    )


def _load(data: bytes) -> dict[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except UNREADABLE:
        raise BadInput("no whole npz archive of plain arrays; it may be truncated") from None


def _check_kinds(arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """The lengths of the named dimensions, which must agree."""
    missing = [name for name in ARRAYS if name not in arrays]
    unknown = [name for name in arrays if name not in ARRAYS and not name.startswith(SNAPSHOT)]
    if missing or unknown:
        what = f"the array '{missing[0]}' is missing" if missing else f"unknown array '{unknown[0]}'"
        raise BadInput(what)
    lengths: dict[str, int] = {}
    for name, kind in ARRAYS.items():
        array = arrays[name]
        if array.dtype != kind.dtype:
            raise BadInput(f"'{name}' holds {array.dtype}, not {np.dtype(kind.dtype)}")
        wanted = [size if isinstance(size, int) else lengths.get(size, "?") for size in kind.shape]
        if array.ndim != len(wanted) or any(
            want not in ("?", size) for want, size in zip(wanted, array.shape, strict=True)
        ):
            raise BadInput(f"'{name}' has shape {array.shape}, not ({', '.join(map(str, wanted))})")
        lengths |= {key: size for key, size in zip(kind.shape, array.shape, strict=True) if isinstance(key, str)}
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BadInput(f"'{name}' holds numbers that are not finite")
    return lengths


def _check_snapshots(snapshots: Mapping[str, NDArray[Any]], steps: int) -> None:
    expected = len(keyframes(steps))
    if not snapshots:
        raise BadInput("there are no snapshots of the simulator")
    for name, part in snapshots.items():
        if part.ndim == 0 or len(part) != expected:
            raise BadInput(f"'{SNAPSHOT}{name}' has shape {part.shape}, but there are {expected} keyframes")
        if part.dtype.kind not in "fiub" or not np.isfinite(part).all():
            raise BadInput(f"'{SNAPSHOT}{name}' holds what is no finite number")


def _metadata(text: NDArray[np.uint8]) -> dict[str, Any]:
    try:
        metadata = json.loads(text.tobytes().decode())
    except ValueError:
        raise BadInput("the metadata is not JSON") from None
    checked(metadata, METADATA, "the metadata")
    if metadata["attempt"] < 0:
        raise BadInput(f"'attempt' in the metadata cannot be {metadata['attempt']}")
    for name, kind in metadata["types"].items():
        if not isinstance(kind, str):
            raise BadInput(f"the type of '{name}' in the metadata cannot be {shortened(kind)}")
    return dict(metadata)


def _recipe(value: dict[str, Any]) -> Recipe:
    return Recipe(**checked(value, RECIPE, "the recipe"))


def _actions(names: list[Any], index: NDArray[np.int16]) -> tuple[Action, ...]:
    if index.size and not 0 <= index.min() <= index.max() < len(names):
        raise BadInput(f"'action' is out of range: there are {len(names)} actions")
    known = [Action(*_split(name)) for name in names]
    return tuple(known[number] for number in index)


def _split(text: Any) -> tuple[str, tuple[str, ...]]:
    words = text.split() if isinstance(text, str) else []
    if not words:
        raise BadInput(f"the metadata has {shortened(text)} where an action or a fact should be")
    return words[0], tuple(words[1:])


def _goals(entries: list[Any], steps: int) -> tuple[tuple[int, Facts], ...]:
    pairs = _by_moment(entries, list, steps, "goals")
    if not pairs or pairs[0][0] != 0:
        raise BadInput("'goals' in the metadata do not begin with the episode")
    return tuple((moment, frozenset(Atom(*_split(fact)) for fact in facts)) for moment, facts in pairs)


def _events(entries: list[Any], steps: int) -> tuple[tuple[int, str], ...]:
    return tuple(_by_moment(entries, str, steps, "events"))


def _by_moment(entries: list[Any], value_type: type, steps: int, what: str) -> list[tuple[int, Any]]:
    """Pairs of a moment of the episode and a value, in order."""
    last = 0
    for entry in entries:
        well_formed = isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int
        if not well_formed or not isinstance(entry[1], value_type) or not last <= entry[0] <= steps:
            raise BadInput(f"'{what}' in the metadata cannot hold {shortened(entry)}")
        last = entry[0]
    return [(moment, value) for moment, value in entries]

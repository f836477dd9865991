"""Objects read from JSON, with the keys and types that they must have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bilevel
from bilevel.symbolic.domain import BadInput

Keys = Mapping[str, type | tuple[type, ...]]

NUMBER = (int, float)
RECIPE: Keys = {"task": str, "arguments": dict, "noise": (dict, type(None)), "seed": int}
ARGUMENTS: Keys = {"objects": int, "teleport_rate": NUMBER, "colours": int, "draw": str}  # each task has some of them
NOISE: Keys = {"amplitude": NUMBER, "rate": NUMBER, "shortest": int, "longest": int, "flips": NUMBER}


def checked(value: Any, keys: Keys, what: str) -> dict[str, Any]:
    """An object that has exactly these keys, with values of these types."""
    if not isinstance(value, dict):
        raise BadInput(f"{what} must be a JSON object")
    for key, types in keys.items():
        if key not in value:
            raise BadInput(f"{what} has no {quoted(key)}")
        is_bool = isinstance(value[key], bool)  # which Python takes for an int
        if not isinstance(value[key], types) or is_bool != (types is bool):
            raise BadInput(f"{quoted(key)} in {what} cannot be {shortened(value[key])}")
    for key in value:
        if key not in keys:
            raise BadInput(f"{what} has an unknown {quoted(key)}")
    return value


def check_not_newer(value: Any, ours: int, path: Path) -> None:
    """`BadInput` for an object of a format that a later version of bilevel has written."""
    format_ = value.get("format") if isinstance(value, dict) else None
    if isinstance(format_, int) and format_ > ours:
        raise BadInput(
            f"{path}: of format {format_}, but bilevel {bilevel.__version__} reads format {ours}; upgrade bilevel"
        )


def quoted(key: str) -> str:
    """For a message of one line, whatever is in the key."""
    return f"'{_cut(json.dumps(key)[1:-1])}'"


def shortened(value: Any) -> str:
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"

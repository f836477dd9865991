"""Objects read from JSON files: checked against a type, and refused in one line that says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from bilevel.symbolic.domain import BadInput

Value = TypeVar("Value")


class Damaged(BadInput):
    """A file that is there, but not what it should be."""


def decode(data: bytes | str, kind: type[Value], what: object) -> Value:
    """The value in some JSON; `Damaged`, which says `what` is, where it is not JSON or not of this kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Damaged(f"{what}: {_in_one_line(error)}") from None


def read_bytes(path: Path) -> bytes:
    """The content of a file; `BadInput` where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def encode(value: object, *, indent: int = 2) -> str:
    """A value as JSON for a person to read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode() + "\n"


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__

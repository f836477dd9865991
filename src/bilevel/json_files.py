"""Objects read from JSON files: checked against a type, and refused in one line that says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from bilevel.symbolic.domain import BadInput

Value = TypeVar("Value")
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # nothing that is counted is more
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # of seconds, of mebibytes
Name = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]  # a name, on one line
Plain = str | bool | Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | float | None  # a value that holds no others


class Damaged(BadInput):
    """A file that is there, but not what it should be."""


def decode(data: bytes | str, kind: type[Value], what: object) -> Value:
    """The value in some JSON; `Damaged`, which says `what` is, where it is not JSON, or not of this kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Damaged(f"{what}: {' '.join(str(error).split())}") from None


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

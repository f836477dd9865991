"""Objects read from JSON files: checked against a type, and refused in one line that says what is wrong and where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from bilevel.symbolic.domain import BadInput

Value = TypeVar("Value")
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # nothing that is counted is more
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # of seconds, of mebibytes
Plain = str | bool | Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | float | None  # a value that holds no others

TOO_DEEP = "lists and objects are nested too deeply"
DEEPEST = 100  # levels of lists and objects in each other, far from where Python itself gives up
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Damaged(BadInput):
    """A file that is there, but not what it should be."""


def decode(data: bytes | str, kind: type[Value], what: object) -> Value:
    """The value in some JSON; `Damaged`, which says `what` is, where it is not JSON, too deep, or not of this kind."""
    try:
        value = msgspec.json.decode(data, type=kind)
        if is_too_deep(data):
            raise Damaged(f"{what}: {TOO_DEEP}")
        return value
    except RecursionError:
        raise Damaged(f"{what}: {TOO_DEEP}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"{what}: {_in_one_line(error)}") from None


def is_too_deep(data: bytes | str) -> bool:
    """Return whether valid JSON has more than some `DEEPEST` levels: what is done with it may then fail anywhere."""
    text = data.encode() if isinstance(data, str) else data
    if text.count(b"[") + text.count(b"{") <= DEEPEST:
        return False
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    for _ in range(DEEPEST):  # each time, the innermost level goes
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return bool(brackets)


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

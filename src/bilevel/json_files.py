"""Values in JSON files: checked where they are read, and written for a person to read."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from bilevel.symbolic.domain import BadInput

Value = TypeVar("Value")
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # nothing that is counted is more
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # of seconds, of mebibytes
Name = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*\Z")]  # a name, on one line


def decode(data: bytes | str, kind: type[Value], what: object) -> Value:
    """Return the value in some JSON; `BadInput` says `what` it is where it is no JSON, or not of this kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, BadInput) as error:
        raise BadInput(f"{what}: {' '.join(str(error).split())}") from None


def encode(value: object, *, indent: int = 2) -> str:
    """A value as JSON for a person to read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode() + "\n"

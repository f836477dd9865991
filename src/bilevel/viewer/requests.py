"""What those who watch an episode may ask for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bilevel.symbolic.domain import BadInput

FASTEST = 64  # times the true speed

Place = Annotated[int, msgspec.Meta(ge=0)]
Ahead = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Speed = Annotated[float, msgspec.Meta(ge=0, le=FASTEST)]
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]  # of a picture's width or height, from its top left


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="pace"):
    """Pause or go on, at so many times the true speed; 0 is as fast as possible. What is not given stays."""

    paused: bool | None = None
    speed: Speed | None = None


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="step"):
    """Take one step, and pause."""


class Push(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="push"):
    """Perturb the controls for some steps."""


class Hold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="hold"):
    """Hold one number of the controls at a value; without one, let it go."""

    place: Place
    value: float | None = None


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="move"):
    """Put an object elsewhere: to where a point of the picture is, or anywhere."""

    name: str
    point: tuple[Part, Part] | None = None


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edit"):
    """Follow the rules of this text from the next decision on."""

    text: str


class Revert(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="revert"):
    """Follow the rules as they were at first."""


class Save(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="save"):
    """Write this text to the file of the rules."""

    text: str


class Again(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="again"):
    """Begin another episode, from the same seed or from one further on."""

    ahead: Ahead = 0


class Quit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="quit"):
    """End the program."""


Request = Pace | Step | Push | Hold | Move | Edit | Revert | Save | Again | Quit


def read_request(data: bytes) -> Request:
    """Return the request that JSON is; `BadInput` for any other."""
    try:
        found: Request = msgspec.json.decode(data, type=Request)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"no request of the page: {error}") from None
    return found

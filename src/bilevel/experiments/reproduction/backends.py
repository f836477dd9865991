"""What does the work: asked to start units, it says how they get on."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Protocol

from bilevel.experiments.reproduction.unit import Unit
from bilevel.symbolic.domain import BadInput


@dataclass(frozen=True)
class Advanced:
    """A unit says how far it is."""

    unit: Unit
    note: str


@dataclass(frozen=True)
class Finished:
    """What a unit makes is in the folder."""

    unit: Unit


@dataclass(frozen=True)
class Failed:
    """A unit raised something, or its process was killed."""

    unit: Unit
    error: str  # one line
    traceback: str = ""


Event = Advanced | Finished | Failed


class Backend(Protocol):
    """Processes here, or on a cluster."""

    @property
    def workers(self) -> int:
        """How many units it can do at the same time, as far as it knows now."""

    @property
    def gpu_slots(self) -> int:
        """How many of these may be units that use a GPU."""

    def start(self, unit: Unit) -> None:
        """Begin a unit; there is a worker for it."""

    def events(self, timeout: float) -> list[Event]:
        """Return what has happened; if nothing has, wait for so many seconds."""

    def close(self) -> None:
        """Stop whatever is being done."""


def failure(unit: Unit, error: BaseException) -> Failed:
    """Say what can be said of an error: one line, and for what no user can mend, where it happened."""
    if isinstance(error, BadInput):
        return Failed(unit, str(error))
    where = traceback.extract_tb(error.__traceback__)
    place = f" ({where[-1].filename.rpartition('/')[2]}, line {where[-1].lineno})" if where else ""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Failed(unit, words + place, "".join(traceback.format_exception(error)))

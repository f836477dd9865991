"""An episode step by step, for somebody who looks at its film: what was done, by which rule, what changed.

A timeline is a file of JSON beside the film of the episode; a step says where in the film it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from bilevel.experiments.reproduction.rows import refusing
from bilevel.symbolic.expressions import read_text


@dataclass(frozen=True)
class Fired:
    """The rule that chose an action."""

    number: int  # from 1, as in the list of the rules
    text: str
    binding: Mapping[str, str]  # what each of its variables stands for
    sentence: str


@dataclass(frozen=True)
class Beat:
    """A step at which something is new: another action, other facts, or an event."""

    step: int
    action: str | None  # from here on; `None` at the end, and where the policy does not say
    rule: Fired | None
    appeared: Sequence[str]  # facts; at the beginning, none does
    vanished: Sequence[str]
    goals_left: Sequence[str]
    events: Sequence[str]  # what nature did: reported by the world


@dataclass(frozen=True)
class Timeline:
    """A whole episode."""

    task: str
    entrant: str
    objects: int
    seed: int
    outcome: str
    steps: int
    steps_per_second: float  # of the film: a step is shown so many seconds after its beginning
    pictures_per_second: float  # a step that is not drawn is shown with the next that is
    seconds: float  # that the film lasts
    beats: Sequence[Beat]

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"


def read_timeline(path: Path) -> Timeline:
    """Read what `Timeline.text` wrote; `BadInput` for anything else."""
    with refusing(f"{path}: not the timeline of a film; remove it, and `bilevel reproduce` makes another"):
        return msgspec.json.decode(read_text(path), type=Timeline)

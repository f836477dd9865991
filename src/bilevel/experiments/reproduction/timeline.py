"""An episode step by step, for somebody who looks at its film: what was done, by which rule, what changed.

A timeline is a file of JSON beside the film of the episode; a step says where in the film it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from bilevel.json_files import decode, encode, read_bytes
from bilevel.policies.episode_log import Entry, EpisodeLog
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Facts


class Fired(msgspec.Struct, frozen=True):
    """The rule that chose an action."""

    number: int  # from 1, as in the list of the rules
    text: str
    binding: Mapping[str, str]  # what each of its variables stands for
    sentence: str


class Beat(msgspec.Struct, frozen=True):
    """A step at which something is new: another action, other facts, or an event."""

    step: int
    action: str | None  # from here on; `None` at the end, and where the policy does not say
    rule: Fired | None
    appeared: Sequence[str]  # facts; at the beginning, none does
    vanished: Sequence[str]
    goals_left: Sequence[str]
    events: Sequence[str]  # what nature did: reported by the world


class Timeline(msgspec.Struct, frozen=True, kw_only=True, rename={"variant": "entrant"}):
    """A whole episode."""

    task: str
    variant: str
    objects: int
    seed: int
    outcome: str
    steps: int
    speed: float = 0.5  # of the film: what part of the true one
    steps_per_second: float  # of the film: a step is shown so many seconds after its beginning
    pictures_per_second: float  # a step that is not drawn is shown with the next that is
    seconds: float  # that the film lasts
    beats: Sequence[Beat]

    def text(self) -> str:
        return encode(self, indent=1)


def read_timeline(path: Path) -> Timeline:
    """Read what `Timeline.text` wrote; `BadInput` for anything else."""
    what = f"{path}: not the timeline of a film; remove it, and `bilevel reproduce` makes another"
    return decode(read_bytes(path), Timeline, what)


def beats(log: EpisodeLog) -> list[Beat]:
    """Return the entries of a log in words, each with what is new since the one before it."""
    pairs = pairwise([log.entries[0], *log.entries])
    return [_beat(entry, before, log.rules) for before, entry in pairs]


def _beat(entry: Entry, before: Entry, rules: RulePolicy | None) -> Beat:
    return Beat(
        step=entry.step,
        action=str(entry.action) if entry.action else None,
        rule=_fired(entry, rules) if rules else None,
        appeared=_texts(entry.state - before.state),
        vanished=_texts(before.state - entry.state),
        goals_left=_texts(entry.goal - entry.state),
        events=list(entry.events),
    )


def _fired(entry: Entry, rules: RulePolicy) -> Fired | None:
    if entry.match is None:
        return None
    rule, binding = entry.match.rule, dict(sorted(entry.match.binding.items()))
    return Fired(rules.rules.index(rule) + 1, str(rule), binding, entry.sentence or "")


def _texts(facts: Facts) -> list[str]:
    return [str(fact) for fact in sorted(facts)]

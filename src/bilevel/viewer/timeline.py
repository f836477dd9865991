"""An episode in words, step by step: what was done, by which rule, and what came of it.

A timeline is what the page shows beside the picture, whether the episode still runs or was filmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import msgspec

from bilevel.json_files import Count
from bilevel.policies.episode import Entry, Episode
from bilevel.rules.explanation.english import sentence
from bilevel.rules.rule import Rule
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Facts


class Fired(msgspec.Struct, frozen=True):
    """The rule that chose an action."""

    number: Count  # from 1, as in the list of the rules
    text: str
    binding: dict[str, str]  # what each of its variables stands for
    sentence: str


class Beat(msgspec.Struct, frozen=True):
    """A step at which something is new: another action, other facts, or an event."""

    step: Count
    action: str | None  # from here on; `None` at the end, and where the policy does not say
    rule: Fired | None
    appeared: Sequence[str]  # facts; at the beginning, none does
    vanished: Sequence[str]
    goals_left: Sequence[str]
    events: Sequence[str]  # what nature did: reported by the world
    goals_done: Sequence[str] = ()


class RuleLine(msgspec.Struct, frozen=True):
    """A rule in the list of all."""

    text: str
    sentence: str


class Beginning(msgspec.Struct, frozen=True):
    """What there is before the first step: the facts that hold, and the rules, if the policy has some."""

    facts: Sequence[str] = ()
    rules: Sequence[RuleLine] = ()


def beginning(first: Entry, rules: RulePolicy | None) -> Beginning:
    """Return what there is at the first entry of an episode."""
    return Beginning(texts(first.state), rule_lines(rules.rules) if rules else [])


def rule_lines(rules: Sequence[Rule]) -> list[RuleLine]:
    """Return the rules in order, each with what it says in English."""
    return [RuleLine(str(rule), sentence(rule)) for rule in rules]


def beats(episode: Episode) -> list[Beat]:
    """Return the entries of an episode in words, each with what is new since the one before it."""
    return [beat(entry, episode.rules) for entry in episode.entries]


def beat(entry: Entry, rules: RulePolicy | None) -> Beat:
    """Return an entry in words, with what is new since the one before it."""
    before = entry.before or entry
    return Beat(
        step=entry.step,
        action=str(entry.action) if entry.action else None,
        rule=_fired(entry, rules) if rules else None,
        appeared=texts(entry.state - before.state),
        vanished=texts(before.state - entry.state),
        goals_left=texts(entry.goal - entry.state),
        events=list(entry.events),
        goals_done=texts(entry.goal & entry.state),
    )


def _fired(entry: Entry, rules: RulePolicy) -> Fired | None:
    if entry.match is None:
        return None
    rule, binding = entry.match.rule, dict(sorted(entry.match.binding.items()))
    return Fired(rules.rules.index(rule) + 1, str(rule), binding, entry.sentence or "")


def texts(facts: Facts) -> list[str]:
    """Return facts as texts, in order."""
    return [str(fact) for fact in sorted(facts)]


def viewer_asset(name: str) -> str:
    """Return the text of a file that belongs to the page."""
    return (files("bilevel.viewer") / "assets" / name).read_text(encoding="utf-8")

"""The log of an episode: an entry for every step at which something is new, kept while the policy acts.

All that is said about an episode is a rendering of its log: lines of text while it goes on, JSON, the captions of a
video, the timeline beside a film, and what its changes of state tell about why it failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bilevel.policies.incidents import Incident
from bilevel.policies.policy import BilevelPolicy, ObservedPolicy
from bilevel.policies.recovery import RecoveringPolicy
from bilevel.policies.rollout import Episode, Transition
from bilevel.rules.explanation.english import sentence
from bilevel.rules.matching import Match
from bilevel.rules.rule_policy import RulePolicy
from bilevel.symbolic.domain import Action, Facts


@dataclass(frozen=True, slots=True)
class Entry:
    """From this step on: what holds, what is wanted, what is being done, and by which rule, if that is asked for.

    `events` are what happened at this very step that no action explains. The action of the last entry, what was seen at
    the end, is `None`, as is that of a policy that does not say what it does.
    """

    step: int
    state: Facts
    goal: Facts
    action: Action | None
    events: tuple[str, ...] = ()
    match: Match | None = None
    incidents: tuple[Incident, ...] = ()  # at this very step

    @property
    def sentence(self) -> str | None:
        """Why this is done, in English."""
        return sentence(*self.match) if self.match else None


@dataclass(frozen=True)
class Stretch:
    """Steps in a row with the same state, the last action that was done in it, and the events with their timesteps."""

    state: Facts
    action: Action | None
    start: int
    length: int
    events: Sequence[tuple[int, str]] = field(default_factory=list)


class EpisodeLog:
    """A callback of a rollout; `listener` hears of each entry, with the one before it."""

    def __init__(
        self,
        policy: ObservedPolicy,
        *,
        explain: bool = False,
        listener: Callable[[Entry, Entry | None], None] | None = None,
    ) -> None:
        self._policy, self._listener = policy, listener
        self.rules = rules_of(policy)
        self.explains = explain and self.rules is not None
        self.entries: list[Entry] = []
        self.steps = 0
        self._incidents = 0  # that are noted
        self._remarks: list[str] = []

    def __call__(self, transition: Transition) -> None:
        events = (*transition.events, *self._remarks)
        self._note(self._policy.state, self._policy.goal, self._policy.action, events)
        self.steps += 1

    def remark(self, event: str) -> None:
        """Note with the next step what somebody did who watches: it is an event, as what nature does is."""
        self._remarks.append(event)

    def finish(self, episode: Episode) -> None:
        """Note what was seen last, which nobody acts on any more."""
        labels, scene = self._policy.labels, episode.scene
        self._note(labels.state(scene), labels.goal(scene), None, (*episode.events, *self._remarks))

    def _note(self, state: Facts, goal: Facts, action: Action | None, events: tuple[str, ...]) -> None:
        last = self.entries[-1] if self.entries else None
        incidents = tuple(incidents_of(self._policy)[self._incidents :])
        if last is not None and not events and not incidents and _same(last, state, goal, action):
            return
        self._incidents += len(incidents)
        match = None
        if self.explains and self.rules is not None and action is not None:
            again = last is not None and last.action == action and last.state == state and last.goal == goal
            again = again and not self._remarks  # else the rules may be others
            match = last.match if again and last else self.rules.explain(state, goal)
        self._remarks = []
        if match is not None and match.action != action:  # what is done is not what the rules say
            match = None
        self.entries.append(Entry(self.steps, state, goal, action, events, match, incidents))
        if self._listener:
            self._listener(self.entries[-1], last)

    # What can be read off it

    def decisions(self) -> list[Entry]:
        """The entries with which another action begins."""
        found: list[Entry] = []
        for entry in self.entries:
            if entry.action is not None and not (found and found[-1].action == entry.action):
                found.append(entry)
        return found

    def stretches(self) -> list[Stretch]:
        """The steps with equal states taken together."""
        return [_stretch(list(group)) for _, group in groupby(self._timed(), key=lambda pair: pair[0].state)]

    def durations(self) -> dict[str, list[int]]:
        """For each schema, how many steps each of its actions took."""
        found: dict[str, list[int]] = {}
        for action, group in groupby(self._timed(), key=lambda pair: pair[0].action):
            if action is not None:
                found.setdefault(action.name, []).append(sum(end - entry.step for entry, end in group))
        return found

    def _timed(self) -> Iterator[tuple[Entry, int]]:
        """Each entry with the step at which the next one begins."""
        ends = [*(entry.step for entry in self.entries[1:]), self.steps]
        return zip(self.entries, ends, strict=False)

    def events(self) -> dict[str, int]:
        """How many events of each kind the environment reported."""
        return dict(Counter(kinds(event for entry in self.entries for event in entry.events)))


def incidents_of(policy: ObservedPolicy) -> Sequence[Incident]:
    """The times that a policy was at a loss in this episode, if it says so."""
    return policy.incidents if isinstance(policy, RecoveringPolicy) else ()


def rules_of(policy: ObservedPolicy) -> RulePolicy | None:
    """The rules that a policy follows, if it does."""
    high = policy.high if isinstance(policy, BilevelPolicy) else None
    return high if isinstance(high, RulePolicy) else None


def kinds(events: Iterable[str]) -> list[str]:
    """The kind of each event: its first word."""
    return [event.split()[0] for event in events if event.split()]


def _same(entry: Entry, state: Facts, goal: Facts, action: Action | None) -> bool:
    return (
        (entry.state is state or entry.state == state)
        and (entry.action is action or entry.action == action)
        and (entry.goal is goal or entry.goal == goal)
    )


def _stretch(timed: Sequence[tuple[Entry, int]]) -> Stretch:
    entries, (first, _) = [entry for entry, _ in timed], timed[0]
    actions = [entry.action for entry in entries if entry.action is not None]
    events = [(entry.step, event) for entry in entries for event in entry.events]
    return Stretch(first.state, actions[-1] if actions else None, first.step, timed[-1][1] - first.step, events)

"""What a policy saw and did in one episode, at the high level: kept while it acts, at next to no cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from bilevel.policies.policies import WatchedPolicy
from bilevel.policies.rollout import Moment, Watch
from bilevel.symbolic.domain import Action, Facts


@dataclass
class Stretch:
    """Steps in a row with the same state and the same action."""

    state: Facts
    action: Action | None
    start: int  # the moment at which it begins
    length: int = 0  # steps
    events: list[tuple[int, str]] = field(default_factory=list)  # with the moments at which they were seen


class Chronicle:
    """Watches a policy along an episode; somebody else may watch, too."""

    def __init__(self, policy: WatchedPolicy, watch: Watch | None = None) -> None:
        self._policy = policy
        self._watch = watch
        self.stretches: list[Stretch] = []
        self.steps = 0

    def __call__(self, moment: Moment) -> None:
        self._note(self._policy.state, self._policy.action, moment.info["events"]).length += 1
        self.steps += 1
        if self._watch:
            self._watch(moment)

    def finish(self, state: Facts, events: Sequence[str]) -> None:
        """Note what was seen last, which nobody acts on any more."""
        self._note(state, None, events)

    def _note(self, state: Facts, action: Action | None, events: Sequence[str]) -> Stretch:
        if self.stretches:
            last = self.stretches[-1]
            if (last.state is state or last.state == state) and (last.action is action or last.action == action):
                last.events.extend((self.steps, event) for event in events)
                return last
        self.stretches.append(Stretch(state, action, self.steps, 0, [(self.steps, event) for event in events]))
        return self.stretches[-1]

    def runs(self) -> list[Stretch]:
        """The stretches with equal states taken together; their action is the one that was done last."""
        return [_together(list(group)) for _, group in groupby(self.stretches, key=lambda stretch: stretch.state)]

    def durations(self) -> dict[str, list[int]]:
        """For each schema, how many steps each of its actions took."""
        found: dict[str, list[int]] = {}
        for action, group in groupby(self.stretches, key=lambda stretch: stretch.action):
            if action is not None:
                found.setdefault(action.name, []).append(sum(stretch.length for stretch in group))
        return found

    def events(self) -> dict[str, int]:
        """How many events of each kind the world reported."""
        return dict(Counter(kinds(event for stretch in self.stretches for _, event in stretch.events)))


def _together(stretches: Sequence[Stretch]) -> Stretch:
    actions = [stretch.action for stretch in stretches if stretch.action is not None]
    events = [event for stretch in stretches for event in stretch.events]
    length = sum(stretch.length for stretch in stretches)
    return replace(stretches[0], action=actions[-1] if actions else None, length=length, events=events)


def kinds(events: Iterable[str]) -> list[str]:
    return [event.split()[0] for event in events]

"""What is in a data set besides actions: who showed what, and which changes of the labels are no action's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from bilevel.demonstrations.change_kinds import Kind, Kinds
from bilevel.demonstrations.traces import LabelledEpisode
from bilevel.symbolic.domain import Atom, Domain, Facts


class Group(msgspec.Struct):
    """The episodes of one demonstrator that ended in the same way."""

    demonstrator: str
    outcome: str
    episodes: int = 0
    steps: int = 0


class Unreached(msgspec.Struct):
    """An episode at whose end the goal does not hold."""

    episode: int
    outcome: str
    facts: tuple[str, ...]


class Contents:
    """What is in some demonstrations, gathered one by one, and to be asked for when all are in."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.episodes = 0
        self.objects: dict[str, tuple[int, int]] = {}  # the fewest and the most of each type in an episode
        self.without_controls = 0  # episodes
        self.goals: Counter[str] = Counter()  # facts that were wanted at the end, by predicate
        self.reached: Counter[str] = Counter()  # of these, those that held
        self.reached_at_once: list[int] = []  # episodes whose goal held from the beginning
        self.unreached: list[Unreached] = []
        self._groups: dict[tuple[str, str], Group] = {}
        self._unexplained, self._ambiguous, self._flickers = Kinds(), Kinds(), Kinds()

    def add(self, episode: LabelledEpisode) -> None:
        """Take in one episode."""
        number, demonstration, states, goals, found = episode
        about = demonstration.demonstrator, demonstration.outcome
        group = self._groups.setdefault(about, Group(*about))
        group.episodes += 1
        group.steps += demonstration.steps
        self.without_controls += not demonstration.has_controls
        counts = Counter(demonstration.objects.values())
        for kind in {**self.objects, **counts}:
            fewest, most = self.objects.get(kind, (0, 0) if self.episodes else (counts[kind], counts[kind]))
            self.objects[kind] = min(fewest, counts[kind]), max(most, counts[kind])
        self.episodes += 1
        self._add_goal(number, demonstration.outcome, states, goals)
        events = {timestep for timestep, _ in demonstration.events}
        for change in found.unclear:
            kinds = self._ambiguous if change.actions else self._unexplained
            kinds.note(number, change, demonstration.objects, change.step in events)
        for change in found.flickers:
            self._flickers.note(number, change, demonstration.objects, change.step in events)

    def _add_goal(self, number: int, outcome: str, states: Sequence[Facts], goals: Sequence[Facts]) -> None:
        goal, state = goals[-1], states[-1]
        self.goals.update(fact.predicate for fact in goal)
        self.reached.update(fact.predicate for fact in goal & state)
        if goal - state:
            self.unreached.append(Unreached(number, outcome, _texts(goal - state)))
        elif all(wanted <= now for wanted, now in zip(goals, states, strict=True)):
            self.reached_at_once.append(number)

    @property
    def groups(self) -> list[Group]:
        """The episodes by demonstrator and outcome."""
        return [self._groups[about] for about in sorted(self._groups)]

    @cached_property
    def unexplained(self) -> list[Kind]:
        """The kinds of changes that no action explains, the most frequent first, these with the nearest action."""
        return self._unexplained.with_nearest(self.domain)

    @property
    def ambiguous(self) -> list[Kind]:
        """The kinds of changes that several actions explain, the most frequent first."""
        return self._ambiguous.by_count()

    @property
    def flickers(self) -> list[Kind]:
        """The kinds of changes that were undone after a few steps, the most frequent first."""
        return self._flickers.by_count()


def _texts(facts: Iterable[Atom]) -> tuple[str, ...]:
    return tuple(map(str, sorted(facts)))

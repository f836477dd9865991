"""What is in a data set besides actions: who showed what, and which changes of the labels are no action's.

Changes are counted by what they are but for the objects in them. Of each kind, the first is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from bilevel.demonstrations.traces import LabelledEpisode
from bilevel.rules.nearest_action import how_it_differs, nearest_action
from bilevel.rules.traces import Change
from bilevel.symbolic.domain import Atom, Domain, Facts

MOST_LOOKED_AT = 20  # kinds of changes, for which the nearest action is sought


class Kind(msgspec.Struct):
    """Changes that are the same but for the objects in them; all but the first three fields are about the first."""

    change: str  # lifted: "+on(?cube, ?spot) -holding(?cube)"
    count: int
    reported: int  # by the environment, as events
    episode: int
    step: int
    came: tuple[str, ...]
    went: tuple[str, ...]
    actions: tuple[str, ...]  # that explain it; none, or several
    nearest: str | None = None  # where none does
    lacks: str | None = None


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
        self._unexplained: dict[str, Kind] = {}
        self._ambiguous: dict[str, Kind] = {}
        self._flickers: dict[str, Kind] = {}
        self._first: dict[str, tuple[Change, Mapping[str, str]]] = {}  # of each kind that no action explains

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
            self._note(kinds, number, change, demonstration.objects, change.step in events)
        for change in found.flickers:
            self._note(self._flickers, number, change, demonstration.objects, change.step in events)

    def _add_goal(self, number: int, outcome: str, states: Sequence[Facts], goals: Sequence[Facts]) -> None:
        goal, state = goals[-1], states[-1]
        self.goals.update(fact.predicate for fact in goal)
        self.reached.update(fact.predicate for fact in goal & state)
        if goal - state:
            self.unreached.append(Unreached(number, outcome, _texts(goal - state)))
        elif all(wanted <= now for wanted, now in zip(goals, states, strict=True)):
            self.reached_at_once.append(number)

    def _note(
        self, kinds: dict[str, Kind], number: int, change: Change, objects: Mapping[str, str], reported: bool
    ) -> None:
        """Count a change, and keep the first of its kind."""
        came, went = change.after - change.before, change.before - change.after
        name = lifted(came, went, objects)
        kind = kinds.get(name)
        if kind is None:
            kind = Kind(name, 0, 0, number, change.step, _texts(came), _texts(went), tuple(map(str, change.actions)))
            kinds[name] = kind
            if kinds is self._unexplained:
                self._first[name] = change, objects
        kind.count += 1
        kind.reported += reported

    @property
    def groups(self) -> list[Group]:
        """The episodes by demonstrator and outcome."""
        return [self._groups[about] for about in sorted(self._groups)]

    @cached_property
    def unexplained(self) -> list[Kind]:
        """The kinds of changes that no action explains, the most frequent first, these with the nearest action."""
        kinds = _by_count(self._unexplained.values())
        for kind in kinds[:MOST_LOOKED_AT]:
            change, objects = self._first[kind.change]
            nearest = nearest_action(self.domain, change.before, change.after, objects)
            if nearest is not None:
                kind.nearest = str(nearest)
                kind.lacks = how_it_differs(self.domain, nearest, change.before, change.after)
        return kinds

    @property
    def ambiguous(self) -> list[Kind]:
        """The kinds of changes that several actions explain, the most frequent first."""
        return _by_count(self._ambiguous.values())

    @property
    def flickers(self) -> list[Kind]:
        """The kinds of changes that were undone after a few steps, the most frequent first."""
        return _by_count(self._flickers.values())


def lifted(came: Facts, went: Facts, objects: Mapping[str, str]) -> str:
    """Return what came and went, with variables named by types in the place of objects: `+on(?cube, ?spot)`."""
    variables: dict[str, str] = {}
    taken: Counter[str] = Counter()

    def variable(name: str) -> str:
        if name not in variables:
            kind = objects.get(name, "object")
            taken[kind] += 1
            variables[name] = f"?{kind}{taken[kind] if taken[kind] > 1 else ''}"
        return variables[name]

    signed = [(sign, fact) for sign, facts in (("+", came), ("-", went)) for fact in sorted(facts)]
    return " ".join(f"{sign}{Atom(fact.predicate, tuple(map(variable, fact.terms)))}" for sign, fact in signed)


def _texts(facts: Iterable[Atom]) -> tuple[str, ...]:
    return tuple(map(str, sorted(facts)))


def _by_count(kinds: Iterable[Kind]) -> list[Kind]:
    return sorted(kinds, key=lambda kind: (-kind.count, kind.change))

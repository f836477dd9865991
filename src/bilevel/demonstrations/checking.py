"""Whether a data set is whole, and what is in it: who showed what, and which changes of the labels are no action's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bilevel.demonstrations.dataset import Demonstrations, Manifest, file_name, read_episode
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.traces import LabelledEpisode, labelled
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.nearest import nearest_action
from bilevel.rules.traces import Change, Trace
from bilevel.symbolic.domain import Atom, BadInput, Domain

MOST_EXAMINED = 20  # kinds of changes, for which the nearest action is sought


def readable_episodes(
    folder: Path, manifest: Manifest, problems: list[str], callback: Callback = silent
) -> Iterator[tuple[int, Demonstration]]:
    """Give the demonstrations whose files are whole, with their numbers; the others add a line to the problems."""
    numbers: Sequence[int] = range(manifest.episodes)
    if not manifest.complete:
        numbers = [number for number in numbers if (folder / file_name(number)).is_file()]
        there = f"{len(numbers)} of {manifest.episodes} episodes are there"
        problems.append(f"{folder}: not complete, {there}; go on with: {manifest.command_for(folder)}")
    for done, number in enumerate(numbers, 1):
        try:
            yield number, read_episode(folder, manifest, number)[0]
        except BadInput as error:
            problems.append(str(error))
        callback(Progress("checking", done, manifest.episodes))


# What is in demonstrations


class Contents:
    """What is in some demonstrations, gathered one by one, and to be asked for when all are in."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.traces: list[Trace] = []
        self.episodes = self.steps = 0
        self.exogenous = self.several = 0  # changes that no action explains, and that several do
        self.actions: Counter[str] = Counter()  # carried out, by schema
        self.events: Counter[str] = Counter()  # that the environment itself reported, by kind
        self.objects: dict[str, set[int]] = {}  # how many of each type there are in an episode
        self.groups: Counter[tuple[str, str]] = Counter()  # episodes, by demonstrator and outcome
        self.without_controls = 0  # episodes
        self.goals: Counter[str] = Counter()  # facts that were wanted at the end, by predicate
        self.reached: Counter[str] = Counter()  # of these, those that held
        self.reached_at_once: list[int] = []  # episodes whose goal held from the beginning
        self.unreached: dict[int, tuple[str, ...]] = {}  # what was wanted in vain, by episode
        self._unclear: list[Noted] = []
        self._flickers: list[Noted] = []

    @classmethod
    def of(cls, demonstrations: Demonstrations, callback: Callback = silent) -> Contents:
        """Return what is in demonstrations, as they were labelled when they were recorded."""
        contents = cls(demonstrations.domain)
        for number, demonstration in enumerate(demonstrations):
            contents.add(labelled(number, demonstration, contents.domain))
            callback(Progress("labelling", number + 1, len(demonstrations)))
        return contents

    def add(self, episode: LabelledEpisode) -> None:
        """Take in one episode."""
        number, demonstration, states, goals, found = episode
        self.traces += found.traces
        self.episodes += 1
        self.steps += demonstration.steps
        self.exogenous += found.exogenous
        self.several += found.ambiguous
        self.actions.update(step.action.action.name for trace in found.traces for step in trace.steps)
        self.events.update(event.split()[0] for _, event in demonstration.events if event.split())
        for kind, count in Counter(demonstration.objects.values()).items():
            self.objects.setdefault(kind, set()).add(count)
        self.groups[demonstration.demonstrator, demonstration.outcome] += 1
        self.without_controls += not demonstration.has_controls
        goal, state = goals[-1], states[-1]
        self.goals.update(fact.predicate for fact in goal)
        self.reached.update(fact.predicate for fact in goal & state)
        if goal - state:
            self.unreached[number] = _texts(goal - state)
        elif all(wanted <= now for wanted, now in zip(goals, states, strict=True)):
            self.reached_at_once.append(number)
        events = {timestep for timestep, _ in demonstration.events}
        for noted, changes in ((self._unclear, found.unclear), (self._flickers, found.flickers)):
            noted += (Noted(number, each, demonstration.objects, each.step in events) for each in changes)

    @property
    def unexplained(self) -> list[Kind]:
        """The kinds of changes that no action explains, with the nearest action."""
        return kinds_of((each for each in self._unclear if not each.change.actions), self.domain)

    @property
    def ambiguous(self) -> list[Kind]:
        """The kinds of changes that several actions explain."""
        return kinds_of(each for each in self._unclear if each.change.actions)

    @property
    def flickers(self) -> list[Kind]:
        """The kinds of changes that were undone after a few steps."""
        return kinds_of(self._flickers)


# Changes of labels, counted by what they are but for the objects in them


class Noted(NamedTuple):
    """A change in an episode, the types of the objects there, and whether the environment reported it as an event."""

    episode: int
    change: Change
    objects: Mapping[str, str]
    is_reported: bool = False


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


def kinds_of(changes: Iterable[Noted], domain: Domain | None = None) -> list[Kind]:
    """Return the kinds of these changes, the most frequent first; with a domain, these have its nearest action."""
    groups: dict[str, list[Noted]] = {}
    for each in changes:
        groups.setdefault(_lifted(each), []).append(each)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        _kind(name, group, domain if place < MOST_EXAMINED else None) for place, (name, group) in enumerate(ordered)
    ]


def _kind(name: str, group: Sequence[Noted], domain: Domain | None) -> Kind:
    episode, change, objects, _ = group[0]
    nearest = nearest_action(domain, change.before, change.after, objects) if domain else None
    return Kind(
        change=name,
        count=len(group),
        reported=sum(each.is_reported for each in group),
        episode=episode,
        step=change.step,
        came=_texts(change.after - change.before),
        went=_texts(change.before - change.after),
        actions=tuple(map(str, change.actions)),
        nearest=str(nearest.action.action) if nearest else None,
        lacks=str(nearest.lacks) if nearest else None,
    )


def _lifted(noted: Noted) -> str:
    """Return what came and went, with variables named by types in the place of objects: `+on(?cube, ?spot)`."""
    _, change, objects, _ = noted
    variables: dict[str, str] = {}
    taken: Counter[str] = Counter()

    def variable(name: str) -> str:
        if name not in variables:
            kind = objects.get(name, "object")
            taken[kind] += 1
            variables[name] = f"?{kind}{taken[kind] if taken[kind] > 1 else ''}"
        return variables[name]

    signed = [("+", fact) for fact in sorted(change.after - change.before)]
    signed += [("-", fact) for fact in sorted(change.before - change.after)]
    return " ".join(f"{sign}{Atom(fact.predicate, tuple(map(variable, fact.terms)))}" for sign, fact in signed)


def _texts(facts: Iterable[Atom]) -> tuple[str, ...]:
    return tuple(map(str, sorted(facts)))

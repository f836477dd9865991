"""Whether a data set is whole, and what is in it: who showed what, and which changes of the labels are no action's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from bilevel.demonstrations.dataset import DOMAIN, Demonstrations, Manifest, file_name, read_episode, read_manifest
from bilevel.demonstrations.traces import LabelledEpisode, labelled
from bilevel.json_files import Damaged
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.nearest_action import nearest_action
from bilevel.rules.traces import Change, Trace
from bilevel.symbolic.adl import read_adl_domain
from bilevel.symbolic.domain import Atom, BadInput, Domain, Facts
from bilevel.tasks.task import Task

MOST_EXAMINED = 20  # kinds of changes, for which the nearest action is sought


@dataclass(frozen=True)
class Report:
    """What is wrong with a data set, a line each, and what is in it as far as it can be read."""

    problems: tuple[str, ...]
    task: str | None = None
    contents: Contents | None = None
    megabytes: float = 0.0


Look = Callable[[LabelledEpisode], None]


def check(
    folder: Path,
    task: Task | None = None,
    callback: Callback = silent,
    begin: Callable[[Manifest, Domain], Look] | None = None,
) -> Report:
    """Read every file of a data set, label it anew if the task is given, and return what is wrong, and what is in it.

    Raise `BadInput` where there is no data set, or one of another format. Once it is known what is in it, `begin` gives
    a function that looks at every episode.
    """
    try:
        manifest = read_manifest(folder)
    except Damaged as error:
        return Report(problems=(str(error),))
    try:
        domain = task.domain if task else read_adl_domain(folder / DOMAIN)
    except BadInput as error:
        return Report((str(error),), manifest.settings.task)
    problems, size = [], 0
    contents = Contents(domain)
    look = begin(manifest, domain) if begin else None
    there = [index for index in range(manifest.episodes) if (folder / file_name(index)).is_file()]
    if not manifest.complete:
        advice = f"go on with: {manifest.command_for(folder)}"
        problems = [f"{folder}: not complete, {len(there)} of {manifest.episodes} episodes are there; {advice}"]
    for done, index in enumerate(there if problems else range(manifest.episodes), 1):
        try:
            demonstration, data = read_episode(folder, manifest, index)
        except BadInput as error:
            problems.append(str(error))
        else:
            size += len(data)
            episode = labelled(index, demonstration, domain, task)
            contents.add(episode)
            if look:
                look(episode)
        callback(Progress("checking", done, manifest.episodes))
    return Report(tuple(problems), manifest.settings.task, contents, size / 1e6)


# What is in demonstrations


class Shown(msgspec.Struct):
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
        self.traces: list[Trace] = []
        self.episodes = self.steps = 0
        self.exogenous = self.several = 0  # changes that no action explains, and that several do
        self.actions: Counter[str] = Counter()  # carried out, by schema
        self.events: Counter[str] = Counter()  # that the environment itself reported, by kind
        self.objects: dict[str, tuple[int, int]] = {}  # the fewest and the most of each type in an episode
        self.without_controls = 0  # episodes
        self.goals: Counter[str] = Counter()  # facts that were wanted at the end, by predicate
        self.reached: Counter[str] = Counter()  # of these, those that held
        self.reached_at_once: list[int] = []  # episodes whose goal held from the beginning
        self.unreached: list[Unreached] = []
        self._groups: dict[tuple[str, str], Shown] = {}
        self._unexplained, self._ambiguous, self._flickers = Kinds(), Kinds(), Kinds()

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
        number, demonstration, _, _, found = episode
        self.traces += found.traces
        self.steps += demonstration.steps
        self.exogenous += found.exogenous
        self.several += found.ambiguous
        self.actions.update(step.action.action.name for trace in found.traces for step in trace.steps)
        self.events.update(event.split()[0] for _, event in demonstration.events if event.split())
        shown_by = demonstration.demonstrator, demonstration.outcome
        group = self._groups.setdefault(shown_by, Shown(*shown_by))
        group.episodes += 1
        group.steps += demonstration.steps
        self.without_controls += not demonstration.has_controls
        counts = Counter(demonstration.objects.values())
        for kind in {**self.objects, **counts}:
            fewest, most = self.objects.get(kind, (0, 0) if self.episodes else (counts[kind], counts[kind]))
            self.objects[kind] = min(fewest, counts[kind]), max(most, counts[kind])
        self.episodes += 1
        self._add_goal(episode)
        events = {timestep for timestep, _ in demonstration.events}
        for change in found.unclear:
            kinds = self._ambiguous if change.actions else self._unexplained
            kinds.note(number, change, demonstration.objects, change.step in events)
        for change in found.flickers:
            self._flickers.note(number, change, demonstration.objects, change.step in events)

    def _add_goal(self, episode: LabelledEpisode) -> None:
        goal, state = episode.goals[-1], episode.states[-1]
        self.goals.update(fact.predicate for fact in goal)
        self.reached.update(fact.predicate for fact in goal & state)
        if goal - state:
            self.unreached.append(Unreached(episode.number, episode.demonstration.outcome, _texts(goal - state)))
        elif all(wanted <= now for wanted, now in zip(episode.goals, episode.states, strict=True)):
            self.reached_at_once.append(episode.number)

    @property
    def groups(self) -> list[Shown]:
        """The episodes by demonstrator and outcome."""
        return [self._groups[shown_by] for shown_by in sorted(self._groups)]

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


# Changes of labels, counted by what they are but for the objects in them


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


class Kinds:
    """Changes of some sort, such as those that no action explains, gathered one by one."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._first: dict[str, tuple[Change, Mapping[str, str]]] = {}

    def note(self, episode: int, change: Change, objects: Mapping[str, str], reported: bool = False) -> None:
        """Count a change, and keep the first of its kind."""
        came, went = change.after - change.before, change.before - change.after
        name = lifted(came, went, objects)
        kind = self._kinds.get(name)
        if kind is None:
            kind = Kind(name, 0, 0, episode, change.step, _texts(came), _texts(went), tuple(map(str, change.actions)))
            self._kinds[name] = kind
            self._first[name] = change, objects
        kind.count += 1
        kind.reported += reported

    def by_count(self) -> list[Kind]:
        """Return the kinds, the most frequent first."""
        return sorted(self._kinds.values(), key=lambda kind: (-kind.count, kind.change))

    def with_nearest(self, domain: Domain) -> list[Kind]:
        """Return the kinds, the most frequent first; these have the nearest action."""
        kinds = self.by_count()
        for kind in kinds[:MOST_EXAMINED]:
            change, objects = self._first[kind.change]
            nearest = nearest_action(domain, change.before, change.after, objects)
            if nearest is not None:
                kind.nearest, kind.lacks = str(nearest.action.action), str(nearest.lacks)
        return kinds


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

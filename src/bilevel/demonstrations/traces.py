"""What demonstrations say at the high level: their traces, the action of each step, and what is odd in the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from bilevel.demonstrations.dataset import Demonstration, Demonstrations
from bilevel.progress import Callback, Progress, silent
from bilevel.rules.nearest import nearest_action
from bilevel.rules.traces import Abstraction, Change, Trace, traces_from_states
from bilevel.symbolic.domain import Atom, Domain, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Task

MOST_EXAMINED = 20  # kinds of changes, for which the nearest action is sought


def label(
    demonstration: Demonstration, task: Task | None = None, scenes: Sequence[Scene] | None = None
) -> tuple[list[Facts], list[Facts]]:
    """Return state and goal at every timestep: as the task labels the scenes, or else as they were recorded."""
    if task is None:
        recorded = demonstration.at_each_timestep
        return recorded(demonstration.states), recorded(demonstration.goals)
    labels, scenes = task.labels, scenes or demonstration.scenes(task.spec)
    return [labels.state(scene) for scene in scenes], [labels.goal(scene) for scene in scenes]


def explain(
    demonstration: Demonstration,
    domain: Domain,
    states: Sequence[Facts],
    goals: Sequence[Facts],
    *,
    use_recorded: bool = True,
) -> Abstraction:
    """Return the actions that explain the changes of the labelled states, and for each step the one it helps to do.

    Before a change that no action explains, it is what the expert was recorded to be doing, if that may be used.
    """
    recorded = (*demonstration.actions, None) if use_recorded and domain.schemas else ()
    found = traces_from_states(domain, states, goals, demonstration.objects, recorded=recorded)
    return replace(found, actions=found.actions[:-1])


class LabelledEpisode(NamedTuple):
    """A demonstration by its number, state and goal at every timestep, and what they say at the high level."""

    number: int
    demonstration: Demonstration
    states: list[Facts]
    goals: list[Facts]
    found: Abstraction


def labelled(number: int, demonstration: Demonstration, domain: Domain, task: Task | None = None) -> LabelledEpisode:
    """Return a demonstration labelled, anew if the task is given, and explained."""
    states, goals = label(demonstration, task)
    return LabelledEpisode(number, demonstration, states, goals, explain(demonstration, domain, states, goals))


# What is in a data set


class Contents:
    """What is in some demonstrations, gathered one by one, and to be asked for when all are in."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.traces: list[Trace] = []
        self.episodes = self.steps = 0
        self.exogenous = self.several = 0  # changes that no action explains, and that several do
        self.actions: Counter[str] = Counter()  # carried out, by schema
        self.demonstrators: Counter[str] = Counter()  # episodes, by who showed them
        self.without_controls = 0  # episodes
        self.goals: Counter[str] = Counter()  # facts that were wanted at the end, by predicate
        self.reached: Counter[str] = Counter()  # of these, those that held
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
        self.demonstrators[demonstration.demonstrator] += 1
        self.without_controls += not demonstration.has_controls
        self.goals.update(fact.predicate for fact in goals[-1])
        self.reached.update(fact.predicate for fact in goals[-1] & states[-1])
        events = {timestep for timestep, _ in demonstration.events}
        unclear = [change for change in found.changes if len(change.actions) != 1]
        for noted, changes in ((self._unclear, unclear), (self._flickers, found.flickers)):
            noted += (Noted(number, each, demonstration.objects, each.step in events) for each in changes)

    def kinds(self) -> dict[str, list[Kind]]:
        """Return the kinds of odd changes: that no action explains, that several explain, that were undone at once."""
        return {
            "unexplained": kinds_of((each for each in self._unclear if not each.change.actions), self.domain),
            "ambiguous": kinds_of(each for each in self._unclear if each.change.actions),
            "flickers": kinds_of(self._flickers),
        }


# Changes of labels, counted by what they are but for the objects in them


class Noted(NamedTuple):
    """A change in an episode, the types of the objects there, and whether the environment reported it as an event."""

    episode: int
    change: Change
    objects: Mapping[str, str]
    is_reported: bool = False

    def told(self) -> tuple[str, str]:
        """Return what came and went, `+on(cube1, spot2)`, lifted by variables named after types, and as it was."""
        before, after = self.change.before, self.change.after
        facts = [("+", fact) for fact in sorted(after - before)] + [("-", fact) for fact in sorted(before - after)]
        variables: dict[str, str] = {}
        taken: Counter[str] = Counter()
        for name in dict.fromkeys(name for _, fact in facts for name in fact.terms):
            kind = self.objects.get(name, "object")
            taken[kind] += 1
            variables[name] = f"?{kind}{taken[kind] if taken[kind] > 1 else ''}"
        lifted = [(sign, Atom(fact.predicate, tuple(variables[name] for name in fact.terms))) for sign, fact in facts]
        return " ".join(f"{sign}{fact}" for sign, fact in lifted), " ".join(f"{sign}{fact}" for sign, fact in facts)


class Kind(msgspec.Struct):
    """Changes that are the same but for the objects in them; all but the first three fields are about the first."""

    change: str  # lifted: "+on(?cube, ?spot) -holding(?cube)"
    count: int
    reported: int  # by the environment, as events
    episode: int
    step: int
    first: str  # "+on(cube1, spot2) -holding(cube1)"
    actions: tuple[str, ...]  # that explain it; none, or several
    nearest: str | None = None  # action, where none explains it
    lacks: str | None = None  # what is in its way


def kinds_of(changes: Iterable[Noted], domain: Domain | None = None) -> list[Kind]:
    """Return the kinds of these changes, the most frequent first; with a domain, these have its nearest action."""
    alike: dict[str, list[tuple[str, Noted]]] = {}
    for each in changes:
        lifted, text = each.told()
        alike.setdefault(lifted, []).append((text, each))
    kinds: list[Kind] = []
    for lifted, found in sorted(alike.items(), key=lambda item: (-len(item[1]), item[0])):
        text, (episode, change, objects, _) = found[0]
        reported, actions = sum(each.is_reported for _, each in found), tuple(map(str, change.actions))
        kinds.append(Kind(lifted, len(found), reported, episode, change.step, text, actions))
        if domain is not None and len(kinds) <= MOST_EXAMINED:
            nearest = nearest_action(domain, change.before, change.after, objects)
            kinds[-1].nearest, kinds[-1].lacks = (str(nearest.action), str(nearest.lacks)) if nearest else (None, None)
    return kinds

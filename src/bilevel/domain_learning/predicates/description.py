"""How well predicates describe demonstrations, in bits: what it costs to say what happened, and in which words.

Changes of facts that lie close together are one change; changes that look the same when objects become variables are
one operator, and what held before each of them is its precondition. Then it costs to say

- which operator happened next, of all that were possible: nothing, where the preconditions leave no choice;
- each change that is too rare to be an operator;
- each interaction that no fact tells of: something was taken, let go or moved otherwise, came, went, or changed;
- the operators and predicates themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import log2

import numpy as np

from bilevel.domain_learning.changes import Change, find_changes
from bilevel.domain_learning.composites import separate
from bilevel.domain_learning.conditions import held_always
from bilevel.domain_learning.episodes import Episode
from bilevel.domain_learning.lifting import Group, group_changes
from bilevel.domain_learning.predicates.tracks import Motion, Track, runs
from bilevel.rules.matching import join
from bilevel.symbolic.domain import Facts
from bilevel.tasks.spec import LabelOnly

SETTLING, BLIP = 5, 2  # timesteps: as in learning operators
WINDOW = 10  # timesteps between an interaction and the change of facts that tells of it
FEWEST, SHARE = 3, 0.01  # what happens less often, or in a smaller share of all changes, is no operator
MISSES = 0.03  # the share of an operator's instances that may lack a condition
MOST_DECISIONS = 400  # changes of which it is counted what else was possible

UNTOLD = 30.0  # bits for an interaction that no fact tells of
RARE = 16.0  # bits for a change that is no operator
OPERATOR, LITERAL, PREDICATE, TEST = 4.0, 1.0, 4.0, 2.0  # bits


@dataclass(frozen=True)
class Interaction:
    """At a timestep something happened to an object."""

    step: int
    name: str


def interactions(track: Track, motion: Motion) -> Iterator[Interaction]:
    """Yield what happened: objects that began or ceased to be carried, that leapt, came, went, or changed a feature."""
    for row, (name, kind) in enumerate(track.roster.objects.items()):
        for start, end in runs(motion.carried[:, row]):
            yield Interaction(start, name)
            if end < track.length:
                yield Interaction(end, name)
        if motion.carried[:, row].any() or motion.moved[:, row].sum() > motion.leapt[:, row].sum():
            yield from (Interaction(int(step), name) for step in np.flatnonzero(motion.leapt[:, row]))
        seen = track.visible[:, row]
        yield from (Interaction(int(step) + 1, name) for step in np.flatnonzero(seen[1:] & ~seen[:-1]))
        roles = track.spec.object_roles[kind].items()
        columns = [track.spec.column[feature] for feature, role in roles if isinstance(role, LabelOnly)]
        changed = (np.diff(track.features[:, row, columns], axis=0) != 0).any(axis=1) & seen[1:] & seen[:-1]
        if changed.mean() < 0.1:  # else it is a measurement
            yield from (Interaction(int(step) + 1, name) for step in np.flatnonzero(changed))


@dataclass(frozen=True)
class Operator:
    """A change that happens often, over variables, with what always held before it."""

    types: Mapping[str, str]
    add: Facts
    delete: Facts
    condition: Facts
    count: int
    is_arrival: bool

    @classmethod
    def of(cls, group: Group) -> Operator:
        """Make one of a group of equal changes."""
        held = held_always(group.occurrences, int(MISSES * len(group.occurrences)))
        is_arrival = all(occurrence.change.is_arrival for occurrence in group.occurrences)
        return cls(group.types, group.add, group.delete, held, len(group.occurrences), is_arrival)

    @property
    def literals(self) -> int:
        """How many literals it has."""
        return len(self.add) + len(self.delete) + len(self.condition)

    def possible(self, state: Facts, objects: Mapping[str, str]) -> int:
        """Return for how many tuples of objects it could happen in a state."""
        found = set()
        for binding in join([(atom, state) for atom in sorted(self.condition)], {}):
            ranges = [
                [binding[variable]] if variable in binding else [name for name in objects if objects[name] == kind]
                for variable, kind in self.types.items()
            ]
            found |= {names for names in product(*ranges) if len(set(names)) == len(names)}
        return len(found)


@dataclass(frozen=True)
class Description:
    """What it costs to describe the demonstrations, part by part."""

    predicates: int
    tests: int
    operators: tuple[Operator, ...]
    rare: int
    untold: int
    choices: float  # bits

    @cached_property
    def bits(self) -> float:
        """The whole cost."""
        model = PREDICATE * self.predicates + TEST * self.tests
        model += sum(OPERATOR + LITERAL * operator.literals for operator in self.operators)
        return model + RARE * self.rare + UNTOLD * self.untold + self.choices


def describe(
    states: Sequence[Sequence[Facts]],
    tracks: Sequence[Track],
    happened: Sequence[Sequence[Interaction]],
    predicates: int,
    tests: int,
) -> Description:
    """Return what it costs to describe the tracks by these states, one for each timestep."""
    episodes = [Episode(facts, track.roster.objects) for facts, track in zip(states, tracks, strict=True)]
    found = find_changes(episodes, SETTLING, BLIP).changes
    types = [episode.objects for episode in episodes]
    parts = separate(found, [tracks[change.episode].seen_before(change.step) for change in found], types)
    changes = [replace(change, is_arrival=_is_arrival(change, tracks[change.episode])) for change in parts]
    groups, left = group_changes(changes, types)
    fewest = max(FEWEST, SHARE * len(changes))
    operators = tuple(Operator.of(group) for group in groups if len(group.occurrences) >= fewest)
    rare = len(left) + sum(len(group.occurrences) for group in groups if len(group.occurrences) < fewest)
    acts = [operator for operator in operators if not operator.is_arrival]
    decisions = [change for change in changes if not change.is_arrival]
    asked = np.random.default_rng(0).permutation(len(decisions))[:MOST_DECISIONS].tolist()
    bits = sum(_choice(decisions[place], acts, tracks[decisions[place].episode]) for place in asked)
    bits *= len(decisions) / max(1, len(asked))
    return Description(predicates, tests, operators, rare, _untold(happened, changes), bits)


def _is_arrival(change: Change, track: Track) -> bool:
    """Return whether nothing but newcomers is concerned."""
    names = {term for fact in change.after ^ change.before for term in fact.terms}
    return bool(names) and names.isdisjoint(track.seen_before(change.step))


def _choice(change: Change, operators: Sequence[Operator], track: Track) -> float:
    """Return how many bits it takes to say which of all possible operators happened."""
    objects = {name: track.roster.objects[name] for name in track.seen_before(change.step + 1)}
    return log2(max(1, sum(operator.possible(change.before, objects) for operator in operators)))


def _untold(happened: Sequence[Sequence[Interaction]], changes: Sequence[Change]) -> int:
    """Return how many interactions no change tells of: none close by in time is about the object."""
    told: set[tuple[int, str, int]] = set()
    for change in changes:
        names = {term for fact in change.after ^ change.before for term in fact.terms}
        told |= {(change.episode, name, change.step + late) for name in names for late in range(-WINDOW, WINDOW + 1)}
    everything = [(episode, one.name, one.step) for episode, found in enumerate(happened) for one in found]
    return sum(one not in told for one in everything)

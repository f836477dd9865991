"""Labelled episodes, and where their symbols change, without flicker; what settles together is one change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, groupby, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.demonstrations.traces import label
from bilevel.symbolic.domain import ROOT_TYPE, BadInput, Domain, Facts, Parameter, Predicate
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Position, Spec
from bilevel.tasks.task import Task


@dataclass(frozen=True)
class Motion:
    """Where the agent and the objects were at every timestep, and what was done from one to the next.

    Coordinates are those that agent and objects have in common; they are not a number where an object is not visible,
    or has no such coordinate.
    """

    agent: Array  # (timesteps, coordinates)
    places: Array  # (timesteps, objects, coordinates), in the order of the episode's objects
    visible: NDArray[np.bool_]  # (timesteps, objects)
    controls: Array  # (steps, size), normalised; of no size where nobody recorded any


@dataclass(frozen=True)
class Episode:
    """Labelled states, one for each timestep, and the types of all objects in them.

    Without `motion`, as of a plan, nothing but symbols is known. `goals` are those of each timestep, if there are any.
    """

    states: Sequence[Facts]
    objects: Mapping[str, str]
    goals: Sequence[Facts] = ()
    motion: Motion | None = None

    def present(self) -> Iterator[frozenset[str]]:
        """Give the objects that are there at every timestep.

        These are those that are visible or, where that is not known, those that have been in a fact by then, or never
        are in any.
        """
        if self.motion is not None:
            names = list(self.objects)
            for row in self.motion.visible:
                yield frozenset(name for name, is_visible in zip(names, row.tolist(), strict=True) if is_visible)
            return
        facts = frozenset().union(*self.states)
        there = self.objects.keys() - {term for fact in facts for term in fact.terms}
        for state in self.states:
            there |= {term for fact in state for term in fact.terms} & self.objects.keys()
            yield frozenset(there)


def episodes_of(demonstrations: Demonstrations, task: Task | None = None) -> Iterator[Episode]:
    """Give the episodes of a data set, labelled anew where the task is given."""
    for demonstration in demonstrations:
        states, goals = label(demonstration, task)
        motion = motion_of(demonstration, demonstrations.spec, demonstrations.controls)
        yield Episode(states, demonstration.objects, goals, motion)


def motion_of(demonstration: Demonstration, spec: Spec, controls: Controls) -> Motion:
    """Return how everything moved in a demonstration."""
    names = [name for name, role in spec.agent_roles.items() if isinstance(role, Position)]
    places = np.full((*demonstration.features.shape[:2], len(names)), np.nan, np.float32)
    for row, kind in enumerate(demonstration.objects.values()):
        for column, name in enumerate(names):
            if isinstance(spec.object_roles[kind].get(name), Position):
                places[:, row, column] = demonstration.features[:, row, spec.column[name]]
    places[~demonstration.visible] = np.nan
    agent = demonstration.agent[:, [spec.agent_column[name] for name in names]]
    done = controls.encode(demonstration.controls) if demonstration.has_controls else np.zeros((0, 0), np.float32)
    return Motion(agent, places, demonstration.visible, done)


LEARNED = "learned"


def inferred_frame(episodes: Sequence[Episode], name: str = LEARNED) -> Domain:
    """Return a domain with the predicates of all facts, and no actions.

    Where one argument of a predicate takes objects of several types, these get a common type above them, called after
    its members. `BadInput` where a predicate has facts of different arity.
    """
    seen: dict[str, list[set[str]]] = {}
    kinds: set[str] = set()
    for episode in episodes:
        kinds.update(episode.objects.values())
        for fact in sorted(frozenset().union(*set(episode.states), *set(episode.goals))):
            places = seen.setdefault(fact.predicate, [set() for _ in fact.terms])
            if len(places) != len(fact.terms):
                arities = f"{len(places)} and of {len(fact.terms)} objects"
                raise BadInput(
                    f"the labels have facts of '{fact.predicate}' of {arities}: give one of them another name"
                )
            for place, term in zip(places, fact.terms, strict=True):
                place.add(episode.objects.get(term, ROOT_TYPE))
    parents = _common_types([place for places in seen.values() for place in places if place != kinds])
    domain = Domain(name, {}, {}, {kind: parents.get(kind, ROOT_TYPE) for kind in sorted(kinds | {*parents.values()})})
    predicates = {
        predicate: Predicate(
            predicate, tuple(Parameter(f"?x{i}", common_type(domain, k)) for i, k in enumerate(places))
        )
        for predicate, places in sorted(seen.items())
    }
    return Domain(name, predicates, {}, domain.types)


def _common_types(sets: Sequence[set[str]]) -> dict[str, str]:
    """Return for each type that shares an argument with others the one above all of these."""
    above: dict[str, set[str]] = {}
    for kinds in sets:
        if len(kinds) > 1 and ROOT_TYPE not in kinds:
            together = set(kinds).union(*(above.get(kind, set()) for kind in kinds))
            above |= dict.fromkeys(together, together)
    return {kind: "-or-".join(sorted(together)) for kind, together in above.items()}


def ancestors(domain: Domain, kind: str) -> list[str]:
    """Return the type itself and those above it, up to the one above all."""
    found = [kind]
    while found[-1] != ROOT_TYPE:
        found.append(domain.types.get(found[-1], ROOT_TYPE))
    return found


def common_type(domain: Domain, kinds: set[str] | Mapping[str, object] | Sequence[str]) -> str:
    """Return the least type above all of these."""

    def above(one: str, other: str) -> str:
        others = ancestors(domain, other)
        return next(kind for kind in ancestors(domain, one) if kind in others)

    return reduce(above, sorted(kinds)) if kinds else ROOT_TYPE


BEYOND_CHANCE = 0.3  # by how much more often than by chance two predicates of one kind change together

NEVER = np.zeros(0, np.int64)
Times = dict[str, NDArray[np.int64]]  # by predicate: the timesteps at which some fact of it changes


def independent_predicates(episodes: Sequence[Sequence[Facts]], settling: int) -> list[frozenset[str]]:
    """Return the predicates that ever change, those together that depend on each other.

    Two do if the one changes at the same timestep as the other, or within `settling` of it, clearly more often than it
    would at any other time.
    """
    times = [(_change_times(states), len(states)) for states in episodes]
    predicates = sorted({predicate for found, _ in times for predicate in found})
    family = {predicate: frozenset({predicate}) for predicate in predicates}
    for one, other in combinations(predicates, 2):
        if family[one] is family[other]:
            continue
        pairs = product(((one, other), (other, one)), (0, settling))
        if any(_depend(*pair, times, window) for pair, window in pairs):
            joined = family[one] | family[other]
            family |= dict.fromkeys(joined, joined)
    return sorted(set(family.values()), key=sorted)


def _change_times(states: Sequence[Facts]) -> Times:
    found: dict[str, list[int]] = {}
    for step in range(1, len(states)):
        if states[step] is not states[step - 1] and states[step] != states[step - 1]:
            for predicate in {fact.predicate for fact in states[step] ^ states[step - 1]}:
                found.setdefault(predicate, []).append(step)
    return {predicate: np.array(steps, np.int64) for predicate, steps in found.items()}


def _depend(one: str, other: str, times: Sequence[tuple[Times, int]], window: int) -> bool:
    """Whether one predicate changes with another clearly more often than by chance."""
    here, chance, total = 0, 0.0, 0
    for found, length in times:
        steps, others = found.get(one, NEVER), found.get(other, NEVER)
        total += len(steps)
        here += _near(steps, others, window)
        chance += len(steps) * _near(np.arange(1, length), others, window) / max(1, length - 1)
    return here - chance > BEYOND_CHANCE * total


def _near(steps: NDArray[np.int64], others: NDArray[np.int64], window: int) -> int:
    """How many of the steps are within a window of one of the others."""
    if not (len(others) and len(steps)):
        return 0
    places = np.searchsorted(others, steps)
    after = np.abs(others[np.minimum(places, len(others) - 1)] - steps)
    before = np.abs(others[np.maximum(places - 1, 0)] - steps)
    return int((np.minimum(before, after) <= window).sum())


Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """One settled state, which began at a timestep, ends at another, at which the first fact changed."""

    episode: int
    begin: int
    step: int
    before: Facts
    after: Facts
    is_arrival: bool = False  # of objects that nobody had seen, beside another change


class Seen(NamedTuple):
    """A settled state, and the types of the episode's objects."""

    state: Facts
    objects: Mapping[str, str]


@dataclass(frozen=True)
class Changes:
    """All changes of some episodes, the settled states, and how often there was nothing but flicker."""

    changes: tuple[Change, ...]
    states: tuple[Seen, ...]  # the distinct ones, in the order in which they were first seen
    blips: int  # of a fact, for a timestep or two
    undone: int  # changes after which all was as before


def find_changes(episodes: Sequence[Episode], settling: int, blip: int) -> Changes:
    """Find the changes of every episode.

    A fact that holds, or does not, for at most `blip` timesteps is taken for a mislabel. What changes within `settling`
    timesteps of each other is one change, but for predicates that have nothing to do with each other. With both 0, as
    for plans, every difference is a change.
    """
    changes: list[Change] = []
    states: dict[Facts, Seen] = {}
    undone = 0
    cleaned = [without_blips(episode.states, blip) for episode in episodes]
    every = [settled for settled, _ in cleaned]
    families: list[frozenset[str] | None] = [None]
    if settling:
        families = [*independent_predicates(every, settling)]
    for number, (episode, settled) in enumerate(zip(episodes, every, strict=True)):
        found: list[Change] = []
        for family in families:
            for begin, step, before, after in _settled_changes(settled, settling, family):
                if before == after:
                    undone += 1
                else:
                    found.append(Change(number, begin, step, before, after))
        for change in sorted(found, key=lambda change: change.step):
            changes.append(change)
            for state in (change.before, change.after):
                states.setdefault(state, Seen(state, episode.objects))
        if settled:
            states.setdefault(settled[0], Seen(settled[0], episode.objects))
    return Changes(tuple(changes), tuple(states.values()), sum(removed for _, removed in cleaned), undone)


def _settled_changes(
    states: Sequence[Facts], settling: int, family: frozenset[str] | None
) -> list[tuple[int, int, Facts, Facts]]:
    """Return for each change since when all had been settled, when it began, and the states before and after.

    With a `family` of predicates, only their facts change.
    """
    steps = [
        step
        for step in range(1, len(states))
        if states[step] is not states[step - 1]
        and any(family is None or fact.predicate in family for fact in states[step] ^ states[step - 1])
    ]
    together: list[list[int]] = []
    for step in steps:
        if together and step - together[-1][-1] <= settling:
            together[-1].append(step)
        else:
            together.append([step])
    begins = [0, *(group[-1] for group in together)]
    pairs = zip(begins, together, strict=False)
    return [(begin, group[0], *_ends(states[group[0] - 1], states[group[-1]], family)) for begin, group in pairs]


def _ends(before: Facts, after: Facts, family: frozenset[str] | None) -> tuple[Facts, Facts]:
    """Return the state before, and that state with what has changed of a family of predicates."""
    if family is None:
        return before, after
    changed = frozenset(fact for fact in before ^ after if fact.predicate in family)
    return before, before ^ changed


def without_blips(states: Sequence[Facts], blip: int) -> tuple[list[Facts], int]:
    """Return the states as most timesteps around each have them, fact by fact, and how many facts differ."""
    runs = [(state, len(list(group))) for state, group in groupby(states)]
    if blip == 0 or len(runs) < 3 or all(length > blip for _, length in runs[1:-1]):
        return list(states), 0
    facts = sorted(frozenset().union(*(state for state, _ in runs)))
    rows = np.array([[fact in state for fact in facts] for state, _ in runs], bool)
    held = np.repeat(rows, [length for _, length in runs], axis=0)
    smooth = _majority(held, blip)
    changed = np.flatnonzero((smooth != held).any(axis=1))
    result = list(states)
    for step in changed.tolist():
        result[step] = frozenset(fact for fact, holds in zip(facts, smooth[step], strict=True) if holds)
    return result, int((smooth != held).sum())


def _majority(held: Bools, blip: int) -> Bools:
    """Return what most of the timesteps from `blip` before to `blip` after each one say.

    The last timestep goes on for ever, as an episode may end with what was wanted. The first is as doubtful as any.
    """
    padded = np.concatenate([held[1 : blip + 1][::-1], held, np.repeat(held[-1:], blip, axis=0)])
    total = np.concatenate([np.zeros((1, held.shape[1]), np.int64), np.cumsum(padded, axis=0, dtype=np.int64)])
    window = 2 * blip + 1
    return np.asarray(total[window:] - total[:-window] > blip)

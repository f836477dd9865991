"""Labelled episodes, and where their symbols change, without flicker; what settles together is one change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, compress, groupby, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.traces import label
from bilevel.progress import Callback, Progress, silent
from bilevel.symbolic.domain import ROOT_TYPE, BadInput, Domain, Facts, Parameter, Predicate
from bilevel.tasks.scene import Array
from bilevel.tasks.spec import Position
from bilevel.tasks.task import Task

BLIP = 2  # timesteps; what a label says for no longer is taken for a mislabel
BEYOND_CHANCE = 0.3  # by how much more often than by chance two predicates of one kind change together

Times = dict[str, NDArray[np.int64]]  # by predicate: the timesteps at which some fact of it changes


@dataclass(frozen=True)
class ShownEpisode:
    """Labelled states and goals, one for each timestep, the types of all objects in them, and how everything moved.

    Coordinates are those that agent and objects have in common; they are not a number where an object is not visible,
    or has no such coordinate.
    """

    states: Sequence[Facts]
    objects: Mapping[str, str]
    goals: Sequence[Facts]
    agent: Array  # (timesteps, coordinates)
    places: Array  # (timesteps, objects, coordinates)
    visible: NDArray[np.bool_]  # (timesteps, objects)
    controls: Array  # (steps, size), normalised; of no size where none are on record

    def present(self) -> Iterator[frozenset[str]]:
        """Give the objects that are visible at every timestep."""
        return (frozenset(compress(self.objects, row)) for row in self.visible.tolist())

    def seen_before(self, step: int) -> frozenset[str]:
        """Return the objects that were visible at some timestep before this one."""
        return frozenset(compress(self.objects, np.any(self.visible[:step], axis=0)))


def episodes_of(
    demonstrations: Demonstrations, task: Task | None = None, callback: Callback = silent
) -> Iterator[ShownEpisode]:
    """Give the episodes of a data set, labelled anew where the task is given."""
    spec, controls = demonstrations.spec, demonstrations.controls
    names = [name for name, role in spec.agent_roles.items() if isinstance(role, Position)]
    for number, shown in enumerate(demonstrations, 1):
        places = np.full((*shown.features.shape[:2], len(names)), np.nan, np.float32)
        for row, kind in enumerate(shown.objects.values()):
            for column, name in enumerate(names):
                if isinstance(spec.object_roles[kind].get(name), Position):
                    places[:, row, column] = shown.features[:, row, spec.column[name]]
        places[~shown.visible] = np.nan
        agent = shown.agent[:, [spec.agent_column[name] for name in names]]
        done = controls.encode(shown.controls) if shown.has_controls else np.zeros((0, 0), np.float32)
        states, goals = label(shown, task)
        yield ShownEpisode(states, shown.objects, goals, agent, places, shown.visible, done)
        callback(Progress("labelling", number, len(demonstrations)))


# Types and predicates


def require_declared(domain: Domain, number: int, episode: ShownEpisode) -> None:
    """Raise `BadInput` where an episode, of this number, has a fact that is none of the domain's."""
    objects = {**domain.constants, **episode.objects}
    for state in dict.fromkeys(episode.states):
        for fact in sorted(state):
            predicate = domain.predicates.get(fact.predicate)
            wanted = [parameter.type for parameter in predicate.parameters] if predicate else []
            kinds = [objects.get(term, kind) for term, kind in zip(fact.terms, wanted, strict=False)]
            fits = predicate is not None and len(fact.terms) == len(wanted)
            if not (fits and all(map(domain.is_subtype, kinds, wanted))):
                types = ", ".join(objects.get(term, ROOT_TYPE) for term in fact.terms)
                what = f"the label {fact}, of types ({types}), is none that the domain '{domain.name}' declares"
                where = f"episode {number}, step {list(episode.states).index(state)}"
                raise BadInput(f"{where}: {what}; declare it there, or label anew with --task")


def frame_of(episodes: Sequence[ShownEpisode], domain: Domain) -> Domain:
    """Return a domain without its actions; if it has no predicates either, with those of all facts.

    Where one argument of a predicate takes objects of several types, these get a common type above them, called after
    its members. `BadInput` where a predicate has facts of different arity.
    """
    if domain.predicates:
        for number, episode in enumerate(episodes):
            require_declared(domain, number, episode)
        return Domain(domain.name, domain.predicates, {}, domain.types, domain.constants)
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
    types = {kind: parents.get(kind, ROOT_TYPE) for kind in sorted(kinds | {*parents.values()})}
    predicates = {
        name: Predicate(name, tuple(Parameter(f"?x{i}", common_type(types, k)) for i, k in enumerate(places)))
        for name, places in sorted(seen.items())
    }
    return Domain(domain.name, predicates, {}, types)


def _common_types(sets: Sequence[set[str]]) -> dict[str, str]:
    """Return for each type that shares an argument with others the one above all of these."""
    above: dict[str, set[str]] = {}
    for kinds in sets:
        if len(kinds) > 1 and ROOT_TYPE not in kinds:
            together = set(kinds).union(*(above.get(kind, set()) for kind in kinds))
            above |= dict.fromkeys(together, together)
    return {kind: "-or-".join(sorted(together)) for kind, together in above.items()}


def common_type(parents: Mapping[str, str], kinds: set[str]) -> str:
    """Return the least type above all of these; `parents` has the one above each type."""

    def ancestors(kind: str) -> list[str]:
        return [kind] if kind == ROOT_TYPE else [kind, *ancestors(parents.get(kind, ROOT_TYPE))]

    lines = [ancestors(kind) for kind in sorted(kinds)]
    return next(kind for kind in lines[0] if all(kind in line for line in lines)) if lines else ROOT_TYPE


# Changes


@dataclass(frozen=True)
class SettledChange:
    """One settled state, which began at a timestep, ends at another, at which the first fact changed."""

    episode: int
    types: Mapping[str, str]  # of the episode's objects
    known: frozenset[str]  # the objects that had been seen before
    begin: int
    step: int
    before: Facts
    after: Facts
    is_arrival: bool = False  # of objects that are new, beside another change

    @property
    def added(self) -> Facts:
        """The facts that came."""
        return self.after - self.before

    @property
    def deleted(self) -> Facts:
        """The facts that went."""
        return self.before - self.after


class Seen(NamedTuple):
    """A settled state, and the types of the objects there."""

    state: Facts
    objects: Mapping[str, str]


def find_changes(episodes: Sequence[ShownEpisode], settling: int) -> tuple[list[SettledChange], list[Seen]]:
    """Return the changes of all episodes, and the distinct settled states in the order in which they were first seen.

    What changes within `settling` timesteps of each other is one change, but for predicates that have nothing to do
    with each other. Changes after which all is as before are left out.
    """
    changes: list[SettledChange] = []
    states: dict[Facts, Seen] = {}
    every = [without_blips(episode.states) for episode in episodes]
    families: Sequence[frozenset[str] | None] = independent_predicates(every, settling) if settling else [None]
    for number, (episode, settled) in enumerate(zip(episodes, every, strict=True)):
        found = [
            SettledChange(number, episode.objects, episode.seen_before(step), begin, step, before, after)
            for family in families
            for begin, step, before, after in _settled_changes(settled, settling, family)
            if before != after
        ]
        for change in sorted(found, key=lambda change: change.step):
            changes.append(change)
            for state in (change.before, change.after):
                states.setdefault(state, Seen(state, episode.objects))
        if settled:
            states.setdefault(settled[0], Seen(settled[0], episode.objects))
    return changes, list(states.values())


def _settled_changes(
    states: Sequence[Facts], settling: int, family: frozenset[str] | None
) -> list[tuple[int, int, Facts, Facts]]:
    """Return for each change since when all had been settled, when it began, and the states before and after.

    With a `family` of predicates, only their facts change.
    """

    def changed(before: Facts, after: Facts) -> Facts:
        difference = before ^ after if before is not after else frozenset()
        return frozenset(fact for fact in difference if family is None or fact.predicate in family)

    steps = [step for step in range(1, len(states)) if changed(states[step - 1], states[step])]
    together: list[list[int]] = []
    for step in steps:
        if together and step - together[-1][-1] <= settling:
            together[-1].append(step)
        else:
            together.append([step])
    begins = [0, *(group[-1] for group in together)]
    found = []
    for begin, group in zip(begins, together, strict=False):
        before = states[group[0] - 1]
        found.append((begin, group[0], before, before ^ changed(before, states[group[-1]])))
    return found


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
        if states[step] is not states[step - 1]:
            for predicate in {fact.predicate for fact in states[step] ^ states[step - 1]}:
                found.setdefault(predicate, []).append(step)
    return {predicate: np.array(steps, np.int64) for predicate, steps in found.items()}


def _depend(one: str, other: str, times: Sequence[tuple[Times, int]], window: int) -> bool:
    """Return whether one predicate changes with another clearly more often than by chance."""
    here, chance, total = 0, 0.0, 0
    never = np.zeros(0, np.int64)
    for found, length in times:
        steps, others = found.get(one, never), found.get(other, never)
        total += len(steps)
        here += _near(steps, others, window)
        chance += len(steps) * _near(np.arange(1, length), others, window) / max(1, length - 1)
    return here - chance > BEYOND_CHANCE * total


def _near(steps: NDArray[np.int64], others: NDArray[np.int64], window: int) -> int:
    """Return how many of the steps are within a window of one of the others, which are in order."""
    first = np.searchsorted(others, steps - window)
    return int((np.searchsorted(others, steps + window, side="right") > first).sum())


def without_blips(states: Sequence[Facts]) -> list[Facts]:
    """Return the states as most timesteps around each have them, fact by fact.

    The last timestep goes on for ever, as an episode may end with what was wanted. The first is as doubtful as any.
    """
    runs = [(state, len(list(group))) for state, group in groupby(states)]
    if len(runs) < 3 or all(length > BLIP for _, length in runs[1:-1]):
        return list(states)
    facts = sorted(frozenset().union(*(state for state, _ in runs)))
    rows = np.array([[fact in state for fact in facts] for state, _ in runs], bool)
    held = np.repeat(rows, [length for _, length in runs], axis=0)
    padded = np.concatenate([held[1 : BLIP + 1][::-1], held, np.repeat(held[-1:], BLIP, axis=0)])
    around = np.stack([padded[start : start + len(held)] for start in range(2 * BLIP + 1)])
    smooth = around.sum(axis=0) > BLIP
    result = list(states)
    for step in np.flatnonzero((smooth != held).any(axis=1)).tolist():
        result[step] = frozenset(fact for fact, holds in zip(facts, smooth[step], strict=True) if holds)
    return result

"""What is wanted, in terms of candidates: given as facts, as a function of a scene, or by the last scenes alone.

A goal is that a predicate holds of all things of its types, or of all pairs that have something in common that never
changes, such as their colour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.predicates.definitions import Definition, Quantified, measure
from bilevel.domain_learning.predicates.tracks import Bools, Track
from bilevel.symbolic.domain import Atom, BadInput, Facts
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import call

NEARLY_ALL = 0.95
ASKED = 20  # scenes of each demonstration that a function is asked about

Measured = Sequence[tuple[Track, Mapping[str, Bools]]]  # of each track, when each candidate holds


@dataclass(frozen=True)
class Goal:
    """That a predicate holds wherever the static one `where` does, or of all things of its types.

    With `given`, only the user's own function can tell of which things it shall hold.
    """

    predicate: Definition
    where: Definition | None = None
    given: bool = False

    @property
    def text(self) -> str:
        """What is wanted, in words."""
        if self.given:
            return f"{self.predicate.signature} wherever the task says"
        if self.where is None:
            return f"{self.predicate.signature} for all"
        common = self.where.comment[:1].lower() + self.where.comment[1:].rstrip(".")
        return f"{self.predicate.signature} for all with {common}"

    def wanted(self, track: Track) -> Bools:
        """(timesteps, things of the first type, …): of what it shall hold."""
        everywhere = replace(self.predicate, tests=(), others=())
        return measure(self.where or everywhere, track, {})

    def facts(self, track: Track) -> list[Facts]:
        """Return the facts that are wanted at every timestep."""
        if self.given:
            name = self.predicate.name
            recorded = track.demonstration.at_each_timestep(track.demonstration.goals)
            return [frozenset(fact for fact in facts if fact.predicate == name) for facts in recorded]
        wanted, found = self.wanted(track), list[Facts]()
        names = [track.roster.of_type(kind) for kind in self.predicate.types]
        for now in range(track.length):
            if now and (wanted[now] == wanted[now - 1]).all():
                found.append(found[-1])
                continue
            things = (tuple(names[place][row] for place, row in enumerate(index)) for index in np.argwhere(wanted[now]))
            found.append(frozenset(Atom(self.predicate.name, each) for each in things))
        return found

    def share(self, track: Track, known: Mapping[str, Bools]) -> NDArray[np.float64]:
        """(timesteps,): the share of what is wanted that holds; 0 where nothing is wanted."""
        wanted = self.wanted(track)
        holds = known[self.predicate.name] if self.predicate.name in known else measure(self.predicate, track, known)
        axes = tuple(range(1, wanted.ndim))
        return np.asarray((wanted & holds).sum(axis=axes) / np.maximum(wanted.sum(axis=axes), 1))


def possible_goals(found: Sequence[Definition], static: Sequence[Definition]) -> Iterator[list[Goal]]:
    """Yield for each candidate what could be wanted of it, from the most to the least.

    It may be wanted of everything, of what belongs together, or of each thing together with some other.
    """
    for one in found:
        if one.types:
            goals = [Goal(one), *(Goal(one, where) for where in static if where.types == one.types)]
            if len(one.types) == 2:
                some = Quantified(one.name, 0, some=True)
                comment = f"The {one.types[0]} is {one.name} some {one.types[1]}."
                goals.append(Goal(Definition(f"{one.name}-some", one.types[:1], (), (some,), comment=comment)))
            yield goals


def goal_of_final_scenes(found: Sequence[Definition], static: Sequence[Definition], measured: Measured) -> list[Goal]:
    """Return what holds at the end of nearly all demonstrations, and of most of them not from the beginning.

    Of several relations of things of one type, one is taken: where things come together, they come in line, too.
    """
    chosen: dict[tuple[str, int], Goal] = {}
    for goals in sorted(possible_goals(found, static), key=lambda goals: _rank(goals[0].predicate)):
        for goal in goals:
            done = np.array([goal.share(track, known)[[0, -1]] == 1 for track, known in measured])
            if done[:, 1].mean() >= NEARLY_ALL and done[:, 0].mean() < 0.5:
                types = goals[0].predicate.types
                chosen.setdefault((types[0], len(types)), goal)
                break
    if not chosen:
        remedy = "give the goal as a function: --goal FILE.py:function"
        raise BadInput(f"the last scenes have nothing in common that is not so in the first ones; {remedy}")
    return list(chosen.values())


def _rank(definition: Definition) -> tuple[bool, bool]:
    """Return what puts relations between things of two types, and those by distance, before others."""
    return len(set(definition.types)) < len(definition.types), definition.is_weak


def goal_of_function(
    found: Sequence[Definition],
    static: Sequence[Definition],
    measured: Measured,
    is_done: Callable[[Scene], bool],
) -> list[Goal]:
    """Return what holds in just those scenes of which a function says that all is done; some scenes are asked about."""
    when = [np.unique(np.linspace(0, track.length - 1, ASKED).astype(int)) for track, _ in measured]
    answers = []
    for (track, _), steps in zip(measured, when, strict=True):
        scenes = track.demonstration.scenes(track.spec)
        answers += [bool(call("the goal's function", is_done, scenes[step])) for step in steps]
    done = np.array(answers)
    if done.all() or not done.any():
        raise BadInput(
            f"the goal's function is {bool(done[0])} in all scenes of the demonstrations that it was asked about"
        )

    def holds(goal: Goal) -> Bools:
        pairs = zip(measured, when, strict=True)
        return np.concatenate([goal.share(track, known)[steps] == 1 for (track, known), steps in pairs])

    necessary = [(goal, holds(goal)) for goals in possible_goals(found, static) for goal in goals]
    necessary = [(goal, true) for goal, true in necessary if true[done].mean() >= NEARLY_ALL]
    chosen, so_far = list[Goal](), np.ones(len(done), bool)
    while (so_far != done).any() and necessary:
        goal, true = max(necessary, key=lambda each: float(((so_far & each[1]) == done).mean()))
        if ((so_far & true) == done).mean() <= (so_far == done).mean():
            break
        chosen, so_far = [*chosen, goal], so_far & true
    if (so_far == done)[~done].mean() < NEARLY_ALL:
        share = f"{(so_far == done).mean():.0%}"
        raise BadInput(f"no candidate says what the goal's function says: the best agrees in {share} of the scenes")
    return chosen


def goal_of_facts(found: Sequence[Definition], static: Sequence[Definition], measured: Measured) -> list[Goal]:
    """Return goals for the facts that are recorded as wanted, each with the name that its predicate has there."""
    wanted: dict[str, list[tuple[Track, Mapping[str, Bools], Facts]]] = defaultdict(list)
    for track, known in measured:
        for name in sorted({fact.predicate for fact in track.demonstration.goals[-1][1]}):
            facts = frozenset(fact for fact in track.demonstration.goals[-1][1] if fact.predicate == name)
            wanted[name].append((track, known, facts))
    if not wanted:
        raise BadInput("the demonstrations have no goals; give the goal as a function: --goal FILE.py:function")
    return [_goal_of(name, about, found, static) for name, about in wanted.items()]


def _goal_of(
    name: str,
    about: Sequence[tuple[Track, Mapping[str, Bools], Facts]],
    found: Sequence[Definition],
    static: Sequence[Definition],
) -> Goal:
    """Return the candidate that a goal's predicate means: it comes to hold of what is wanted."""
    best: tuple[float, Definition] | None = None
    for one in found:
        shares = [_shares(one, track, known, facts) for track, known, facts in about]
        if all(share is not None for share in shares):
            begin, end = np.mean([share for share in shares if share is not None], axis=0)
            if end >= NEARLY_ALL and (best is None or end - begin > best[0]):
                best = float(end - begin), one
    if best is None or best[0] <= 0:
        raise BadInput(f"no candidate comes to hold of all that the goal '{name}' is about")
    predicate = replace(best[1], name=name)
    for where in (None, *(each for each in static if each.types == predicate.types)):
        goal = Goal(predicate, where)
        if all(facts == goal.facts(track)[-1] for track, _, facts in about):
            return goal
    return Goal(predicate, given=True)


def _shares(one: Definition, track: Track, known: Mapping[str, Bools], facts: Facts) -> tuple[float, float] | None:
    """Return the share of facts for which a candidate holds at first and at last; `None` where types do not fit."""
    kinds = track.roster.objects
    rows = {name: row - track.roster.rows(kinds[name]).start for name, row in track.roster.row.items()}
    if any(tuple(kinds.get(term, "") for term in fact.terms) != one.types for fact in facts):
        return None
    first, last = (
        [bool(known[one.name][when][tuple(rows[term] for term in fact.terms)]) for fact in facts] for when in (0, -1)
    )
    return sum(first) / len(facts), sum(last) / len(facts)

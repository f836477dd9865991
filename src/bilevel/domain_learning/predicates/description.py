"""How well a set of predicates describes demonstrations, in bits: what it costs to say what happened, and to say it with.

Changes of facts that lie close together are one change; changes that look the same when objects become variables are
one operator, and what held before each of them is its precondition. Then it costs to say

- which operator happened next, of all that were possible: nothing, where the preconditions leave no choice;
- each change that is too rare to be an operator;
- each interaction that no fact tells of: something was taken, let go or moved otherwise, came, went, or changed;
- the operators and predicates themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, permutations, product
from math import factorial, log2, prod

import numpy as np

from bilevel.domain_learning.predicates.tracks import Motion, Track, runs
from bilevel.rules.matching import join
from bilevel.symbolic.domain import Atom, Facts
from bilevel.tasks.spec import LabelOnly

SETTLING = 5  # steps between changes of facts that are one change
WINDOW = 10  # steps between an interaction and the change of facts that tells of it
FEWEST = 0.01  # of all changes: what happens less often is no operator
ALWAYS = 0.97  # of its instances: what held before so many is a precondition
MOST_ORDERS = 5000  # of variables that are tried to find equal changes

UNTOLD = 10.0  # bits for an interaction that no fact tells of
RARE = 16.0  # bits for a change that is no operator
OPERATOR, LITERAL, PREDICATE, TEST = 4.0, 2.0, 6.0, 3.0  # bits


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
        columns = [track.spec.column[each] for each, role in track.spec.object_roles[kind].items() if isinstance(role, LabelOnly)]
        changed = (np.diff(track.features[:, row, columns], axis=0) != 0).any(axis=1) & seen[1:] & seen[:-1]
        if changed.mean() < 0.1:  # else it is a measurement
            yield from (Interaction(int(step) + 1, name) for step in np.flatnonzero(changed))


@dataclass(frozen=True)
class Change:
    """From one state to the next, over the steps that it took."""

    start: int
    end: int
    before: Facts
    after: Facts
    objects: Mapping[str, str]

    @property
    def added(self) -> Facts:
        return self.after - self.before

    @property
    def deleted(self) -> Facts:
        return self.before - self.after


def changes_in(states: Sequence[Facts], objects: Mapping[str, str]) -> Iterator[Change]:
    """Yield the changes of labelled states, those that follow within a few steps as one."""
    starts, step = [], 0
    for _, group in groupby(states, key=id):
        starts.append(step)
        step += len(list(group))
    last: list[int] = []
    for step in [*(start for start in starts[1:] if states[start] != states[start - 1]), 10 * len(states) + SETTLING]:
        if last and step - last[-1] > SETTLING:
            change = Change(last[0], last[-1], states[last[0] - 1], states[last[-1]], objects)
            if change.before != change.after:
                yield change
            last = []
        last.append(step)


Lifted = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # the types of the variables; added, deleted


def lift(change: Change) -> tuple[Lifted, tuple[str, ...]]:
    """Return a change with variables for objects, the same for all changes that look the same, and the objects."""
    names = sorted({term for fact in change.added | change.deleted for term in fact.terms})
    by_type: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_type[change.objects[name]].append(name)
    kinds = sorted(by_type)
    types = tuple(kind for kind in kinds for _ in by_type[kind])
    if prod(factorial(len(members)) for members in by_type.values()) > MOST_ORDERS:
        orders: Iterable[tuple[str, ...]] = [tuple(name for kind in kinds for name in by_type[kind])]
    else:
        parts = product(*(permutations(by_type[kind]) for kind in kinds))
        orders = (tuple(name for part in order for name in part) for order in parts)

    def written(order: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        variables = {name: f"?{place}" for place, name in enumerate(order)}
        added, deleted = (tuple(sorted(_lifted(fact, variables) for fact in part)) for part in (change.added, change.deleted))
        return added, deleted

    best = min(orders, key=written)
    return (types, *written(best)), best


def _lifted(fact: Atom, variables: Mapping[str, str]) -> str:
    return " ".join((fact.predicate, *(variables[term] for term in fact.terms)))


@dataclass(frozen=True)
class Operator:
    """A change that happens often, with what always held before it."""

    lifted: Lifted
    condition: frozenset[Atom]
    count: int

    @property
    def literals(self) -> int:
        return len(self.lifted[1]) + len(self.lifted[2]) + len(self.condition)

    def possible(self, state: Facts, objects: Mapping[str, str]) -> int:
        """Return for how many tuples of objects it could happen in a state."""
        types = self.lifted[0]
        found = set()
        for binding in join([(atom, state) for atom in sorted(self.condition)], {}):
            ranges = [
                [binding[f"?{place}"]] if f"?{place}" in binding else [n for n, kind in objects.items() if kind == wanted]
                for place, wanted in enumerate(types)
            ]
            found |= {each for each in product(*ranges) if len(set(each)) == len(each)}
        return len(found)


def operators_of(changes: Sequence[Change]) -> tuple[list[Operator], int]:
    """Return the operators that changes show, the most frequent first, and how many changes are none of these."""
    groups: dict[Lifted, list[frozenset[Atom]]] = defaultdict(list)
    for change in changes:
        lifted, order = lift(change)
        variables = {name: f"?{place}" for place, name in enumerate(order)}
        held = (fact for fact in change.before if variables.keys() >= set(fact.terms))
        groups[lifted].append(frozenset(Atom(f.predicate, tuple(variables[t] for t in f.terms)) for f in held))
    fewest = max(2.0, FEWEST * len(changes))
    found, rare = list[Operator](), 0
    for lifted, conditions in groups.items():
        if len(conditions) < fewest:
            rare += len(conditions)
            continue
        counts = Counter(atom for condition in conditions for atom in condition)
        always = frozenset(atom for atom, count in counts.items() if count >= ALWAYS * len(conditions))
        found.append(Operator(lifted, always, len(conditions)))
    return sorted(found, key=lambda operator: (-operator.count, operator.lifted)), rare


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


def untold(happened: Iterable[Interaction], changes: Sequence[Change]) -> int:
    """Return how many interactions no change tells of: none close by in time is about the object."""
    count = 0
    about = [(change, {term for fact in change.added | change.deleted for term in fact.terms}) for change in changes]
    for one in happened:
        count += not any(
            change.start - WINDOW <= one.step <= change.end + WINDOW and one.name in names for change, names in about
        )
    return count

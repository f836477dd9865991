"""What steps change: changes that are the same but for the objects are one effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, permutations, product

import numpy as np

from bilevel.domain_learning.from_plans.steps import STATE, Steps, Table
from bilevel.symbolic.domain import NO_FACTS, Atom, Facts
from bilevel.symbolic.semantics import substitute_all

MOST_ORDERS = 5040  # of the objects of one change that are tried for its canonical form

Step = tuple[int, int, tuple[str, ...]]  # two states' numbers, and the objects for the variables
Effect = tuple[Facts, Facts]  # what is added and what is deleted, over variables


@dataclass
class Change:
    """An effect, and each step that has it: the two states' numbers and the objects for its variables."""

    add: Facts
    delete: Facts
    variables: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    new: frozenset[str] = frozenset()

    def table(self, steps: Steps) -> Table:
        """Return the steps as a table, one row for each."""
        rows = [[steps.index[steps.states[before][0]][name] for name in names] for before, _, names in self.steps]
        columns = np.array(rows, np.int64).reshape(len(self.steps), len(self.variables)).T
        states = np.array([before for before, _, _ in self.steps], np.int64)
        return {STATE: states, **dict(zip(self.variables, columns, strict=True))}


def changes_of(steps: Steps) -> list[Change]:
    """Return the effects that steps have, the most frequent first; one that others explain is not among them."""
    found: dict[Effect, Change] = {}
    lifted: dict[Effect, tuple[Effect, tuple[str, ...]]] = {}
    for before, after in steps.counts:
        old, new = steps.states[before][1], steps.states[after][1]
        change = (new - old, old - new)
        if change not in lifted:
            lifted[change] = lift(*change)
        effect, objects = lifted[change]
        variables = tuple(f"?{i}" for i in range(len(objects)))
        found.setdefault(effect, Change(*effect, variables)).steps.append((before, after, objects))
    changes = [_with_constants(_with_new(change, steps), steps) for change in found.values()]
    changes.sort(key=lambda change: (-len(change.steps), sorted(change.add), sorted(change.delete)))
    return joined(changes, steps)


def lift(add: Facts, delete: Facts) -> tuple[Effect, tuple[str, ...]]:
    """Return the change over variables, in a form that does not depend on names, and the objects for them."""
    roles: dict[str, list[tuple[bool, str, int]]] = {}
    for facts, is_added in ((add, True), (delete, False)):
        for atom in facts:
            for position, term in enumerate(atom.terms):
                roles.setdefault(term, []).append((is_added, atom.predicate, position))
    alike: dict[tuple[tuple[bool, str, int], ...], list[str]] = {}
    for name in sorted(roles):
        alike.setdefault(tuple(sorted(roles[name])), []).append(name)
    orders = product(*(permutations(alike[role]) for role in sorted(alike)))
    best: tuple[tuple[list[Atom], list[Atom]], tuple[str, ...]] | None = None
    for order in islice(orders, MOST_ORDERS):
        names = tuple(name for group in order for name in group)
        binding = {name: f"?{i}" for i, name in enumerate(names)}
        form = sorted(substitute_all(add, binding)), sorted(substitute_all(delete, binding))
        if best is None or form < best[0]:
            best = form, names
    assert best is not None
    return (frozenset(best[0][0]), frozenset(best[0][1])), best[1]


def _with_new(change: Change, steps: Steps) -> Change:
    """Mark the variables that stand for an object of which nothing was said before, each time.

    If there are objects of the type of which nothing is ever said, then these are there all the same, and not new.
    """
    for i, variable in enumerate(change.variables):
        if all((before, after, names[i]) in steps.fresh for before, after, names in change.steps):
            kinds = {steps.worlds[steps.states[before][0]][names[i]] for before, _, names in change.steps}
            if not kinds & steps.never and not any(variable in atom.terms for atom in change.delete):
                change.new |= {variable}
    return change


def _with_constants(change: Change, steps: Steps) -> Change:
    """Put a constant in the place of a variable that stands for it each time."""
    for i in reversed(range(len(change.variables))):
        objects = {names[i] for _, _, names in change.steps}
        if len(objects) == 1 and objects <= steps.frame.constants.keys():
            change = _renamed(change, {change.variables[i]: objects.pop()})
            change.variables = (*change.variables[:i], *change.variables[i + 1 :])
            change.steps = [(b, a, (*names[:i], *names[i + 1 :])) for b, a, names in change.steps]
    return change


def _renamed(change: Change, names: Mapping[str, str]) -> Change:
    variables = tuple(names.get(v, v) for v in change.variables)
    add, delete = substitute_all(change.add, names), substitute_all(change.delete, names)
    return Change(add, delete, variables, change.steps, frozenset(names.get(v, v) for v in change.new))


def joined(changes: Sequence[Change], steps: Steps) -> list[Change]:
    """Join each change to one of which it is a case: two objects are the same one, or a part was true already."""
    kept: list[Change] = []
    for change in sorted(changes, key=lambda change: (-len(change.variables), -len(change.add) - len(change.delete))):
        found = ((whole, case) for whole in kept for case in _cases(whole, change) if _explains(whole, case, steps))
        whole, case = next(found, (None, []))
        if whole is None:
            kept.append(change)
        else:
            whole.steps += case
    return kept


def _cases(whole: Change, part: Change) -> Iterator[list[Step]]:
    """Yield the part's steps with objects for the whole's variables, in every way in which it may be a case of it."""
    if whole.new or part.new or len(whole.variables) - len(part.variables) not in (0, 1):
        return
    is_same = len(whole.variables) > len(part.variables)
    for one, other in combinations(whole.variables, 2) if is_same else [("", "")]:
        add, delete = (substitute_all(facts, {other: one}) for facts in (whole.add, whole.delete))
        if is_same and (len(part.add), len(part.delete)) != (len(add), len(delete - add)):
            continue
        left = [variable for variable in whole.variables if variable != other]
        for order in permutations(part.variables):
            names = dict(zip(order, left, strict=True))
            if substitute_all(part.add, names) <= add and substitute_all(part.delete, names) <= delete:
                bound = {name: variable for variable, name in names.items()}
                places = [part.variables.index(bound[one if v == other else v]) for v in whole.variables]
                yield [(before, after, tuple(objects[i] for i in places)) for before, after, objects in part.steps]


def _explains(whole: Change, case: Sequence[Step], steps: Steps) -> bool:
    """Return whether the effect makes of the first state of each step the second.

    Where two objects are the same one, all that always held of the two must hold of the one.
    """
    held = _held(whole, steps) if any(len(set(objects)) < len(objects) for _, _, objects in case) else NO_FACTS
    for before, after, objects in case:
        binding = dict(zip(whole.variables, objects, strict=True))
        if not substitute_all(held, binding) <= steps.states[before][1]:
            return False
        add, delete = substitute_all(whole.add, binding), substitute_all(whole.delete, binding)
        if (steps.states[before][1] - delete) | add != steps.states[after][1]:
            return False
    return True


def _held(change: Change, steps: Steps) -> Facts:
    """Return the facts over a change's variables that held before each of its steps that have an object for each."""
    held: Facts | None = None
    for before, _, objects in change.steps:
        names = dict(zip(objects, change.variables, strict=True))
        if len(names) == len(objects):
            known = {*names, *steps.frame.constants}
            now = frozenset(atom for atom in steps.states[before][1] if known.issuperset(atom.terms))
            held = substitute_all(now, names) if held is None else held & substitute_all(now, names)
    return held or NO_FACTS

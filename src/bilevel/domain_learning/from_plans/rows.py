"""Where a change could have been seen: every state with every choice of objects for its variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.from_plans.effects import Change
from bilevel.domain_learning.from_plans.steps import STATE, Mask, Numbers, Steps, Table
from bilevel.planning.grounding import Literal
from bilevel.symbolic.domain import EQUALITY, Atom, is_variable

Weights = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """States and objects for variables, how often the change was seen there, and what visits to the state weigh."""

    table: Table
    counts: Weights
    visits: Weights

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.visits)

    @property
    def seen(self) -> Mask:
        """Which rows were seen at least once."""
        return np.asarray(self.counts > 0)

    def __getitem__(self, places: Mask | Numbers) -> Rows:
        table = {name: column[places] for name, column in self.table.items()}
        return Rows(table, self.counts[places], self.visits[places])

    def thinned(self, most: int) -> Rows:
        """Return at most so many of the seen rows and of the others, evenly chosen, each standing for several."""
        chosen, factors = [], []
        for mask in (self.seen, ~self.seen):
            places = np.flatnonzero(mask)
            stride = max(len(places) / most, 1.0)
            chosen.append(places[(np.arange(min(len(places), most)) * stride).astype(np.int64)])
            factors.append(np.full(len(chosen[-1]), stride))
        part, factor = self[np.concatenate(chosen)], np.concatenate(factors)
        return Rows(part.table, part.counts * factor, part.visits * factor)


def rows_of(change: Change, literals: Iterable[Literal], steps: Steps) -> Rows:
    """Return every row in which the literals hold and the effect would change something."""
    literals = list(literals)
    table = joined({STATE: np.flatnonzero(steps.visits)}, [one.atom for one in literals if one.present], steps)
    keep, counts = _seen(change, table, steps)
    for one in literals:
        if one.atom.predicate == EQUALITY or not one.present:
            keep = keep & (steps.holds(table, one.atom) == one.present)
    return Rows(table, counts.astype(np.float64), steps.weights[table[STATE]])[keep]


def joined(table: Table, atoms: Sequence[Atom], steps: Steps) -> Table:
    """Return the table with all variables of the atoms, wherever these hold."""
    waiting = sorted(atom for atom in atoms if atom.predicate != EQUALITY)
    while waiting:
        atom = min(waiting, key=lambda atom: _growth(table, atom, steps))
        waiting.remove(atom)
        if all(term in table or not is_variable(term) for term in atom.terms):
            holds = steps.holds(table, atom)
            table = {name: column[holds] for name, column in table.items()}
        else:
            table, _ = steps.join(table, atom)
    return table


def _growth(table: Table, atom: Atom, steps: Steps) -> float:
    """Guess how many rows will come of one when the atom is joined."""
    bound = [not is_variable(term) or term in table for term in atom.terms]
    average = len(steps.relations[atom.predicate]) / max(len(steps.states), 1)
    return 0.0 if all(bound) else average ** (1 - sum(bound) / len(bound))


def _seen(change: Change, table: Table, steps: Steps) -> tuple[Mask, Numbers]:
    """Return which rows the change would alter, and how often it was seen there."""
    if not change.new:
        return steps.counted(table, change.add, change.delete)
    kept = [i for i, variable in enumerate(change.variables) if variable not in change.new]
    seen: dict[tuple[int, ...], int] = {}
    for before, after, names in change.steps:
        place = steps.index[steps.states[before][0]]
        key = (before, *(place[names[i]] for i in kept))
        seen[key] = seen.get(key, 0) + steps.counts[before, after]
    columns = [table[STATE], *(table[change.variables[i]] for i in kept)]
    counts = [seen.get(tuple(map(int, row)), 0) for row in zip(*columns, strict=True)]
    return np.ones(len(counts), np.bool_), np.array(counts, np.int64)

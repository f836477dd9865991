"""The steps of plans as tables of numbers, so that a condition is tried on all of them at once.

A table has a column of states and a column of objects for each variable. An object's number is its place among the
objects of its plan. Types and equality are relations like any other: `- kind` holds of the objects of a type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bilevel.domain_learning.episodes import Episode
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, BadInput, Domain, Facts, is_variable

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Table = dict[str, Numbers]
STATE = ""  # the name of the column of states


def type_atom(variable: str, kind: str) -> Atom:
    """Return the atom that stands for a variable's being of a type."""
    return Atom(f"- {kind}", (variable,))


def is_type(atom: Atom) -> bool:
    """Return whether an atom stands for a variable's being of a type."""
    return atom.predicate.startswith("- ")


def kind_of(atom: Atom) -> str:
    """Return the type that such an atom names."""
    return atom.predicate.removeprefix("- ")


class Steps:
    """Every distinct state, how often it was followed by another or by itself, and where the steps went."""

    def __init__(self, episodes: Iterable[Episode], frame: Domain) -> None:
        self.frame = frame
        self.worlds: list[Mapping[str, str]] = []  # the objects of each, with their types
        self.states: list[tuple[int, Facts]] = []
        self.counts: dict[tuple[int, int], int] = {}  # of the steps that changed something, by the states' numbers
        self.fresh: set[tuple[int, int, str]] = set()  # steps, and an object of which nothing was said before
        self.never: set[str] = set()  # types of objects of which nothing was ever said
        self._number(episodes)
        self._tabulate()

    def _number(self, episodes: Iterable[Episode]) -> None:
        worlds: dict[tuple[tuple[str, str], ...], int] = {}
        numbers: dict[tuple[int, Facts], int] = {}
        visits: list[int] = []
        for episode in episodes:
            objects = dict(sorted({**self.frame.constants, **episode.objects}.items()))
            world = worlds.setdefault(tuple(objects.items()), len(worlds))
            if world == len(self.worlds):
                self.worlds.append(objects)
            mentioned: set[str] = set()
            before = -1
            for state in episode.states:
                number = numbers.setdefault((world, state), len(numbers))
                new = {term for atom in state for term in atom.terms} - mentioned if number != before else set()
                visits += [before] if before >= 0 else []
                if before >= 0 and number != before:
                    self.counts[before, number] = self.counts.get((before, number), 0) + 1
                    self.fresh |= {(before, number, name) for name in new}
                mentioned |= new
                before = number
            self.never |= {kind for name, kind in objects.items() if name not in mentioned}
        self.states = list(numbers)
        self.visits = np.bincount(np.array(visits, np.int64), minlength=len(self.states))
        self.weights: NDArray[np.float64] = self.visits.astype(np.float64)

    def weigh(self, possible: Numbers) -> None:
        """Let a visit weigh less where more changes are possible: each of them is then seen less often."""
        shares = self.visits / np.maximum(possible, 1)
        self.weights = shares * (self.visits.sum() / shares.sum())

    def _tabulate(self) -> None:
        self.nothing = max(map(len, self.worlds), default=1)  # the number of no object
        self.radix = self.nothing + 1
        self.index = [{name: i for i, name in enumerate(world)} for world in self.worlds]
        self.world_of = np.array([world for world, _ in self.states], np.int64)
        rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in self.frame.predicates}
        for number, (world, state) in enumerate(self.states):
            place = self.index[world]
            try:
                for predicate, terms in state:
                    rows[predicate].append((number, *[place[term] for term in terms]))
            except KeyError as unknown:
                raise BadInput(
                    f"a fact of a plan names {unknown}, which is no predicate of the domain and no object"
                ) from None
        widths = {name: predicate.arity + 1 for name, predicate in self.frame.predicates.items()}
        self.relations = {n: np.array(sorted(r), np.int64).reshape(-1, widths[n]) for n, r in rows.items()}
        for kind in (*self.frame.types, ROOT_TYPE):
            fitting = [[i for i, its in enumerate(w.values()) if self.frame.is_subtype(its, kind)] for w in self.worlds]
            pairs = [(number, i) for number, (world, _) in enumerate(self.states) for i in fitting[world]]
            self.relations[f"- {kind}"] = np.array(pairs, np.int64).reshape(-1, 2)
        self._sorted: dict[tuple[str, tuple[int, ...]], tuple[Numbers, Numbers]] = {}
        self._constants = {
            name: np.array([place.get(name, self.nothing) for place in self.index], np.int64)
            for name in self.frame.constants
        }
        self._salt = {name: np.uint64(i + 1) for i, name in enumerate(sorted(self.frame.predicates))}
        self.hashes = np.zeros(len(self.states), np.uint64)
        for name in self.frame.predicates:
            relation = self.relations[name]
            np.add.at(self.hashes, relation[:, 0], self._fact_hash(name, list(relation.T[1:])))
        seen = [(before, after, count) for (before, after), count in self.counts.items()]
        pairs_array = np.array(seen, np.int64).reshape(-1, 3)
        keys = self._step_hash(pairs_array[:, 0], self.hashes[pairs_array[:, 1]])
        order = np.argsort(keys, kind="stable")
        self._seen, self._seen_counts = keys[order], pairs_array[order, 2]

    def names(self, state: int) -> list[str]:
        """Return the objects of a state in the order of their numbers."""
        return list(self.worlds[self.world_of[state]])

    def column(self, table: Table, term: str) -> Numbers:
        """Return the numbers of a variable, or of a constant, in each row."""
        return table[term] if is_variable(term) else self._constants[term][self.world_of[table[STATE]]]

    def holds(self, table: Table, atom: Atom) -> Mask:
        """Return in which rows a fact over the variables of the table holds."""
        columns = [self.column(table, term) for term in atom.terms]
        if atom.predicate == EQUALITY:
            return np.equal(columns[0], columns[1])
        keys, _ = self._index(atom.predicate, tuple(range(1, len(columns) + 1)))
        wanted = self._key([table[STATE], *columns])
        places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return keys[places] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)

    def join(self, table: Table, atom: Atom) -> tuple[Table, Numbers]:
        """Return the table with the atom's variables added, wherever it holds, and from which row each one is."""
        bound = tuple(i for i, term in enumerate(atom.terms, 1) if not is_variable(term) or term in table)
        keys, order = self._index(atom.predicate, bound)
        wanted = self._key([table[STATE], *(self.column(table, atom.terms[i - 1]) for i in bound)])
        first, last = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
        lengths = last - first
        origin = np.repeat(np.arange(len(wanted)), lengths)
        offsets = np.arange(len(origin)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        facts = self.relations[atom.predicate][order[first[origin] + offsets]]
        joined = {name: column[origin] for name, column in table.items()}
        fits = np.ones(len(origin), np.bool_)
        for i, term in enumerate(atom.terms, 1):
            if i not in bound:
                if term in joined:
                    fits &= joined[term] == facts[:, i]
                joined[term] = joined.get(term, facts[:, i])
        return (
            ({name: column[fits] for name, column in joined.items()}, origin[fits])
            if not fits.all()
            else (joined, origin)
        )

    def counted(self, table: Table, add: Iterable[Atom], delete: Iterable[Atom]) -> tuple[Mask, Numbers]:
        """Return which rows the effect would change, and how often the change was seen from the row's state."""
        change = np.zeros(len(table[STATE]), np.uint64)
        changes = np.zeros(len(change), np.bool_)
        add = list(add)
        for atom in add:
            holds = self.holds(table, atom)
            change += np.where(holds, np.uint64(0), self._atom_hash(table, atom))
            changes |= ~holds
        for atom in delete:
            goes = self.holds(table, atom)
            for other in add:
                if other.predicate == atom.predicate:
                    pairs = [
                        (self.column(table, a), self.column(table, b))
                        for a, b in zip(atom.terms, other.terms, strict=True)
                    ]
                    goes &= ~np.all([a == b for a, b in pairs], axis=0) if pairs else False
            change -= np.where(goes, self._atom_hash(table, atom), np.uint64(0))
            changes |= goes
        wanted = self._step_hash(table[STATE], self.hashes[table[STATE]] + change)
        places = np.minimum(np.searchsorted(self._seen, wanted), max(len(self._seen) - 1, 0))
        found = (self._seen[places] == wanted) & changes
        return changes, np.where(found, self._seen_counts[places], 0)

    def _index(self, predicate: str, columns: tuple[int, ...]) -> tuple[Numbers, Numbers]:
        """Return the keys of a relation's rows over these columns and the state, sorted, and the rows' order."""
        if (predicate, columns) not in self._sorted:
            relation = self.relations[predicate]
            keys = self._key([relation[:, 0], *(relation[:, i] for i in columns)])
            order = np.argsort(keys, kind="stable")
            self._sorted[predicate, columns] = keys[order], order
        return self._sorted[predicate, columns]

    def _key(self, columns: Sequence[Numbers]) -> Numbers:
        key = columns[0]
        for column in columns[1:]:
            key = key * self.radix + column
        return key

    def _atom_hash(self, table: Table, atom: Atom) -> NDArray[np.uint64]:
        columns = [np.broadcast_to(self.column(table, term), len(table[STATE])) for term in atom.terms]
        return self._fact_hash(atom.predicate, columns or [np.zeros(len(table[STATE]), np.int64)])

    def _fact_hash(self, predicate: str, columns: Sequence[Numbers]) -> NDArray[np.uint64]:
        key = self._key(columns) if columns else np.zeros(1, np.int64)
        return _mixed(_mixed(key.astype(np.uint64)) + self._salt[predicate])

    def _step_hash(self, before: Numbers, after: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return _mixed(after ^ _mixed(before.astype(np.uint64) + np.uint64(1)))


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers that look random and depend on nothing but the ones given (the finaliser of splitmix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = numbers ^ (numbers >> np.uint64(31))
    return mixed

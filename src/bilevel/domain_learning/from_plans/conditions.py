"""Under which conditions a change happens: what always held when it did, and what must be said besides.

In a closed world and on random plans, that a step was never taken is a sign that it cannot be. A row here is a state
and objects for the variables of a change; it is seen if the change was seen from there, with these objects. A literal
that no seen row breaks is kept if, were it not a condition, it would be too much of a coincidence that no row that
breaks it was ever seen: with a rate r of seeing rows and n visits to such rows, its chance would be (1 - r)^n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import log1p

import numpy as np

from bilevel.domain_learning.from_plans.effects import Change
from bilevel.domain_learning.from_plans.steps import STATE, Mask, Steps, Table, type_atom
from bilevel.planning.grounding import Literal
from bilevel.symbolic.domain import EQUALITY, ROOT_TYPE, Atom, is_variable

EVIDENCE = 9.0  # the least that a literal must bring: the negative logarithm of the chance of a coincidence
MOST_ROWS = 4000  # that are looked at for one change, each of seen and unseen ones
MOST_TRIED = 250  # of these for conditions with further variables
WIDTH = 40  # how many conditions with further variables are followed up, those that say most
DEPTH = 4  # their longest
FINALISTS = 4  # of the ways to split, those that are worked out


@dataclass(frozen=True)
class Clause:
    """One condition of a change: literals that all hold, over its variables and perhaps further ones."""

    literals: tuple[Literal, ...]
    types: dict[str, str]  # of the further variables


@dataclass
class Rows:
    """States and objects for the variables of a change, what was seen of them, and how often they could have been."""

    table: Table
    counts: np.ndarray  # how often the change was seen there
    weights: np.ndarray  # how often the state was visited

    @property
    def size(self) -> int:
        return len(self.weights)

    def __getitem__(self, mask: Mask) -> Rows:
        return Rows({name: column[mask] for name, column in self.table.items()}, self.counts[mask], self.weights[mask])

    @cached_property
    def seen(self) -> Mask:
        return np.asarray(self.counts > 0)


@dataclass
class Branch:
    """A condition with further variables while it is built: its atoms, and the rows of the table that fulfil it."""

    atoms: tuple[Literal, ...]
    types: dict[str, str]
    table: Table
    origin: np.ndarray
    holds: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))


class ConditionSearch:
    """Looks for the conditions of one change."""

    def __init__(self, change: Change, steps: Steps) -> None:
        self.change, self.steps, self.frame = change, steps, steps.frame
        self.variables = tuple(v for v in change.variables if v not in change.new)
        self.declared = {v: self._declared_type(v) for v in change.variables}
        occurrences = change.table(steps)
        self.base = [atom for atom in self._atoms(self.variables) if steps.holds(occurrences, atom).all()]
        self.base += [type_atom(v, self._least_type(occurrences, v)) for v in self.variables]
        self.rows = self._sampled(self.all_rows(self.base))
        self._find_features()

    def _declared_type(self, variable: str) -> str:
        """Return the narrowest type that the predicates of the effect allow."""
        kinds = [
            self.frame.predicates[atom.predicate].parameters[i].type
            for atom in self.change.add | self.change.delete
            for i, term in enumerate(atom.terms)
            if term == variable
        ]
        return max(kinds, key=lambda kind: (len(self._ancestors(kind)), kind))

    def _ancestors(self, kind: str) -> list[str]:
        """Return the type and all above it, the root last."""
        line = [kind]
        while line[-1] != ROOT_TYPE:
            line.append(self.frame.types.get(line[-1], ROOT_TYPE))
        return line

    def _least_type(self, table: Table, variable: str) -> str:
        """Return the narrowest type of all objects that the variable stands for in a table."""
        kinds = [k for k in (*self.frame.types, ROOT_TYPE) if self.steps.holds(table, type_atom(variable, k)).all()]
        return max(kinds, key=lambda kind: (len(self._ancestors(kind)), kind))

    def _related(self, one: str, other: str) -> bool:
        return self.frame.is_subtype(one, other) or self.frame.is_subtype(other, one)

    def _atoms(self, variables: Sequence[str], needed: frozenset[str] = frozenset()) -> Iterator[Atom]:
        """Yield all atoms over variables and constants whose types fit; with `needed`, only those that have one."""
        types = {**self.frame.constants, **{v: self.declared[v] for v in variables}}
        for predicate in self.frame.predicates.values():
            fitting = [[t for t, kind in types.items() if self._related(kind, p.type)] for p in predicate.parameters]
            for terms in product(*fitting):
                if not needed or not needed.isdisjoint(terms):
                    yield Atom(predicate.name, terms)

    def all_rows(self, atoms: Sequence[Atom], absent: Sequence[Atom] = ()) -> Rows:
        """Return every row in which the atoms hold and the effect would change something."""
        visited = np.flatnonzero(self.steps.visits)
        table: Table = {STATE: visited}
        waiting = [atom for atom in atoms if atom.predicate != EQUALITY]
        while waiting:
            atom = min(waiting, key=lambda atom: self._cost(table, atom))
            waiting.remove(atom)
            if all(term in table or not is_variable(term) for term in atom.terms):
                holds = self.steps.holds(table, atom)
                table = {name: column[holds] for name, column in table.items()}
            else:
                table, _ = self.steps.join(table, atom)
        changes, counts = self._counted(table)
        keep = changes
        for atom in atoms:
            if atom.predicate == EQUALITY:
                keep = keep & self.steps.holds(table, atom)
        for atom in absent:
            keep = keep & ~self.steps.holds(table, atom)
        return Rows(table, counts, self.steps.visits[table[STATE]])[keep]

    def _counted(self, table: Table) -> tuple[Mask, np.ndarray]:
        if not self.change.new:
            return self.steps.counted(table, self.change.add, self.change.delete)
        kept = [i for i, v in enumerate(self.change.variables) if v not in self.change.new]
        seen: dict[tuple[int, ...], int] = {}
        for before, after, names in self.change.steps:
            place = self.steps.index[self.steps.states[before][0]]
            key = (before, *(place[names[i]] for i in kept))
            seen[key] = seen.get(key, 0) + self.steps.counts[before, after]
        rows = zip(table[STATE], *(table[v] for v in self.variables), strict=True)
        counts = np.array([seen.get(tuple(map(int, row)), 0) for row in rows], np.int64)
        return np.ones(len(counts), np.bool_), counts

    def _cost(self, table: Table, atom: Atom) -> tuple[bool, int, Atom]:
        free = sum(is_variable(term) and term not in table for term in atom.terms)
        return free > 0, (free > 0) * len(self.steps.relations[atom.predicate]) * (2 - (free < len(atom.terms))), atom

    def _sampled(self, rows: Rows, most: int = MOST_ROWS) -> Rows:
        """Return the rows or, where there are too many, some of them, evenly, with larger weights instead."""
        parts = []
        for mask in (rows.seen, ~rows.seen):
            places = np.flatnonzero(mask)
            stride = len(places) / most
            if stride > 1:
                places = places[(np.arange(most) * stride).astype(np.int64)]
            part = rows[places]
            factor = max(stride, 1.0)
            parts.append(Rows(part.table, part.counts * factor, part.weights * factor))
        table = {name: np.concatenate([part.table[name] for part in parts]) for name in rows.table}
        return Rows(
            table,
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )

    def _find_features(self) -> None:
        """Find the literals over the change's own variables that hold in some rows and not in others."""
        table, literals, columns = self.rows.table, [], []
        for atom in [*self._atoms(self.variables), *self._equalities(), *self._types()]:
            holds = self.steps.holds(table, atom)
            if holds.any() and not holds.all():
                literals += [Literal(atom), Literal(atom, False)]
                columns += [holds, ~holds]
        keep = [i for i, one in enumerate(literals) if one.present or not one.atom.predicate.startswith("- ")]
        self.literals = [literals[i] for i in keep]
        self.features = np.array([columns[i] for i in keep], np.bool_).reshape(len(keep), self.rows.size)

    def _equalities(self) -> Iterator[Atom]:
        for i, one in enumerate(self.variables):
            for other in (*self.variables[:i], *self.frame.constants):
                kind = self.declared.get(other) or self.frame.constants[other]
                if self._related(self.declared[one], kind):
                    yield Atom(EQUALITY, (one, other))

    def _types(self) -> Iterator[Atom]:
        for variable in self.variables:
            for kind in self.frame.types:
                yield type_atom(variable, kind)

    def clauses(self) -> list[Clause]:
        """Return conditions of which one at least holds in every row that was seen, and which allow few others."""
        return self._solve(self.rows.seen, np.ones(self.rows.size, np.bool_), 0)

    def _rate(self, wanted: Mask, covered: Mask) -> float:
        """Return how often the change is seen per visit, in the wanted rows and those covered that were never seen."""
        rows = self.rows
        visits = rows.weights[wanted | covered & ~rows.seen].sum()
        return min(float(rows.counts[wanted].sum() / max(visits, 1)), 0.99)

    def _refine(self, wanted: Mask) -> tuple[list[Literal], Mask]:
        """Return literals that hold in all wanted rows and have evidence, the most telling first; and the rows left."""
        fitting = self.features[:, wanted].all(axis=1)
        covered, chosen = np.ones(self.rows.size, np.bool_), []
        while fitting.any():
            unseen = np.where(covered & ~self.rows.seen, self.rows.weights, 0)
            excluded = np.where(fitting, (~self.features) @ unseen, -1.0)
            excluded -= [1e-6 * (not one.present) + 1e-7 * len(one.atom.terms) for one in self.literals]
            best = int(excluded.argmax())
            left = covered & self.features[best]
            if -log1p(-self._rate(wanted, left)) * excluded[best] < EVIDENCE:
                break
            chosen.append(self.literals[best])
            covered = left
        return chosen, covered

    def _solve(self, wanted: Mask, _: Mask, depth: int) -> list[Clause]:
        literals, covered = self._refine(wanted)
        branch = self._with_further_variables(wanted, covered)
        if branch is not None:
            covered = covered & branch.holds
        split = self._split(wanted, covered) if depth < 6 else None
        if split is not None:
            return [clause for part in split for clause in self._solve(part, covered, depth + 1)]
        base = [Literal(atom) for atom in self.base]
        return [Clause((*base, *literals, *(branch.atoms if branch else ())), branch.types if branch else {})]

    def _split(self, wanted: Mask, covered: Mask) -> tuple[Mask, Mask] | None:
        """Return the two parts of the wanted rows whose own conditions leave out most, if that is worth it."""
        unseen = covered & ~self.rows.seen
        rate = self._rate(wanted, covered)
        weights = np.where(unseen, self.rows.weights, 0)
        if -log1p(-rate) * weights.sum() < 2 * EVIDENCE:
            return None
        found = []
        for i, feature in enumerate(self.features):
            parts = wanted & feature, wanted & ~feature
            if not parts[0].any() or not parts[1].any() or not self.literals[i].present:
                continue
            left = np.zeros(self.rows.size, np.bool_)
            for part in parts:
                left |= self.features[self.features[:, part].all(axis=1)].all(axis=0)
            found.append((float(weights[~left].sum()), -i, parts))
        found.sort(key=lambda one: one[:2], reverse=True)
        best: tuple[float, tuple[Mask, Mask]] | None = None
        for _, _, parts in found[:FINALISTS]:
            refined = [self._refine(part) for part in parts]
            left = refined[0][1] | refined[1][1]
            gain = -log1p(-self._rate(wanted, covered & left)) * float(weights[~left].sum())
            gain -= EVIDENCE * max(sum(len(literals) for literals, _ in refined) / 2, 1)
            if gain > EVIDENCE and (best is None or gain > best[0]):
                best = gain, parts
        return best[1] if best else None

    def _with_further_variables(self, wanted: Mask, covered: Mask) -> Branch | None:
        """Return a condition with variables that the effect does not name, if there is evidence for one."""
        unseen = covered & ~self.rows.seen
        total = float(self.rows.weights[unseen].sum())
        if -log1p(-self._rate(wanted, covered)) * total < EVIDENCE:
            return None
        sample = self._thinned(wanted, unseen)
        best, best_gain = None, 0.0
        beam = [Branch((), {}, sample.table, np.arange(sample.size), np.ones(sample.size, np.bool_))]
        for _ in range(DEPTH):
            found = [longer for branch in beam for longer in self._longer(branch, sample)]
            scored = [(float(sample.weights[~b.holds].sum()), -len(b.origin), i) for i, b in enumerate(found)]
            scored.sort(reverse=True)
            beam = [found[i] for _, _, i in scored[:WIDTH]]
            for (excluded, _, _), branch in zip(scored[:WIDTH], beam, strict=True):
                share = excluded / max(float(sample.weights[~sample.seen].sum()), 1e-9)
                rate = float(self.rows.counts[wanted].sum() / (self.rows.weights[wanted].sum() + total * (1 - share)))
                gain = -log1p(-min(rate, 0.99)) * share * total - EVIDENCE * (1 + 0.2 * len(branch.atoms))
                if gain > best_gain + 1e-9:
                    best, best_gain = branch, gain
            if not beam or (best is not None and best_gain > 0 and self._is_exhausted(best, sample)):
                break
        return self._on_all_rows(best) if best else None

    def _is_exhausted(self, branch: Branch, sample: Rows) -> bool:
        return not (branch.holds & ~sample.seen).any()

    def _thinned(self, wanted: Mask, unseen: Mask) -> Rows:
        parts = []
        for mask in (wanted, unseen):
            places = np.flatnonzero(mask)
            stride = max(len(places) / MOST_TRIED, 1.0)
            parts.append(places[(np.arange(min(len(places), MOST_TRIED)) * stride).astype(np.int64)])
        return self.rows[np.concatenate(parts)]

    def _longer(self, branch: Branch, sample: Rows) -> Iterator[Branch]:
        """Yield the condition with one more atom, as long as every seen row fulfils it."""
        known = (*self.variables, *branch.types)
        fresh = [f"?{chr(ord('a') + len(branch.types) + i)}" for i in range(2 if not branch.types else 1)]
        fixed = {*self.variables, *self.frame.constants}
        for atom in self._atoms_with(branch, known, fresh):
            new = [v for v in dict.fromkeys(atom.terms) if v in fresh]
            if new != fresh[: len(new)] or Literal(atom) in branch.atoms or fixed.issuperset(atom.terms):
                continue
            if new:
                table, origin = self.steps.join(branch.table, atom)
                origin = branch.origin[origin]
            else:
                keep = self.steps.holds(branch.table, atom)
                table = {name: column[keep] for name, column in branch.table.items()}
                origin = branch.origin[keep]
            holds = np.zeros(sample.size, np.bool_)
            holds[origin] = True
            if holds[sample.seen].all() and len(origin) < 200 * sample.size:
                types = {**branch.types, **{v: self._place_type(atom, v) for v in new}}
                yield Branch((*branch.atoms, Literal(atom)), types, table, origin, holds)

    def _place_type(self, atom: Atom, variable: str) -> str:
        return self.frame.predicates[atom.predicate].parameters[atom.terms.index(variable)].type

    def _atoms_with(self, branch: Branch, known: Sequence[str], fresh: Sequence[str]) -> Iterator[Atom]:
        types = {**self.frame.constants, **self.declared, **branch.types}
        for predicate in self.frame.predicates.values():
            fitting = [
                [*(t for t in (*known, *self.frame.constants) if self._related(types[t], p.type)), *fresh]
                for p in predicate.parameters
            ]
            for terms in product(*fitting):
                if not branch.types or not branch.types.keys().isdisjoint(terms) or not set(fresh).isdisjoint(terms):
                    yield Atom(predicate.name, terms)

    def _on_all_rows(self, branch: Branch) -> Branch:
        table, origin = self.rows.table, np.arange(self.rows.size)
        for literal in branch.atoms:
            table, places = self.steps.join(table, literal.atom)
            origin = origin[places]
        holds = np.zeros(self.rows.size, np.bool_)
        holds[origin] = True
        return replace(branch, table=table, origin=origin, holds=holds)

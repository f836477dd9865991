"""Small problems as spaces: every state that actions lead to, what is true in it, and what each action leads to.

States are rows and facts and actions are columns, so that a question about all states is a few operations on arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilevel.planning.grounding import GroundProblem
from bilevel.planning.planner import Deadline
from bilevel.rules.derived import MARK, PATH, path_lengths
from bilevel.symbolic.domain import Action, Atom, Domain, Facts, Problem

FAR = np.iinfo(np.int32).max  # from a goal that cannot be reached

IS_OBJECT = ""  # the predicate of a fact that holds of every object

States = NDArray[np.bool_]  # for each state whether it is in a set
Numbers = NDArray[np.integer[Any]]  # a number for each of some states


class Space:
    """All states of a deterministic problem that actions lead to; the initial one is first."""

    def __init__(
        self,
        domain: Domain,
        problem: Problem,
        changing: Mapping[Atom, States],
        actions: Sequence[Action],
        after: Numbers,
    ) -> None:
        """`changing` says in which states atoms hold, `after` which state each action leads to from each, or -1."""
        self.domain, self.problem, self.actions, self.after = domain, problem, actions, after
        self.size = len(after)
        self.objects = problem.all_objects(domain)
        self.action_numbers = {action: number for number, action in enumerate(actions)}
        lasting = problem.state.union(Atom(IS_OBJECT, (name,)) for name in self.objects) - changing.keys()
        always = dict.fromkeys(lasting, np.ones(self.size, dtype=bool))
        self._columns: dict[Atom, States] = {**always, **changing}
        self.path_lengths: dict[Atom, int] = {}  # of the paths of which atoms name the first step
        self._by_predicate: dict[str, list[Atom]] = {}
        for atom in sorted(atom for atom, column in self._columns.items() if column.any()):
            self._by_predicate.setdefault(atom.predicate, []).append(atom)
        self._before, self._does = np.nonzero(after >= 0)
        self._then = after[self._before, self._does]

    @staticmethod
    def of(
        domain: Domain, problem: Problem, most_states: int, deadline: Deadline, ground: GroundProblem | None = None
    ) -> Space | None:
        """Return the space of a problem, or `None` where it has more states than that.

        It may be given as it is when grounded, also with other goals.
        """
        ground = ground or GroundProblem(domain, problem, deadline)
        operators = ground.operators
        first = ground.mask(problem.state.intersection(ground.atoms), set(ground.atoms) - problem.state)
        numbers, states, found = {first: 0}, [first], list[tuple[int, int, int]]()
        for state in states:  # grows while it is read
            deadline.check()
            if len(states) > most_states:
                return None
            for index, operator in enumerate(operators):
                if operator.precondition & state == operator.precondition:
                    then = operator.apply(state)
                    if then not in numbers:
                        numbers[then] = len(states)
                        states.append(then)
                    found.append((numbers[state], index, numbers[then]))
        after = np.full((len(states), len(operators)), -1, dtype=np.int32)
        for number, index, result in found:
            after[number, index] = result
        columns = {
            atom: np.array([bool(state >> 2 * number & 2) for state in states])
            for number, atom in enumerate(ground.atoms)
        }
        return Space(domain, problem, columns, [operator.step.action for operator in operators], after)

    def then(self, states: Numbers, action: int) -> Numbers:
        """Return the states after an action, or -1 where it cannot be done or has to do with no goal."""
        return self.after[states, action] if action >= 0 else np.full(len(states), -1)

    def holds(self, atom: Atom) -> States:
        """Return in which states an atom holds."""
        if atom.predicate not in self._by_predicate:
            self.atoms_of(atom.predicate)
        column = self._columns.get(atom)
        return np.zeros(self.size, dtype=bool) if column is None else column

    def atoms_of(self, predicate: str) -> Sequence[Atom]:
        """Return the atoms of a predicate, or of the closure of one, that hold in some state."""
        if predicate not in self._by_predicate and predicate[-1:] in (MARK, PATH):
            self._derive(predicate)
        return self._by_predicate.get(predicate, ())

    def _derive(self, predicate: str) -> None:
        """Find the facts of a closure or of paths."""
        self._by_predicate[predicate] = []
        if predicate.endswith(PATH):
            facts = frozenset(self.atoms_of(predicate.removesuffix(PATH)))
            self.path_lengths.update(lengths := path_lengths(facts))
            self._by_predicate[predicate] = list(lengths)
            self._columns |= dict.fromkeys(lengths, np.ones(self.size, dtype=bool))
            return
        names = list(self.objects)
        place = {name: number for number, name in enumerate(names)}
        linked = np.zeros((self.size, len(names), len(names)), dtype=bool)
        for atom in self.atoms_of(predicate.removesuffix(MARK)):
            linked[:, place[atom.terms[0]], place[atom.terms[1]]] = self._columns[atom]
        for middle in range(len(names)):
            linked |= linked[:, :, middle, None] & linked[:, middle, None, :]
        for one, other in np.argwhere(linked.any(axis=0)):
            atom = Atom(predicate, (names[one], names[other]))
            self._by_predicate[predicate].append(atom)
            self._columns[atom] = linked[:, one, other]

    @cached_property
    def component(self) -> Numbers:
        """For each state the number of its strongly connected component: what can be undone stays in it."""
        reached = [1 << state for state in range(self.size)]  # as sets of bits; equal in one component, and only there
        links = [*zip(self._before.tolist(), self._then.tolist(), strict=True)][::-1]
        before: list[int] = []
        while reached != before:
            before = reached.copy()
            for state, then in links:
                reached[state] |= reached[then]
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(states, len(numbers)) for states in reached])

    def distances(self, targets: States, inside: States) -> Numbers:
        """Return how many actions lead from each state to the nearest target, on a way that stays inside."""
        found = np.where(targets, 0, FAR).astype(np.int32)
        frontier, length = targets, 0
        while frontier.any():
            length += 1
            new = self._before[frontier[self._then]]
            frontier = np.zeros(self.size, dtype=bool)
            frontier[new] = True
            frontier &= inside & (found == FAR)
            found[frontier] = length
        return found

    def facts(self, state: int) -> Facts:
        """Return what holds in a state."""
        return frozenset(atom for atom, column in self._columns.items() if column[state])

    def all_hold(self, atoms: Iterable[Atom]) -> States:
        """Return in which states all of these atoms hold."""
        result = np.ones(self.size, dtype=bool)
        for atom in atoms:
            result &= self.holds(atom)
        return result

    def surely(self, goals: Iterable[Atom]) -> States:
        """Return from which states the goals can be achieved."""
        return self.distances(self.all_hold(goals), np.ones(self.size, dtype=bool)) < FAR

    @cached_property
    def solvable(self) -> States:
        """The states from which the problem can be solved."""
        return self.surely(self.problem.goal)

"""All that can happen in a problem: the transitions of a domain, random walks over them, and two domains compared.

States are integers here: bit i is set where fact i of a numbering that all domains share holds.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bilevel.domain_learning.episodes import Episode
from bilevel.planning.condition_index import bits_of
from bilevel.planning.grounding import MADE, reachable_instances
from bilevel.planning.planner import Deadline, PlanStep
from bilevel.symbolic.domain import ROOT_TYPE, Atom, Domain, Facts, Problem

GROUNDING_SECONDS = 60.0


@dataclass
class Numbering:
    """A bit for each fact, in the order in which they are asked for."""

    bits: dict[Atom, int] = field(default_factory=dict)

    def mask(self, atoms: Iterable[Atom]) -> int:
        """Return the integer in which the bits of these facts are set."""
        return sum(1 << self.bits.setdefault(atom, len(self.bits)) for atom in sorted(set(atoms)))

    def facts(self, mask: int) -> Facts:
        """Return the facts whose bits are set, without those that only say which objects nature has made."""
        return frozenset(atom for atom, bit in self.bits.items() if mask >> bit & 1 and atom.predicate != MADE)


@dataclass(frozen=True)
class Transition:
    """One outcome of a ground action: where `needed` is set and `forbidden` is not, clears `delete` and sets `add`."""

    step: PlanStep
    needed: int
    forbidden: int
    add: int
    delete: int


class StateSpace:
    """The transitions of a domain in a problem; each is filed under one of the facts that it needs."""

    def __init__(self, domain: Domain, problem: Problem, numbering: Numbering, new_objects: int = 0) -> None:
        self.start = numbering.mask(problem.state)
        instances, _ = reachable_instances(domain, problem, Deadline(GROUNDING_SECONDS), new_objects)
        transitions = [
            Transition(
                one.step,
                numbering.mask(literal.atom for literal in one.condition if literal.present),
                numbering.mask(literal.atom for literal in one.condition if not literal.present),
                numbering.mask(literal.atom for literal in one.add if literal.present),
                numbering.mask(literal.atom for literal in one.delete if literal.present),
            )
            for one in instances
        ]
        uses = Counter(bit for transition in transitions for bit in bits_of(transition.needed))
        self._filed: dict[int, list[Transition]] = {0: []}
        for transition in transitions:
            rarest = min(bits_of(transition.needed), key=lambda bit: (uses[bit], bit), default=-1)
            self._filed.setdefault(1 << rarest if rarest >= 0 else 0, []).append(transition)
        self._keys = sum(self._filed)

    def applicable(self, state: int) -> Iterator[Transition]:
        """Yield the transitions that are possible in a state, whether or not they change it."""
        keys = state & self._keys
        while True:
            key = keys & -keys
            for transition in self._filed[key]:
                if transition.needed & state == transition.needed and not transition.forbidden & state:
                    yield transition
            if not key:
                return
            keys ^= key

    def successors(self, state: int) -> dict[int, Transition]:
        """Return the other states to which one step may lead, each with a transition that leads there."""
        found: dict[int, Transition] = {}
        for transition in self.applicable(state):
            after = state & ~transition.delete | transition.add
            if after != state:
                found.setdefault(after, transition)
        return found


def random_walks(
    domain: Domain, problem: Problem, steps: int, rng: random.Random, new_objects: int = 0
) -> Iterator[Episode]:
    """Yield the states of random walks from the problem's first one, without end.

    Each takes at every step any applicable ground action, and then any of its outcomes; where nothing is applicable, it
    stays. What objects nature made is known by their names.
    """
    numbering = Numbering()
    space = StateSpace(domain, problem, numbering, new_objects)
    while True:
        state, states = space.start, [space.start]
        for _ in range(steps):
            by_action: dict[object, list[Transition]] = {}
            for transition in space.applicable(state):
                by_action.setdefault(transition.step.action, []).append(transition)
            if by_action:
                chosen = rng.choice(rng.choice(list(by_action.values())))
                state = state & ~chosen.delete | chosen.add
            states.append(state)
        facts = [numbering.facts(state) for state in states]
        objects = problem.all_objects(domain)
        for made in sorted(a for a, bit in numbering.bits.items() if a.predicate == MADE and states[-1] >> bit & 1):
            name = made.terms[0]  # of its type and a number
            objects[name] = max((kind for kind in domain.types if name.startswith(kind)), key=len, default=ROOT_TYPE)
        yield Episode(facts, objects)


@dataclass(frozen=True)
class Difference:
    """A step from a reachable state that only one of two domains allows."""

    state: Facts
    after: Facts
    step: PlanStep
    is_missing: bool  # from the second domain


@dataclass(frozen=True)
class Comparison:
    """How two domains compare in the states of a problem that can be reached under the first."""

    states: int
    complete: bool  # whether these are all
    missing: int  # steps of the first that the second does not allow
    extra: int  # steps of the second that the first does not allow
    first: Difference | None = None

    @property
    def is_equivalent(self) -> bool:
        """Whether both domains have the same transitions."""
        return not self.missing and not self.extra


def compare(written: Domain, learned: Domain, problem: Problem, max_states: int, new_objects: int = 0) -> Comparison:
    """Compare the steps that change something in every state reachable under the first domain, breadth first."""
    numbering = Numbering()
    ours, theirs = (StateSpace(domain, problem, numbering, new_objects) for domain in (written, learned))
    seen, queue = {ours.start}, deque([ours.start])
    explored = missing = extra = 0
    first: Difference | None = None
    while queue and explored < max_states:
        state = queue.popleft()
        explored += 1
        right, found = ours.successors(state), theirs.successors(state)
        for after, transition in [*right.items(), *found.items()]:
            if (after in right) != (after in found):
                missing, extra = missing + (after in right), extra + (after in found)
                first = first or Difference(
                    numbering.facts(state), numbering.facts(after), transition.step, after in right
                )
        for after in right:
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return Comparison(explored, not queue, missing, extra, first)

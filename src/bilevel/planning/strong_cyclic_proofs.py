"""A proof that a policy is strong-cyclic, decision by decision: however many states there are, it need not know them.

Of a state in which a decision counts one knows its condition, and what the policy never changes. If after each
outcome this is enough to tell that some decision applies or the goal is reached, and after one of them one nearer to
the goal, then the policy is strong-cyclic: as long as nature is kind, the goal comes nearer with every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bilevel.planning.grounding import makers_of_new_objects
from bilevel.planning.planner import ContingentPolicy, Deadline, Decision, TimeUp
from bilevel.symbolic.domain import Atom, BadInput, Domain, Outcome, Problem
from bilevel.symbolic.semantics import Condition, GroundAction, bind_outcome, ground_action, natures_choices, progress

Literal = tuple[Atom, bool]


def is_proved(domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> bool:
    """Whether there is such a proof; a policy without one need not be wrong."""
    if makers_of_new_objects(domain, problem):
        return False
    try:
        return _Prover(domain, problem, policy, deadline).is_proved()
    except (BadInput, TimeUp):  # an action that does not fit the domain
        return False


class _Choice(NamedTuple):
    """A decision with all that nature may make of it, spelt out."""

    decision: Decision
    action: GroundAction
    outcomes: list[Outcome]


class _Prover:
    def __init__(self, domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> None:
        self.domain = domain
        self.problem = problem
        self.policy = policy
        self.deadline = deadline
        self.objects = problem.all_objects(domain)
        self.choices = [self._choice(decision) for decision in policy.decisions]
        outcomes = [outcome for choice in self.choices for outcome in choice.outcomes]
        self.added = frozenset[Atom]().union(*(outcome.add for outcome in outcomes))
        self.deleted = frozenset[Atom]().union(*(outcome.delete - outcome.add for outcome in outcomes))
        self.filed: dict[Literal | None, list[Decision]] = {}
        for decision in policy.decisions:
            self.filed.setdefault(self._rarest(decision.condition), []).append(decision)

    def _choice(self, decision: Decision) -> _Choice:
        self.deadline.check()
        ground = ground_action(self.domain, decision.action, self.objects)
        choices = ((o, c) for o in ground.outcomes for c in natures_choices(o, self.domain, self.objects))
        return _Choice(decision, ground, [bind_outcome(outcome, choice) for outcome, choice in choices])

    def is_proved(self) -> bool:
        distances = [decision.distance for decision in self.policy.decisions]
        if distances != sorted(distances) or any(distance < 1 for distance in distances):
            return False
        mentioned = {atom for d in self.policy.decisions for atom in d.condition.positive | d.condition.negative}
        mentioned |= self.problem.goal | self.problem.negative_goal
        first = Condition(self.problem.state, frozenset(mentioned - self.problem.state))
        return self._distance(first) is not None and all(map(self._is_sound, self.choices))

    def _is_sound(self, choice: _Choice) -> bool:
        """Whether the decision can be carried out, and each outcome leads to another, one of them to a nearer one."""
        self.deadline.check()
        condition = choice.decision.condition
        if not self._implies(condition, choice.action.condition):
            return False
        known = Condition(
            condition.positive | choice.action.condition.positive, condition.negative | choice.action.condition.negative
        )
        distances = [self._distance(_after(known, outcome)) for outcome in choice.outcomes]
        reached = [distance for distance in distances if distance is not None]
        return len(reached) == len(distances) and min(reached, default=0) < choice.decision.distance

    def _distance(self, known: Condition) -> int | None:
        """How near the goal is at most, where this is known to hold; `None` where maybe no decision applies."""
        if self._implies(known, Condition(self.problem.goal, self.problem.negative_goal)):
            return 0
        found = (d.distance for d in self._candidates(known) if self._implies(known, d.condition))
        return min(found, default=None)

    def _implies(self, known: Condition, condition: Condition) -> bool:
        return all(atom in known.positive or self._never_changes(atom, True) for atom in condition.positive) and all(
            atom in known.negative or self._never_changes(atom, False) for atom in condition.negative
        )

    def _never_changes(self, atom: Atom, present: bool) -> bool:
        """Whether it is so at first and no step of the policy makes it otherwise."""
        if present:
            return atom in self.problem.state and atom not in self.deleted
        return atom not in self.problem.state and atom not in self.added

    def _candidates(self, known: Condition) -> Iterator[Decision]:
        yield from self.filed.get(None, ())
        for literal in _literals(known):
            yield from self.filed.get(literal, ())

    def _rarest(self, condition: Condition) -> Literal | None:
        """Where to file a decision: a literal that must be known for it to apply, as few others as possible with it."""
        changing = [literal for literal in _literals(condition) if not self._never_changes(*literal)]
        return min(changing, key=lambda literal: len(self.filed.get(literal, ())), default=None)


def _literals(condition: Condition) -> Iterable[Literal]:
    yield from ((atom, True) for atom in sorted(condition.positive))
    yield from ((atom, False) for atom in sorted(condition.negative))


def _after(known: Condition, outcome: Outcome) -> Condition:
    """What is known after the outcome."""
    gone = outcome.delete - outcome.add
    return Condition(progress(known.positive, outcome), (known.negative | gone) - outcome.add)

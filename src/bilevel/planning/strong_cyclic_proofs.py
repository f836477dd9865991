"""A proof that a policy is strong-cyclic, decision by decision: however many states there are, it need not know them.

Of a state in which a decision counts one knows its condition, and what the policy never changes. If after each
outcome this is enough to tell that some decision applies or the goal is reached, and after one of them one nearer to
the goal, then the policy is strong-cyclic: as long as nature is kind, the goal comes nearer with every step.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from bilevel.planning.grounding import Literal, absent, makers_of_new_objects, present
from bilevel.planning.planner import ContingentPolicy, Deadline, TimeUp
from bilevel.symbolic.domain import BadInput, Domain, Outcome, Problem
from bilevel.symbolic.semantics import Condition, bind_outcome, ground_action, natures_choices

Literals = Set[Literal]


class _Move(NamedTuple):
    """A decision with what its action asks for, and what each outcome makes true."""

    condition: Literals
    distance: int
    precondition: Literals
    outcomes: Sequence[Literals]


def is_proved(domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> bool:
    """Whether there is such a proof; a policy without one need not be wrong."""
    distances = [decision.distance for decision in policy.decisions]
    if makers_of_new_objects(domain, problem) or distances != sorted(distances) or min(distances, default=1) < 1:
        return False
    try:
        return _Prover(domain, problem, policy, deadline).is_proved()
    except (BadInput, TimeUp):  # an action that does not fit the domain
        return False


class _Prover:
    """Of all conditions only that part is looked at which the policy may change: the rest is settled at the start."""

    def __init__(self, domain: Domain, problem: Problem, policy: ContingentPolicy, deadline: Deadline) -> None:
        self.deadline = deadline
        self.moves, objects = [], problem.all_objects(domain)
        for decision in policy.decisions:
            deadline.check()
            action = ground_action(domain, decision.action, objects)
            pairs = ((o, choice) for o in action.outcomes for choice in natures_choices(o, domain, objects))
            outcomes = [_effects(bind_outcome(outcome, choice)) for outcome, choice in pairs]
            needs = _literals(decision.condition), decision.distance, _literals(action.condition)
            self.moves.append(_Move(*needs, outcomes))
        changed = frozenset[Literal]().union(*(effects for move in self.moves for effects in move.outcomes))
        goal = _literals(Condition(problem.goal, problem.negative_goal))
        needed = goal.union(*(move.condition | move.precondition for move in self.moves))
        self.first = {literal for literal in needed if literal.present == (literal.atom in problem.state)}
        self.settled = {literal for literal in self.first if _opposite(literal) not in changed}
        self.filed: dict[Literal | None, list[tuple[Literals, int]]] = {}  # what is near the goal, and how near
        for condition, distance in [(goal, 0), *((move.condition, move.distance) for move in self.moves)]:
            rest = condition - self.settled
            rarest = min(sorted(rest), key=lambda literal: len(self.filed.get(literal, ())), default=None)
            self.filed.setdefault(rarest, []).append((rest, distance))

    def is_proved(self) -> bool:
        return self._distance(self.first) is not None and all(map(self._is_sound, self.moves))

    def _is_sound(self, move: _Move) -> bool:
        """Whether the decision can be carried out, and each outcome leads to another, one of them to a nearer one."""
        self.deadline.check()
        if not move.precondition <= move.condition | self.settled:
            return False
        overwritten = [{_opposite(literal) for literal in effects} for effects in move.outcomes]
        afterwards = [(move.condition - o) | e for o, e in zip(overwritten, move.outcomes, strict=True)]
        distances = [distance for known in afterwards if (distance := self._distance(known)) is not None]
        return len(distances) == len(afterwards) and min(distances, default=0) < move.distance

    def _distance(self, known: Literals) -> int | None:
        """How near the goal is at most, where this is known to hold; `None` where maybe no decision applies."""
        candidates = (pair for literal in (None, *known) for pair in self.filed.get(literal, ()))
        return min((distance for rest, distance in candidates if rest <= known), default=None)


def _opposite(literal: Literal) -> Literal:
    return Literal(literal.atom, not literal.present)


def _literals(condition: Condition) -> frozenset[Literal]:
    return present(condition.positive) | absent(condition.negative)


def _effects(outcome: Outcome) -> frozenset[Literal]:
    return present(outcome.add) | absent(outcome.delete - outcome.add)

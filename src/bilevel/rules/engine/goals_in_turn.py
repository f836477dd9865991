"""Which goals are open and wait for no other, kept up to date as facts come and go; `matching` defines it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bilevel.rules.matching import predecessors
from bilevel.symbolic.domain import Atom, Facts


class GoalsInTurn:
    """The open goals that wait for no other; `waits` says for which each waits, and `facts` what holds at first."""

    def __init__(self, goals: Facts, waits: Mapping[Atom, set[Atom]], facts: Collection[Atom]) -> None:
        self._goals = goals
        self.open = {goal for goal in goals if goal not in facts}
        awaited = {goal: predecessors(waits, goal) for goal in waits}
        self._waiting = {goal: len(others & self.open) for goal, others in awaited.items()}
        self._followers: dict[Atom, list[Atom]] = {}
        for goal, others in awaited.items():
            for other in others:
                self._followers.setdefault(other, []).append(goal)
        self.in_turn = {goal for goal in self.open if not self._waiting.get(goal)}

    def update(self, came: Iterable[Atom], went: Iterable[Atom]) -> tuple[set[Atom], set[Atom]]:
        """Return which goals have come to be in turn, and which have ceased to be, now that facts came and went."""
        affected = set[Atom]()
        for facts, opens in ((came, False), (went, True)):
            for goal in facts:
                if goal in self._goals and (goal in self.open) != opens:
                    (self.open.add if opens else self.open.remove)(goal)
                    followers = self._followers.get(goal, ())
                    affected.update((goal, *followers))
                    for follower in followers:
                        self._waiting[follower] += 1 if opens else -1
        now = {goal for goal in affected if goal in self.open and not self._waiting.get(goal)}
        begun, ceased = now - self.in_turn, (affected & self.in_turn) - now
        self.in_turn -= ceased
        self.in_turn |= begun
        return begun, ceased

"""Noticing that nothing comes of an action, by how long the demonstrations took for it, and that nothing moves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bilevel.symbolic.domain import Action, Facts
from bilevel.tasks.scene import Scene

MARGIN = 6  # times the longest demonstration of an action, for one attempt at it
MANY_TIMES = 60  # times the same, for all attempts at it in the same state together: who is pushed about comes back
LEAST, UNKNOWN = 50, 1000  # steps: for actions that take next to none, and where nothing is known of any
SETTLING = 5  # steps that a state may be left for without being another attempt

Situation = tuple[Facts, Facts, Action]  # state, goal, and what is being done


@dataclass(slots=True)
class _Visits:
    """What is known of a situation: when it was left last, the steps of that attempt, and the steps of all."""

    left: float = -math.inf
    attempt: int = 0
    total: int = 0


class StallWatch:
    """Says until when something must have changed; the one who acts compares that with the present step.

    Only a change of the symbols counts, and not if it is undone at once. Where the same few states come again and
    again, the steps in each of them add up: then it is the total that ends the patience.
    """

    def __init__(self, longest: Mapping[str, int]) -> None:
        """`longest` gives the steps of the longest demonstration of each schema."""
        self._longest = longest
        self.reset()

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._visits: dict[Situation, _Visits] = {}
        self._here: Situation | None = None
        self._began = 0
        self._retries: Counter[Action] = Counter()  # each of them gets twice the time
        self.deadline = math.inf  # the step at which a stall is to be noticed

    def patience(self, schema: str) -> int:
        """Return for how many steps an attempt may be without effect; what nobody showed is like the others."""
        longest = self._longest.get(schema) or max(self._longest.values(), default=0)
        return max(LEAST, MARGIN * longest) if longest else UNKNOWN

    def enter(self, step: int, situation: Situation | None) -> bool:
        """Note that this is the situation from now on, `None` where nothing is being done; return whether it is new."""
        self._leave(step)
        self._here, self._began, self.deadline = situation, step, math.inf
        if situation is None:
            return False
        is_new = situation not in self._visits
        visits = self._visits.setdefault(situation, _Visits())
        if step - visits.left > SETTLING:
            visits.attempt = 0
        if is_new:
            self._retries.clear()
        patience = self.patience(situation[2].name) << self._retries[situation[2]]
        self.deadline = step + min(patience - visits.attempt, MANY_TIMES * patience // MARGIN - visits.total)
        return is_new

    def forgive(self, step: int) -> None:
        """Give the present situation its whole time again, and twice as much."""
        here, self._here = self._here, None
        if here is not None:
            self._visits[here] = _Visits()
            self._retries[here[2]] += 1
        self.enter(step, here)

    def _leave(self, step: int) -> None:
        if self._here is not None:
            visits, steps = self._visits[self._here], step - self._began
            visits.left, visits.attempt, visits.total = step, visits.attempt + steps, visits.total + steps


class JamWatch:
    """Counts the steps in a row in which nothing that is seen has changed at all."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: an episode begins."""
        self._agent = self._objects = b""  # as they were seen last
        self._unmoved = 0

    def look(self, scene: Scene) -> int:
        """Return for how many steps this has been seen; almost always the agent has moved, which is found at once."""
        agent = scene.values.tobytes()
        if agent == self._agent and scene.features.tobytes() == self._objects:
            self._unmoved += 1
        else:
            self._agent, self._objects, self._unmoved = agent, scene.features.tobytes(), 0
        return self._unmoved

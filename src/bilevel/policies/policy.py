"""What acts. A policy turns scenes into controls; a bilevel policy decides what to do, then does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene
from bilevel.tasks.task import Labels


class Policy(Protocol):
    """All that a rollout knows of what it runs."""

    def reset(self, scene: Scene) -> None:
        """Begin an episode."""

    def act(self, scene: Scene) -> Control | None:
        """The next control, or `None` where the policy does not know what to do."""


class ObservedPolicy(Policy, Protocol):
    """A policy that says what it sees, in symbols, and what it is doing, if it knows."""

    labels: Labels
    state: Facts
    goal: Facts
    action: Action | None


class HighLevelPolicy(Protocol):
    """Decides what to do: rules, a plan, a person's own program."""

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None: ...

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""

    def choose(self, state: Facts, goal: Facts) -> Action | None: ...


class LowLevelPolicy(Protocol):
    """Does it: from a scene and the action that is to be done, a control."""

    def control(self, scene: Scene, state: Facts, goal: Facts, action: Action) -> Control: ...


class BilevelPolicy:
    """Label, choose, control. What is being done is kept for whoever wants to show or record it."""

    def __init__(self, labels: Labels, high: HighLevelPolicy, low: LowLevelPolicy) -> None:
        self.labels, self.high, self.low = labels, high, low
        self.state: Facts = NO_FACTS
        self.goal: Facts = NO_FACTS
        self.action: Action | None = None
        self._begun = False

    def reset(self, scene: Scene) -> None:
        self._begun = True
        self.state, self.goal = self.labels.state(scene), self.labels.goal(scene)
        self.high.reset(self.state, self.goal, scene.objects)
        self.action = self.high.choose(self.state, self.goal)

    def act(self, scene: Scene) -> Control | None:
        if not self._begun:
            self.reset(scene)
        state, goal = self.labels.state(scene), self.labels.goal(scene)
        if not (_same(state, self.state) and _same(goal, self.goal)):  # else the action stays the same, too
            self.state, self.goal = state, goal
            self.high.declare(scene.objects)
            self.action = self.high.choose(state, goal)
        return None if self.action is None else self.low.control(scene, state, goal, self.action)


def _same(first: Facts, second: Facts) -> bool:
    """Labels that remember sets of facts often give the very same one, which comparing sets does not notice."""
    return first is second or first == second

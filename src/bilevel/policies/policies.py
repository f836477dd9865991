"""What acts. A policy turns observations into controls; a bilevel policy decides what to do, then does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bilevel.symbolic.domain import NO_FACTS, Action, Facts
from bilevel.tabletop.labelling import Labels
from bilevel.tabletop.observation import Observation, Slots

Control = NDArray[np.float32]


class Policy(Protocol):
    """All that a rollout knows of what it runs."""

    def reset(self, observation: Observation) -> None: ...

    def act(self, observation: Observation) -> Control | None:
        """The next control, or `None` where the policy does not know what to do."""


class WatchedPolicy(Policy, Protocol):
    """A policy that says what it sees, in symbols, and what it is doing, if it knows."""

    labels: Labels
    state: Facts
    action: Action | None


class HighLevelPolicy(Protocol):
    """Decides what to do: rules, a plan, a person's own program."""

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None: ...

    def declare(self, objects: Mapping[str, str]) -> None:
        """Make objects known that have appeared since."""

    def choose(self, state: Facts, goal: Facts) -> Action | None: ...


class LowLevelPolicy(Protocol):
    """Does it: from what is seen and what is to be done, a control."""

    def control(self, observation: Observation, state: Facts, goal: Facts, action: Action) -> Control: ...


class BilevelPolicy:
    """Label, choose, control. What is being done is kept for whoever wants to show or record it."""

    def __init__(self, labels: Labels, high: HighLevelPolicy, low: LowLevelPolicy) -> None:
        self.labels, self.high, self.low = labels, high, low
        self.state: Facts = NO_FACTS
        self.goal: Facts = NO_FACTS
        self.action: Action | None = None
        self._begun = False

    @classmethod
    def load(cls, path: Path | str, slots: Slots | None = None) -> BilevelPolicy:
        """The policy in a folder that `bilevel learn` made, for an environment with these slots.

        Without slots, it finds out from each observation which environment of its task it is in.
        """
        from bilevel.policies.fitting_policy import FittingPolicy  # they build upon this module
        from bilevel.policies.policy_folder import read_policy

        saved = read_policy(Path(path))
        return FittingPolicy(saved) if slots is None else saved.bind(slots)

    def reset(self, observation: Observation) -> None:
        self._begun = True
        self.state, self.goal = self.labels.state(observation), self.labels.goal(observation)
        self.high.reset(self.state, self.goal, self.labels.objects(observation))
        self.action = self.high.choose(self.state, self.goal)

    def act(self, observation: Observation) -> Control | None:
        if not self._begun:
            self.reset(observation)
        state, goal = self.labels.state(observation), self.labels.goal(observation)
        unchanged = _same(state, self.state) and _same(goal, self.goal)
        if not unchanged:  # else the action stays the same, too
            self.state, self.goal = state, goal
            self.high.declare(self.labels.objects(observation))
            self.action = self.high.choose(state, goal)
        return None if self.action is None else self.low.control(observation, state, goal, self.action)


def _same(first: Facts, second: Facts) -> bool:
    """Labels remember sets of facts: nearly always it is the very same one, which comparing sets does not notice."""
    return first is second or first == second

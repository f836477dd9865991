"""A policy that waits: for what is not seen yet, the only thing to do is to look again."""

from __future__ import annotations

from bilevel.lowlevel.encoding import Unseen
from bilevel.policies.body import Body
from bilevel.policies.policy import BilevelPolicy
from bilevel.policies.recovery import WHERE_GOAL_HOLDS, Recovery
from bilevel.tasks.controls import Control
from bilevel.tasks.scene import Scene


class WaitingPolicy(BilevelPolicy):
    """Does as another policy does, and holds still for a while where that is at a loss."""

    def __init__(self, policy: BilevelPolicy, body: Body, patience: int = Recovery().wait) -> None:
        """It waits for so many steps in a row, and for longer where the goal seems to hold."""
        super().__init__(policy.labels, policy.high, policy.low, policy.estimator)
        self._body, self._patience = body, patience
        self._last: Control | None = None
        self._waited = 0

    def reset(self, scene: Scene) -> None:
        super().reset(scene)
        self._last, self._waited = None, 0

    def act(self, scene: Scene) -> Control | None:
        try:
            control = super().act(scene)
        except Unseen:
            control = None
        if control is not None:
            self._last, self._waited = control, 0
            return control
        self._waited += 1
        patience = self._patience * (WHERE_GOAL_HOLDS if self.goal <= self.state else 1)
        return self.given(self._body.still(self._last)) if self._waited <= patience else None

"""Running a policy in a world for one episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bilevel.policies.policies import Control, Policy
from bilevel.tabletop.observation import Observation
from bilevel.tabletop.tabletop import SUCCESS, Tabletop

NO_ACTION = "no action"  # the outcome of an episode in which the policy did not know what to do
STOPPED = "stopped"  # that of one which was given up

Disturb = Callable[[Control], Control]


@dataclass(frozen=True)
class Moment:
    """One step as it is about to be taken: what is seen, what the policy wants, and what is done."""

    observation: Observation
    info: dict[str, Any]
    control: Control
    executed: Control


Watch = Callable[[Moment], None]


@dataclass(frozen=True)
class Episode:
    """How an episode went, and what was seen last."""

    outcome: str
    steps: int
    observation: Observation
    info: dict[str, Any]

    @property
    def success(self) -> bool:
        return self.outcome == SUCCESS


def rollout(
    environment: Tabletop,
    policy: Policy,
    seed: int,
    *,
    disturb: Disturb | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
) -> Episode:
    """Run one episode to its end, or until it shall `stop`.

    `watch` sees every step; `disturb` may change what is done at it.
    """
    observation, info = environment.reset(seed=seed)
    policy.reset(observation)
    steps = 0
    while True:
        control = policy.act(observation)
        if control is None:
            return Episode(NO_ACTION, steps, observation, info)
        executed = disturb(control) if disturb else control
        if watch:
            watch(Moment(observation, info, control, executed))
        observation, _, _, _, info = environment.step(executed)
        steps += 1
        if info["outcome"]:
            return Episode(info["outcome"], steps, observation, info)
        if stop and stop():
            return Episode(STOPPED, steps, observation, info)

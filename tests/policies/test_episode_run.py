"""One episode, measured: how it ended, why, what changed, and how long everything took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bilevel.policies.changes import Changes
from bilevel.policies.episode_run import EpisodeRun, Seconds, run_episode
from bilevel.policies.policy import BilevelPolicy, expert_policy
from bilevel.policies.rollout import NO_ACTION, Transition
from bilevel.symbolic.domain import Action, Facts
from bilevel.tasks.scene_env import SUCCESS, SceneEnv
from tiny_task import TINY


class OneIdea:
    """Knows what to do in the first state only, if at all."""

    def __init__(self, idea: Action | None, failure: tuple[str, str] | None = None) -> None:
        self.idea, self.begin = idea, frozenset[Any]()
        if failure:
            self.failure = failure

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        self.begin = state

    def declare(self, objects: Mapping[str, str]) -> None: ...

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self.idea if state == self.begin else None


def run(seed: int = 1, high: OneIdea | None = None, noise: float = 0.0, objects: int = 1, **how: Any) -> EpisodeRun:
    env = SceneEnv(TINY, objects)
    policy = expert_policy(env)
    if high:
        assert isinstance(policy, BilevelPolicy)
        policy.high = high
    return run_episode(env, policy, seed, noise, **how)


def test_the_expert_succeeds_and_every_step_belongs_to_an_action() -> None:
    found = run()
    assert (found.outcome, found.reason, found.detail, found.seed) == (SUCCESS, None, None, 1)
    assert set(found.durations) == {"pick", "put"}
    assert sum(map(sum, found.durations.values())) == found.steps
    assert (found.events, found.changes) == ({}, Changes(own=2))
    assert run(objects=3).events == {"arrival": 2}


def test_the_same_seed_gives_the_same_run_and_noise_another() -> None:
    assert run() == run()
    noisy = run(noise=0.7)
    assert noisy == run(noise=0.7)
    assert noisy.steps != run().steps


def test_a_policy_that_does_not_know_what_to_do_fails_with_that_outcome() -> None:
    assert run(high=OneIdea(None)) == EpisodeRun(1, NO_ACTION, "no rule", None, 0, {}, {}, Changes(), Seconds(0, 0))
    gave_up = run(high=OneIdea(Action("pick", ("parcel1",))))
    assert (gave_up.outcome, gave_up.durations) == (NO_ACTION, {"pick": [gave_up.steps]})
    assert gave_up.steps > 0


def test_a_policy_that_says_why_is_quoted() -> None:
    found = run(high=OneIdea(None, ("no plan", "no plan within 2 s")))
    assert (found.outcome, found.reason, found.detail) == (NO_ACTION, "no plan", "no plan within 2 s")


def test_somebody_else_may_see_every_step() -> None:
    seen: list[Transition] = []
    assert run(callback=seen.append).steps == len(seen)


def test_the_time_is_that_of_policy_and_environment() -> None:
    assert run().seconds.policy > 0 < run().seconds.physics
    assert run(high=OneIdea(None)).seconds.physics == 0

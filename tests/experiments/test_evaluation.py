"""Evaluation: the right episodes, the same results however they are run, and honest intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import pytest

from bilevel.experiments.evaluation import Job, Run, Seconds, Trial, Z, evaluate, run_episode, wilson_interval
from bilevel.policies.changes import Changes
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.rollout import NO_ACTION, Moment
from bilevel.seeds import evaluation_seed, training_seed
from bilevel.symbolic.domain import Action, Facts
from bilevel.tabletop.tabletop import SUCCESS, Tabletop
from bilevel.tabletop.tasks import TASKS, Task

PICK = Action("pick", ("block1",))
TINY = Trial("blocks", objects=1, episodes=3)


def expert(task: Task, environment: Tabletop) -> BilevelPolicy:
    return task.expert(environment.slots)


class OneIdea:
    """Knows what to do in the first state only, if at all."""

    def __init__(self, idea: Action | None) -> None:
        self.idea, self.begin = idea, frozenset[Any]()

    def reset(self, state: Facts, goal: Facts, objects: Mapping[str, str]) -> None:
        self.begin = state

    def declare(self, objects: Mapping[str, str]) -> None: ...

    def choose(self, state: Facts, goal: Facts) -> Action | None:
        return self.idea if state == self.begin else None


def clueless(task: Task, environment: Tabletop) -> BilevelPolicy:
    policy = task.expert(environment.slots)
    policy.high = OneIdea(None)
    return policy


def only_picks(task: Task, environment: Tabletop) -> BilevelPolicy:
    policy = task.expert(environment.slots)
    policy.high = OneIdea(PICK)
    return policy


@cache
def calm() -> tuple[Run, ...]:
    return tuple(evaluate(TINY, expert))


# Episodes


def test_the_expert_succeeds_and_every_step_belongs_to_an_action() -> None:
    assert [run.outcome for run in calm()] == [SUCCESS] * 3
    for run in calm():
        assert set(run.durations) == {"pick", "place"}
        assert sum(map(sum, run.durations.values())) == run.steps


def test_the_seeds_are_those_of_evaluation_and_no_demonstration_has_them() -> None:
    seeds = [run.seed for run in calm()]
    assert seeds == [evaluation_seed(TINY.seed, episode) for episode in range(3)]
    assert not set(seeds) & {training_seed(TINY.seed, episode, attempt) for episode in range(3) for attempt in range(9)}
    others = [run.seed for run in evaluate(replace(TINY, seed=1, episodes=1), clueless)]
    assert others == [evaluation_seed(1, 0)]


def test_every_policy_is_asked_for_itself_though_it_takes_the_place_of_another() -> None:
    """Python gives a new function the address of one that is gone."""
    made = []

    def maker(number: int) -> Callable[[Task, Tabletop], BilevelPolicy]:
        def make(task: Task, environment: Tabletop) -> BilevelPolicy:
            made.append(number)
            return clueless(task, environment)

        return make

    for number in range(4):
        assert len(list(evaluate(replace(TINY, episodes=1), maker(number)))) == 1
    assert made == [0, 1, 2, 3]


def test_a_pool_of_processes_gives_the_same() -> None:
    with get_context("spawn").Pool(2) as pool:
        assert tuple(evaluate(TINY, expert, pool.imap)) == calm()


def test_the_order_of_the_episodes_does_not_matter() -> None:
    def backwards(run: Callable[[Job], Run], jobs: list[Job]) -> list[Run]:
        return [run(job) for job in reversed(jobs)][::-1]

    jostled = replace(TINY, noise=0.7)
    assert list(evaluate(jostled, expert, backwards)) == list(evaluate(jostled, expert))


def test_noise_jostles_the_hand() -> None:
    jostled = list(evaluate(replace(TINY, noise=0.7), expert))
    assert [run.seed for run in jostled] == [run.seed for run in calm()]
    assert [run.steps for run in jostled] != [run.steps for run in calm()]


def test_a_policy_that_does_not_know_what_to_do_fails_with_that_outcome() -> None:
    first, second = evaluate(replace(TINY, episodes=2), clueless)
    assert first == Run(evaluation_seed(0, 0), NO_ACTION, "no rule", None, 0, {}, {}, Changes(), Seconds(0, 0))
    assert (second.outcome, second.steps) == (NO_ACTION, 0)


def test_a_policy_that_gives_up_half_way_is_measured_until_then() -> None:
    (run,) = evaluate(replace(TINY, episodes=1), only_picks)
    assert run.outcome == NO_ACTION
    assert run.durations == {"pick": [run.steps]}
    assert run.steps > 0


def test_policies_take_turns_without_being_confused() -> None:
    one = replace(TINY, episodes=1)
    outcomes = [next(evaluate(one, policy)).outcome for policy in (expert, clueless, expert)]
    assert outcomes == [SUCCESS, NO_ACTION, SUCCESS]


def test_the_arguments_of_the_world_are_used_and_its_events_counted() -> None:
    trial = Trial("blocks", objects=2, episodes=1, arguments={"teleport_rate": 0.04})
    (run,) = evaluate(trial, expert)
    assert run.events["teleport"] > 0
    assert calm()[0].events == {}


def test_somebody_else_may_watch_an_episode() -> None:
    moments: list[Moment] = []
    environment = TASKS["blocks"].make(1)
    run = run_episode(environment, expert(TASKS["blocks"], environment), calm()[0].seed, watch=moments.append)
    assert run == calm()[0]
    assert len(moments) == run.steps


def test_the_time_is_that_of_policy_and_world() -> None:
    assert all(run.seconds.policy > 0 and run.seconds.physics > 0 for run in calm())
    (idle,) = evaluate(replace(TINY, episodes=1), clueless)
    assert idle.seconds.physics == 0


# Intervals


@pytest.mark.parametrize(
    ("successes", "episodes", "lower", "upper"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_are_those_of_the_literature(successes: int, episodes: int, lower: float, upper: float) -> None:
    assert wilson_interval(successes, episodes) == pytest.approx((lower, upper), abs=5e-5)
    mirrored = wilson_interval(episodes - successes, episodes)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=5e-5)


@pytest.mark.parametrize(("successes", "episodes"), [(99, 100), (95, 100), (3, 7), (1, 2)])
def test_the_bounds_are_the_rates_just_compatible_with_what_was_seen(successes: int, episodes: int) -> None:
    for rate in wilson_interval(successes, episodes):
        assert (successes / episodes - rate) ** 2 == pytest.approx(Z**2 * rate * (1 - rate) / episodes)


@pytest.mark.parametrize("episodes", [1, 10, 100])
def test_intervals_reach_0_and_1_and_stay_between_them(episodes: int) -> None:
    for successes in range(episodes + 1):
        lower, upper = wilson_interval(successes, episodes)
        assert 0.0 <= lower < upper <= 1.0
    assert wilson_interval(0, episodes)[0] == pytest.approx(0, abs=1e-12)
    assert wilson_interval(episodes, episodes)[1] == pytest.approx(1, abs=1e-12)

"""DAgger: the learner goes where it goes, and its teacher says what it would have done there."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch
from tiny_data import architecture, dataset, samples, studied

from bilevel.lowlevel.architecture import Weights
from bilevel.lowlevel.dagger import BilevelLearner, DaggerConfig, practise
from bilevel.lowlevel.gnn_policy import GnnPolicy
from bilevel.lowlevel.samples import Samples
from bilevel.lowlevel.training import Training, TrainingConfig
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.rollout import Moment, rollout
from bilevel.rules.learning import learn_rules
from bilevel.rules.rule_policy import RulePolicy
from bilevel.seeds import practice_seed
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.observation import Array
from bilevel.tabletop.tasks import find_task

SHORT = DaggerConfig(rounds=1, episodes=4, patience=60)


@cache
def learner() -> BilevelLearner:
    """One that has been taught a little."""
    recipe, domain = dataset().manifest.recipe, dataset().task.domain
    config = TrainingConfig(epochs=40, batch=32, learning_rate=3e-3)
    training = Training(samples(), architecture(), [0], config, device=torch.device("cpu"))
    while not training.done:
        training.one_epoch()
    rules = learn_rules([trace for found in studied().abstractions for trace in found.traces], domain)
    return BilevelLearner(recipe.task, recipe.arguments, rules, architecture(), training.result()[0].weights, seed=0)


def motionless() -> BilevelLearner:
    """One whose network says nothing at all."""
    weights: Weights = {name: np.zeros_like(array) for name, array in learner().weights.items()}
    return replace(learner(), weights=weights)


@cache
def first_round() -> tuple[Samples, ...]:
    return tuple(practise(learner(), SHORT, 1))


def content(episodes: tuple[Samples, ...]) -> list[bytes]:
    return [getattr(episode, field.name).tobytes() for episode in episodes for field in fields(Samples)]


def test_the_samples_are_the_same_whoever_finds_them_and_however_often() -> None:
    assert content(tuple(practise(learner(), SHORT, 1))) == content(first_round())
    assert content(tuple(practise(learner(), SHORT, 1, workers=2))) == content(first_round())


def test_episodes_come_in_order_with_their_numbers() -> None:
    assert [set(episode.episodes.tolist()) for episode in first_round()] == [{0}, {1}, {2}, {3}]


def test_another_round_or_seed_means_other_episodes() -> None:
    one = replace(SHORT, episodes=1)
    (first,) = practise(learner(), one, 1)
    (second,) = practise(learner(), one, 2)
    (other,) = practise(replace(learner(), seed=4), one, 1)
    assert content((first,)) == content(first_round()[:1])
    assert len({str(content((episode,))) for episode in (first, second, other)}) == 3


def lived_through(number: int) -> tuple[list[Array], list[Array]]:
    """What teacher and learner say at each step of an episode of the first round."""
    task, ours = find_task(learner().task), learner()
    environment = task.make(**ours.arguments)
    low = GnnPolicy(ours.architecture, ours.weights, environment.slots)
    policy = BilevelPolicy(task.labels(environment.slots), RulePolicy(ours.rules, task.domain), low)
    expert = task.expert(environment.slots).low
    taught, done = [], []

    def watch(moment: Moment) -> None:
        assert policy.action is not None
        taught.append(expert.control(moment.observation, policy.state, policy.goal, policy.action))
        done.append(moment.control)

    seed = practice_seed(ours.seed, 1, number)
    disturb = Jostle(Bursts(amplitude=SHORT.noise), seed) if number % 3 else None
    steps = len(first_round()[number])
    rollout(environment, policy, seed, disturb=disturb, watch=watch, stop=lambda: len(done) == steps)
    return taught, done


@pytest.mark.parametrize("number", [0, 1])
def test_the_controls_to_learn_are_the_teachers_where_the_learner_went(number: int) -> None:
    taught, done = lived_through(number)
    found = first_round()[number]
    assert np.array_equal(found.controls, np.stack(taught))
    assert not np.allclose(found.controls, np.stack(done), atol=0.1)


@pytest.mark.parametrize("patience", [1, 10])
def test_one_that_stands_still_is_given_up(patience: int) -> None:
    """After the first step, and as many more without any change."""
    config = replace(SHORT, episodes=2, patience=patience, noise=0.0)
    assert [len(episode) for episode in practise(motionless(), config, 1)] == [patience + 1] * 2


def test_two_of_three_episodes_are_jostled() -> None:
    calm = tuple(practise(learner(), replace(SHORT, noise=0.0), 1))
    alike = [content((ours,)) == content((theirs,)) for ours, theirs in zip(calm, first_round(), strict=True)]
    assert alike == [number % 3 == 0 for number in range(len(calm))]


def test_a_long_episode_is_given_up() -> None:
    config = replace(SHORT, episodes=1, longest=7, noise=0.0)
    assert [len(episode) for episode in practise(learner(), config, 1)] == [7]


def test_one_that_never_knows_what_to_do_finds_nothing_to_learn() -> None:
    clueless = replace(learner(), rules=())
    assert [len(episode) for episode in practise(clueless, replace(SHORT, episodes=2), 1)] == [0, 0]


def test_no_episodes_are_no_samples() -> None:
    assert list(practise(learner(), replace(SHORT, episodes=0), 1)) == []

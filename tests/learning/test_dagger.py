"""DAgger: the learner goes where it goes, and the expert says what it would have done there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import msgspec
import numpy as np
import pytest
import torch

from bilevel.learning.dagger import BilevelLearner, DaggerConfig, Practice, dagger_rollouts
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.lowlevel.encoding import Samples
from bilevel.lowlevel.network import GraphNetwork, weights_of
from bilevel.lowlevel.numpy_network import NumpyNetwork
from bilevel.lowlevel.training import Training, TrainingConfig
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.rules.learning import extend_rules
from bilevel.seeds import dagger_seed
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Control
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import samples, shown, studied
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, control

SHORT = DaggerConfig(rounds=1, episodes=4, patience=20)
PRACTICE = partial(SceneEnv, TINY, 2)


def changed(**settings: object) -> DaggerConfig:
    return msgspec.structs.replace(SHORT, **settings)


def learner_of(task: Task, network: GraphNetwork) -> BilevelLearner:
    found = studied(task)
    make_low = partial(NumpyNetwork, found.encoding, shown(task).controls, weights_of(network), 2)
    return BilevelLearner(task.domain, found.rules, found.encoding, make_low, seed=0)


@cache
def learner() -> BilevelLearner:
    """One that has been taught a little."""
    make = partial(GraphNetwork, studied().encoding, shown().controls, 16)
    config = TrainingConfig(epochs=10, batch=16, learning_rate=3e-3)
    training = Training(samples(), make, 0, config, device=torch.device("cpu"))
    while not training.done:
        training.learn()
    assert isinstance(training.network, GraphNetwork)
    return learner_of(TINY, training.network)


def motionless(task: Task = TINY) -> BilevelLearner:
    """One whose network says nothing at all."""
    network = GraphNetwork(studied(task).encoding, shown(task).controls, 4)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    return learner_of(task, network)


def rollouts(
    who: BilevelLearner, config: DaggerConfig = SHORT, round_: int = 1, practice: Practice = PRACTICE
) -> tuple[Samples, ...]:
    return tuple(episode.samples for episode in dagger_rollouts(who, practice, config, round_))


@cache
def first_round() -> tuple[Samples, ...]:
    return rollouts(learner())


def content(episodes: Sequence[Samples]) -> list[bytes]:
    return [array.tobytes() for episode in episodes for array in episode.arrays()]


def test_an_episode_does_not_depend_on_those_before_it() -> None:
    later = dagger_rollouts(learner(), PRACTICE, SHORT, 1, begin=2)
    assert content([episode.samples for episode in later]) == content(first_round()[2:])


def test_episodes_come_in_order_with_their_numbers() -> None:
    assert [set(episode.episodes.tolist()) for episode in first_round()] == [{0}, {1}, {2}, {3}]


def test_another_round_or_seed_means_other_episodes() -> None:
    one = changed(episodes=1)
    found = [rollouts(learner(), one), rollouts(learner(), one, 2), rollouts(replace(learner(), seed=4), one)]
    assert content(found[0]) == content(first_round()[:1])
    assert len({str(content(episodes)) for episodes in found}) == 3


def lived_through(number: int) -> tuple[list[Control], list[Control]]:
    """What expert and learner say at each step of an episode of the first round."""
    env = SceneEnv(TINY, 2)
    policy = learner().begin(env).policy
    taught, done = [], []

    def note(transition: Transition) -> None:
        assert policy.action is not None
        taught.append(control(transition.scene, policy.action))
        done.append(transition.control)

    seed = dagger_seed(0, 1, number)
    perturb = Perturb(Perturbation(amplitude=SHORT.noise), env.controls, TINY.switches, seed) if number % 3 else None
    steps = len(first_round()[number])
    rollout(env, policy, seed, perturb=perturb, callback=note, stop=lambda: len(done) == steps)
    return taught, done


@pytest.mark.parametrize("number", [0, 1])
def test_the_controls_to_learn_are_the_experts_where_the_learner_went(number: int) -> None:
    taught, done = (shown().controls.encode(np.stack(controls)) for controls in lived_through(number))
    assert np.array_equal(first_round()[number].targets, taught)
    assert not np.allclose(taught, done, atol=0.1)


@pytest.mark.parametrize("patience", [1, 10])
@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=["box", "discrete"])
def test_one_that_stands_still_is_given_up(task: Task, patience: int) -> None:
    """After the first step, and as many more without any change."""
    config = changed(episodes=2, patience=patience, noise=0.0)
    found = rollouts(motionless(task), config, practice=partial(SceneEnv, task, 1))
    assert [len(episode) for episode in found] == [patience + 1] * 2


def test_a_long_episode_is_given_up() -> None:
    found = rollouts(learner(), changed(episodes=1, longest=7, noise=0.0))
    assert [len(episode) for episode in found] == [7]


def test_two_of_three_episodes_are_perturbed() -> None:
    calm = rollouts(learner(), changed(noise=0.0, patience=60))
    noisy = rollouts(learner(), changed(noise=3.0, patience=60))
    alike = [content([ours]) == content([theirs]) for ours, theirs in zip(calm, noisy, strict=True)]
    assert alike == [number % 3 == 0 for number in range(len(calm))]


def test_one_that_never_knows_what_to_do_finds_nothing_to_learn() -> None:
    clueless = replace(learner(), rules=())
    lost = replace(TINY, expert=Expert(choose=lambda state, goal: None, control=control))
    practice = partial(SceneEnv, lost, 2)
    assert [len(episode) for episode in rollouts(clueless, changed(episodes=2), practice=practice)] == [0, 0]
    assert rollouts(learner(), changed(episodes=0)) == ()


def test_the_arguments_of_the_environment_are_used() -> None:
    with pytest.raises(BadInput, match="takes no argument 'weather'"):
        rollouts(learner(), practice=partial(SceneEnv, TINY, 2, weather="bad"))


def test_an_expert_that_only_shows_cannot_be_asked() -> None:
    with pytest.raises(
        BadInput, match="the expert of the task 'tiny-acting' cannot be asked for controls, so no DAgger"
    ):
        rollouts(learner(), practice=partial(SceneEnv, TINY_ACTING, 2))


def test_an_expert_that_fails_is_named() -> None:
    broken = replace(TINY, expert=Expert(control=lambda scene, action: 1 / 0))
    with pytest.raises(BadInput, match=r"the expert's control\(scene, pick\(parcel1\)\) raised ZeroDivisionError"):
        rollouts(learner(), practice=partial(SceneEnv, broken, 2))


# Both levels


def test_one_of_three_episodes_begins_with_random_actions() -> None:
    usual = rollouts(learner(), changed(episodes=6, noise=0.0, random_actions=0))
    scrambled = rollouts(learner(), changed(episodes=6, noise=0.0, random_actions=50))
    alike = [content([ours]) == content([theirs]) for ours, theirs in zip(usual, scrambled, strict=True)]
    assert alike == [True, True, False] * 2


def test_what_the_rules_lack_is_found_with_each_episode() -> None:
    config = changed(episodes=1, noise=0.0, patience=60)
    (found,) = dagger_rollouts(replace(learner(), rules=()), PRACTICE, config, 1)
    assert found.gaps.problems
    assert extend_rules((), found.gaps.traces, TINY.domain) == learner().rules
    (none,) = dagger_rollouts(learner(), PRACTICE, config, 1)
    assert none.gaps == RuleGaps()

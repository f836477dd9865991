"""End-to-end policies are learned from demonstrations of any task, with practice and without, as bilevel ones are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from other_process import as_received
from tiny_demonstrations import EPISODES, PRACTISING, QUICK, TASK_OF, dataset

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.graph_encoding import ENCODINGS
from bilevel.baselines.graph_samples import GraphSamples
from bilevel.baselines.learning import (
    EndToEndLearner,
    LearnedEndToEnd,
    end_to_end_architecture,
    learn_end_to_end,
    study_graphs,
)
from bilevel.learning.bilevel import LearningConfig, Progress
from bilevel.lowlevel.dagger import DaggerConfig, practise
from bilevel.lowlevel.training import TrainingConfig, split
from bilevel.policies.policies import Control
from bilevel.policies.rollout import Moment, rollout
from bilevel.seeds import practice_seed
from bilevel.tabletop.noise import Bursts, Jostle
from bilevel.tabletop.tasks import find_task

METHODS = list(ENCODINGS)


def same(first: LearnedEndToEnd, second: LearnedEndToEnd) -> bool:
    """All but how the numbers lie in memory."""
    ours, theirs = first.network, second.network
    names = {**ours.weights, **theirs.weights}
    return (
        all(ours.weights[name].tobytes() == theirs.weights[name].tobytes() for name in names)
        and replace(ours, weights={}) == replace(theirs, weights={})
        and replace(first, network=theirs) == second
    )


def samples(task: str, method: str = "pddl-nn") -> GraphSamples:
    return study_graphs(dataset(task), end_to_end_architecture(dataset(task), method, QUICK), lambda progress: None)


# What is learned from


@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_every_step_is_a_sample(task: str) -> None:
    found = samples(task)
    demonstrations = list(dataset(task))
    assert len(found) == sum(demonstration.steps for demonstration in demonstrations)
    assert np.array_equal(found.controls, np.concatenate([d.controls for d in demonstrations]))
    assert np.unique(found.episodes).tolist() == list(range(EPISODES))
    visible = np.concatenate([d.visible[:-1] for d in demonstrations]).astype(bool)
    assert np.array_equal(found.scenes.visible[found.scene], visible)
    assert len(found.scenes) < len(found) / 5


def test_samples_set_aside_keep_their_scenes() -> None:
    found = samples("gacha")
    _, held_out = split(found, 2)
    chosen = found.episodes == 1
    assert np.array_equal(held_out.moving, found.moving[chosen])
    assert np.array_equal(held_out.scenes.facts[held_out.scene], found.scenes.facts[found.scene[chosen]])


def test_samples_of_further_episodes_come_after_the_others() -> None:
    found = samples("gacha")
    first, last = split(found, 2)
    fewer = last.scenes.facts.shape[1] - 1  # with room for fewer facts, as a short episode has
    assert (last.scenes.counts[last.scene] <= fewer).any()
    few = last.where(last.scenes.counts[last.scene] <= fewer)
    room = replace(few.scenes, facts=few.scenes.facts[:, :fewer], arguments=few.scenes.arguments[:, :fewer])
    short = replace(few, episodes=few.episodes * 0, scenes=room)
    joined = first.followed_by([short, replace(short, episodes=short.episodes + 1)])
    assert np.unique(joined.episodes).tolist() == [0, 2, 3, 4]
    assert len(joined) == len(first) + 2 * len(short)
    back = joined.where(joined.episodes == 4)
    for field in ("facts", "arguments", "objects", "visible", "globals", "counts"):
        ours, theirs = getattr(back.scenes, field)[back.scene], getattr(few.scenes, field)[few.scene]
        assert np.array_equal(ours, theirs)


# Learning


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_a_policy_is_learned(task: str, method: str) -> None:
    longer = replace(QUICK, training=replace(QUICK.training, epochs=8))
    (learned,) = learn_end_to_end(dataset(task), method, [5], longer)
    assert (learned.method, learned.network.seed) == (method, 5)
    assert learned.architecture == end_to_end_architecture(dataset(task), method, QUICK)
    assert learned.samples == sum(demonstration.steps for demonstration in dataset(task))
    (curve,) = learned.curves
    assert [epoch.number for epoch in curve.epochs] == list(range(1, 9))
    assert curve.epochs[-1].training_loss < curve.epochs[0].training_loss
    environment = dataset(task).task.make(3)  # more objects than it has seen
    policy = EndToEndPolicy(learned.architecture, learned.network.weights, dataset(task).task.labels(environment.slots))
    steps: list[Control] = []
    rollout(environment, policy, 1, watch=lambda moment: steps.append(moment.control), stop=lambda: len(steps) == 30)
    assert len(steps) == 30
    assert np.isfinite(steps).all()


def test_seeds_have_networks_of_their_own() -> None:
    first, second = learn_end_to_end(dataset(), "pddl-nn", [1, 2], QUICK)
    (alone,) = learn_end_to_end(dataset(), "pddl-nn", [2], QUICK)
    assert second.curves[0].epochs[0].training_loss == pytest.approx(alone.curves[0].epochs[0].training_loss, abs=1e-6)
    assert first.curves[0] != second.curves[0]


def test_a_network_learns_to_do_what_it_was_shown() -> None:
    config = LearningConfig(hidden=32, training=TrainingConfig(epochs=60, batch=32, learning_rate=3e-3))
    (learned,) = learn_end_to_end(dataset(), "pddl-nn", [0], config)
    losses = [epoch.training_loss[0] for epoch in learned.curves[0].epochs]
    assert losses[-1] < losses[0] / 20


class Stopped(Exception):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("stage", ["training", "practising, round 1", "training, round 1"])
def test_a_learner_that_was_stopped_goes_on(tmp_path: Path, stage: str) -> None:
    (never_stopped,) = learn_end_to_end(dataset(), "pddl-nn", [0], PRACTISING)

    def pull_the_plug(progress: Progress) -> None:
        if (progress.stage, progress.done) == (stage, 1):
            raise Stopped

    def go_on(told: list[Progress]) -> LearnedEndToEnd:
        (found,) = learn_end_to_end(dataset(), "pddl-nn", [0], PRACTISING, checkpoints=tmp_path, tell=told.append)
        return found

    with pytest.raises(Stopped):
        learn_end_to_end(dataset(), "pddl-nn", [0], PRACTISING, checkpoints=tmp_path, tell=pull_the_plug)
    assert same(go_on([]), never_stopped)
    told: list[Progress] = []
    assert same(go_on(told), never_stopped)
    assert not any(progress.epoch for progress in told)


# Practice


@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_practice_adds_samples(task: str) -> None:
    (learned,) = learn_end_to_end(dataset(task), "pddl-nn", [0], PRACTISING)
    shown = sum(demonstration.steps for demonstration in dataset(task))
    assert learned.samples >= shown + 2 * 16  # each episode goes on for that long at least
    assert [(curve.round, len(curve.epochs)) for curve in learned.curves] == [(0, 2), (1, 2)]


def learner() -> EndToEndLearner:
    (learned,) = learn_end_to_end(dataset(), "pddl-nn", [0], QUICK)
    recipe = dataset().manifest.recipe
    return EndToEndLearner(recipe.task, recipe.arguments, learned.architecture, learned.network.weights, seed=0)


def taught(ours: EndToEndLearner, config: DaggerConfig, number: int, steps: int) -> list[Control | None]:
    """What an expert says at each step of an episode of the first round."""
    environment = find_task(ours.task).make(**ours.arguments)
    policy, _ = ours.begin(environment.slots)
    expert = find_task(ours.task).expert(environment.slots)
    said: list[Control | None] = []

    def watch(moment: Moment) -> None:
        said.append(expert.act(moment.observation))

    seed = practice_seed(ours.seed, 1, number)
    disturb = Jostle(Bursts(amplitude=config.noise), seed) if number % 3 else None
    rollout(environment, policy, seed, disturb=disturb, watch=watch, stop=lambda: len(said) == steps)
    return said


def test_the_controls_to_learn_are_those_of_an_expert_that_decides_by_itself() -> None:
    ours, config = learner(), DaggerConfig(rounds=1, episodes=2, patience=30)
    elsewhere = as_received(ours)
    for number, found in enumerate(practise(elsewhere, config, 1)):
        said = taught(ours, config, number, len(found))
        assert [control.tobytes() for control in found.controls] == [c.tobytes() for c in said if c is not None]
        assert len(found) > config.patience


def test_steps_for_which_the_expert_knows_nothing_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, config = learner(), DaggerConfig(rounds=1, episodes=1, patience=10, noise=0.0)
    monkeypatch.setattr("bilevel.tabletop.expert.Expert.choose", lambda *_: None)
    (found,) = practise(ours, config, 1)
    assert (len(found), len(found.scenes)) == (0, 0)
    joined = samples("blocks").followed_by([found])
    assert len(joined) == len(samples("blocks"))

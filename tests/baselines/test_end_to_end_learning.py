"""End-to-end policies are learned from demonstrations of any task, with DAgger and without, as bilevel ones are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from other_process import as_received

from bilevel.baselines.end_to_end import LearnedEndToEnd, read_any
from bilevel.baselines.graph_encoding import ENCODINGS, GraphSamples
from bilevel.baselines.learning import EndToEndLearner, learn_end_to_end, study_graphs
from bilevel.learning.dagger import DaggerConfig, dagger_rollouts
from bilevel.learning.networks import LearningConfig, LearningOptions, Progress
from bilevel.learning.rule_gaps import RuleGaps
from bilevel.lowlevel.training import Epoch, TrainingConfig, split
from bilevel.policies.policy import expert_policy
from bilevel.policies.rollout import Perturb, Perturbation, Transition, rollout
from bilevel.seeds import dagger_seed
from bilevel.tasks.controls import Control
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import EPISODES, QUICK, WITH_DAGGER, shown
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, control

METHODS = list(ENCODINGS)
PRACTICE = partial(SceneEnv, TINY, 2)


def samples(task: Task = TINY, objects: int = 2, method: str = "pddl-nn") -> GraphSamples:
    demonstrations = shown(task, objects)
    return study_graphs(demonstrations, ENCODINGS[method](demonstrations.domain, demonstrations.spec), task)


# What is learned from


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=lambda task: task.name)
def test_every_step_is_a_sample(task: Task) -> None:
    found, demonstrations = samples(task), shown(task)
    assert len(found) == sum(demonstration.steps for demonstration in demonstrations)
    controls = np.concatenate([demonstration.controls for demonstration in demonstrations])
    assert np.array_equal(found.targets, demonstrations.controls.encode(controls))
    assert np.unique(found.episodes).tolist() == list(range(EPISODES))
    visible = np.concatenate([demonstration.visible[:-1].sum(axis=1) for demonstration in demonstrations])
    assert np.array_equal(found.counts[found.structure, 0], visible)
    assert visible.min() < visible.max()  # some objects arrive later
    assert len(found.counts) < len(found) / 5


def test_samples_of_other_sizes_come_after_the_others() -> None:
    large, small = samples(objects=3), samples(objects=1)
    assert small.objects.shape[1] < large.objects.shape[1]
    assert small.facts.shape[1] < large.facts.shape[1]
    joined = large.followed_by([small])
    assert np.unique(joined.episodes).tolist() == list(range(2 * EPISODES))
    back = joined.where(joined.episodes >= EPISODES)
    for name in ("globals", "objects", "facts", "arguments", "counts"):
        ours, theirs = getattr(back, name)[back.structure], getattr(small, name)[small.structure]
        assert np.array_equal(ours[:, : theirs.shape[1]], theirs)
        assert not ours[:, theirs.shape[1] :].any()
    assert np.array_equal(back.features[:, : small.features.shape[1]], small.features)
    assert np.array_equal(back.targets, small.targets)
    _, held_out = split(joined, 6)
    assert np.array_equal(held_out.targets, small.targets[small.episodes == EPISODES - 1])


# Learning


def learned(output: Path, method: str = "pddl-nn", config: LearningConfig = QUICK, **others: object) -> LearnedEndToEnd:
    return learn_end_to_end(shown(), output, method, LearningOptions(task=TINY, config=config, **others))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=lambda task: task.name)
def test_a_policy_is_learned_and_runs_with_more_objects(task: Task, method: str, tmp_path: Path) -> None:
    config = LearningConfig(end_to_end_hidden=16, training=TrainingConfig(epochs=20, batch=32, learning_rate=3e-3))
    losses: list[Epoch] = []

    def note(progress: Progress) -> None:
        losses.extend([progress.epoch] if progress.epoch else [])

    learn_end_to_end(shown(task), tmp_path, method, LearningOptions(task=task, config=config, seed=5, callback=note))
    assert losses[-1].training_loss < losses[0].training_loss / 2
    env = SceneEnv(task, 4)
    controls: list[Control] = []

    def watch(transition: Transition) -> None:
        controls.append(transition.control)

    policy = read_any(tmp_path).bind(env.labels)
    rollout(env, policy, 1, callback=watch, stop=lambda: len(controls) == 30)
    assert len(controls) == 30
    assert all(env.env.action_space.contains(control) for control in controls)


def test_seeds_decide_everything(tmp_path: Path) -> None:
    first, again, other = (learned(tmp_path / str(n), seed=seed) for n, seed in enumerate((1, 1, 2)))
    assert first.digest == again.digest != other.digest


class Stopped(Exception):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("stage", ["training", "DAgger, round 1", "training, round 1"])
def test_a_learner_that_was_stopped_goes_on(tmp_path: Path, stage: str) -> None:
    never_stopped = learned(tmp_path / "whole", config=WITH_DAGGER)

    def pull_the_plug(progress: Progress) -> None:
        if (progress.stage, progress.done) == (stage, 1):
            raise Stopped

    kept = tmp_path / "kept"
    with pytest.raises(Stopped):
        learned(tmp_path / "policy", config=WITH_DAGGER, checkpoints=kept, callback=pull_the_plug)
    seen: list[Progress] = []
    for _ in range(2):
        seen.clear()
        found = learned(tmp_path / "policy", config=WITH_DAGGER, checkpoints=kept, callback=seen.append)
        assert found.digest == never_stopped.digest
    assert not any(progress.epoch for progress in seen)


# DAgger


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_dagger_adds_samples(task: Task, tmp_path: Path) -> None:
    found = learn_end_to_end(shown(task), tmp_path, "pddl-nn", LearningOptions(task=task, config=WITH_DAGGER))
    steps = sum(demonstration.steps for demonstration in shown(task))
    assert found.card.summary["samples"] >= steps + 2 * 16  # each episode goes on for that long at least


def test_an_expert_that_cannot_show_is_not_asked(tmp_path: Path) -> None:
    assert isinstance(TINY.expert, Expert)
    task = replace(TINY, expert=Expert(control=TINY.expert.control))
    unasked = learn_end_to_end(shown(), tmp_path / "unasked", "pddl-nn", LearningOptions(task=task, config=WITH_DAGGER))
    assert unasked.digest == learned(tmp_path / "cloned").digest


def learner(folder: Path) -> EndToEndLearner:
    found = learned(folder)
    return EndToEndLearner(found.encoding, found.card.controls, found.weights, found.card.network.rounds, seed=0)


def taught(ours: EndToEndLearner, config: DaggerConfig, number: int, steps: int) -> list[Control | None]:
    """What an expert says at each step of an episode of the first round."""
    env = SceneEnv(TINY, 2)
    policy = ours.begin(env).policy
    expert = expert_policy(env)
    said: list[Control | None] = []

    def watch(transition: Transition) -> None:
        said.append(expert.act(transition.scene))

    seed = dagger_seed(ours.seed, 1, number)
    noise = Perturbation(amplitude=config.noise)
    perturb = Perturb(noise, env.controls, TINY.switches, seed) if number % 3 else None
    rollout(env, policy, seed, perturb=perturb, callback=watch, stop=lambda: len(said) == steps)
    return said


def test_the_controls_to_learn_are_those_of_an_expert_that_decides_by_itself(tmp_path: Path) -> None:
    ours, config = learner(tmp_path), DaggerConfig(rounds=1, episodes=2, patience=30)
    for number, episode in enumerate(dagger_rollouts(as_received(ours), PRACTICE, config, 1)):
        found = episode.samples
        assert episode.gaps == RuleGaps()
        said = taught(ours, config, number, len(found))
        assert np.array_equal(found.targets, ours.controls.encode(np.array(said)))
        assert len(found) > config.patience


def test_steps_for_which_the_expert_knows_nothing_are_left_out(tmp_path: Path) -> None:
    assert isinstance(TINY.expert, Expert)
    task = replace(TINY, expert=replace(TINY.expert, choose=lambda state, goal: None))
    config = DaggerConfig(rounds=1, episodes=1, patience=10, noise=0.0)
    (episode,) = dagger_rollouts(learner(tmp_path), partial(SceneEnv, task, 2), config, 1)
    found = episode.samples
    assert (len(found), len(found.counts)) == (0, 0)
    joined = GraphSamples.concatenate([samples(), found])
    assert len(joined) == len(samples())


def test_some_episodes_begin_with_random_actions_that_the_expert_carries_out(tmp_path: Path) -> None:
    env, ours = SceneEnv(TINY, 2), learner(tmp_path)
    apprentice, alone = ours.begin(env), ours.begin(env)
    led: list[bool] = []
    controls: list[Control] = []

    def watch(transition: Transition) -> None:
        action = apprentice.policy.action
        led.append(action is not None)
        controls.append(transition.control)
        expected = alone.policy.act(transition.scene) if action is None else control(transition.scene, action)
        assert expected is not None
        assert np.array_equal(transition.control, expected)

    for actions in (3, 0):  # the first episode begins so, and the next one does not
        led.clear()
        apprentice.scramble(actions, np.random.default_rng(0))
        alone.policy.reset(env.reset(1))
        rollout(env, apprentice.policy, 1, callback=watch, stop=lambda: len(led) == 120)
        assert any(led) is bool(actions)
        assert not led[-1]
        assert led == sorted(led, reverse=True)

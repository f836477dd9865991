"""Both levels are learned from demonstrations of any task by the same code, with practice and without."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_data import architecture, dataset, samples, studied

from bilevel import learning
from bilevel.demonstrations.dataset import Dataset
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.learning.bilevel import RECIPES, Learned, LearningConfig, Progress, Tell, learn_policies
from bilevel.lowlevel import dagger
from bilevel.lowlevel.architecture import Architecture
from bilevel.lowlevel.dagger import DaggerConfig
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.rollout import Episode, rollout
from bilevel.rules.learning import learn_rules
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import TASKS

TASK_OF = {task.domain_name: task.name for task in TASKS.values() if not task.noisy}
QUICK = LearningConfig(hidden=8, training=TrainingConfig(epochs=1))
PRACTISING = replace(QUICK, dagger=DaggerConfig(rounds=1, episodes=2, epochs=2, patience=15))


def same(first: Learned, second: Learned) -> bool:
    """All but how the numbers lie in memory."""
    ours, theirs = first.network, second.network
    return (
        all(np.array_equal(ours.weights[name], theirs.weights[name]) for name in {**ours.weights, **theirs.weights})
        and replace(ours, weights={}) == replace(theirs, weights={})
        and replace(first, network=theirs) == second
    )


@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_both_levels_are_learned(task: str) -> None:
    (learned,) = learn_policies(dataset(task), [5], QUICK)
    traces = [trace for found in studied(task).abstractions for trace in found.traces]
    assert learned.rules == learn_rules(traces, dataset(task).task.domain) != ()
    assert (learned.traces, learned.samples) == (len(traces), len(samples(task)))
    assert learned.architecture == Architecture(architecture(task).encoding, hidden=8)
    for name, (inputs, outputs) in learned.architecture.layers.items():
        assert learned.network.weights[f"{name}.weight"].shape == (inputs, outputs)
        assert learned.network.weights[f"{name}.bias"].shape == (outputs,)
    assert len(learned.network.weights) == 2 * len(learned.architecture.layers)
    assert (learned.network.seed, learned.network.best_epoch) == (5, 1)
    (curve,) = learned.curves
    assert (curve.round, [epoch.number for epoch in curve.epochs]) == (0, [1])


@pytest.mark.parametrize("task", TASK_OF.values(), ids=TASK_OF.keys())
def test_practice_adds_samples(task: str) -> None:
    (learned,) = learn_policies(dataset(task), [0], PRACTISING)
    (before,) = learn_policies(dataset(task), [0], QUICK)
    assert learned.samples >= before.samples + 2 * 16  # each episode goes on for that long at least
    assert learned.rules == before.rules
    assert [(curve.round, len(curve.epochs)) for curve in learned.curves] == [(0, 1), (1, 2)]
    assert learned.curves[0] == before.curves[0]
    assert not np.array_equal(learned.network.weights["global.1.weight"], before.network.weights["global.1.weight"])


def test_seeds_share_rules_and_each_has_its_own_network() -> None:
    first, second = learn_policies(dataset(), [1, 2], PRACTISING)
    assert first.rules == second.rules
    assert (first.network.seed, second.network.seed) == (1, 2)
    assert all(len(epoch.training_loss) == 1 for curve in first.curves for epoch in curve.epochs)
    (alone,) = learn_policies(dataset(), [2], QUICK)
    assert second.curves[0].epochs[0].training_loss == pytest.approx(alone.curves[0].epochs[0].training_loss, abs=1e-6)
    assert first.curves[0] != second.curves[0]


def test_progress_is_told_stage_by_stage() -> None:
    told: list[Progress] = []
    learn_policies(dataset(), [0], PRACTISING, tell=told.append)
    stages = [(progress.stage, progress.done, progress.total) for progress in told]
    assert stages == [
        *(("labelling", number, 4) for number in (1, 2, 3, 4)),
        ("training", 1, 1),
        *(("practising, round 1", number, 2) for number in (1, 2)),
        *(("training, round 1", number, 2) for number in (1, 2)),
    ]


# Stopping and going on


class Stopped(Exception):
    """Somebody pulled the plug."""


def stop_after(stage: str, done: int) -> Tell:
    def pull_the_plug(progress: Progress) -> None:
        if (progress.stage, progress.done) == (stage, done):
            raise Stopped

    return pull_the_plug


@pytest.mark.parametrize("stage", ["training", "training, round 1"])
def test_a_learner_that_was_stopped_goes_on(tmp_path: Path, stage: str) -> None:
    config = replace(PRACTISING, training=TrainingConfig(epochs=3))
    (never_stopped,) = learn_policies(dataset(), [0], config)

    with pytest.raises(Stopped):
        learn_policies(dataset(), [0], config, checkpoints=tmp_path, tell=stop_after(stage, 2))
    told: list[Progress] = []
    (resumed,) = learn_policies(dataset(), [0], config, checkpoints=tmp_path, tell=told.append)
    assert same(resumed, never_stopped)
    assert (stage, 1) not in [(progress.stage, progress.done) for progress in told]
    (again,) = learn_policies(dataset(), [0], config, checkpoints=tmp_path, tell=told.append)
    assert same(again, never_stopped)


@pytest.fixture
def practised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of all worlds that somebody practises in."""
    seeds: list[int] = []

    def noted(environment: object, policy: object, seed: int, **options: Any) -> Episode:
        seeds.append(seed)
        return rollout(environment, policy, seed, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(dagger, "rollout", noted)
    return seeds


@pytest.mark.parametrize("workers", [1, 2])
def test_practice_that_was_stopped_goes_on_with_the_next_episode(
    tmp_path: Path, practised: list[int], workers: int
) -> None:
    config = replace(PRACTISING, dagger=replace(PRACTISING.dagger, episodes=4))
    (never_stopped,) = learn_policies(dataset(), [0], config)
    seeds = practised.copy()
    practised.clear()
    with pytest.raises(Stopped):
        learn_policies(dataset(), [0], config, checkpoints=tmp_path, tell=stop_after("practising, round 1", 3))
    assert practised == seeds[:3]
    practised.clear()
    (resumed,) = learn_policies(dataset(), [0], config, checkpoints=tmp_path, workers=workers)
    assert practised == seeds[3:]
    assert same(resumed, never_stopped)
    assert same(learn_policies(dataset(), [0], config, checkpoints=tmp_path)[0], never_stopped)
    assert practised == seeds[3:]


def test_a_broken_episode_and_all_after_it_are_practised_again(tmp_path: Path, practised: list[int]) -> None:
    (never_stopped,) = learn_policies(dataset(), [0], PRACTISING, checkpoints=tmp_path)
    seeds = practised.copy()
    (second,) = tmp_path.glob("*-001.safetensors")
    second.write_bytes(second.read_bytes()[:-1])
    practised.clear()
    (again,) = learn_policies(dataset(), [0], PRACTISING, checkpoints=tmp_path)
    assert practised == seeds[1:]
    assert same(again, never_stopped)


def test_a_learner_that_was_stopped_in_the_middle_of_an_epoch_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(QUICK, training=TrainingConfig(epochs=2, batch=16))
    (never_stopped,) = learn_policies(dataset(), [0], config)
    monkeypatch.setattr(learning, "SAVED_EVERY", 0.0)
    steps: list[int] = []

    def pull_the_plug(progress: Progress) -> None:
        if progress.stage == "training":
            steps.append(progress.done)
            if len(steps) % 5 == 0:
                raise Stopped

    for _ in range(1000):
        with suppress(Stopped):
            (resumed,) = learn_policies(dataset(), [0], config, checkpoints=tmp_path, tell=pull_the_plug)
            break
    assert same(resumed, never_stopped)
    assert len(steps) == 2 * (never_stopped.samples * 3 // 4 // 16)
    assert steps == sorted(steps)


def test_a_round_without_samples_is_not_taken_for_the_training_before_it(tmp_path: Path) -> None:
    config = replace(QUICK, dagger=DaggerConfig(rounds=1, episodes=0, epochs=1))
    (learned,) = learn_policies(dataset(), [0], config, checkpoints=tmp_path)
    assert same(learned, learn_policies(dataset(), [0], config)[0])
    assert learned.curves[0].epochs != learned.curves[1].epochs


# What cannot be learned from


class Fruitless(Dataset):
    """The same demonstrations, each broken off before anything has happened."""

    def _read(self, index: int) -> Demonstration:
        whole = super()._read(index)
        return replace(
            whole,
            agent=whole.agent[:6],
            objects=whole.objects[:6],
            visible=whole.visible[:6],
            controls=whole.controls[:5],
            executed=whole.executed[:5],
            actions=whole.actions[:5],
        )


def test_demonstrations_that_show_no_rule_are_bad_input() -> None:
    with pytest.raises(BadInput, match="show no rule") as raised:
        learn_policies(Fruitless(dataset().folder, dataset().manifest), [0], QUICK)
    assert str(dataset().folder) in str(raised.value)


def test_a_single_demonstration_is_bad_input() -> None:
    manifest = dataset().manifest
    single = Dataset(dataset().folder, replace(manifest, entries=manifest.entries[:1]))
    with pytest.raises(BadInput, match="at least two episodes"):
        learn_policies(single, [0], QUICK)


# Recipes


def test_the_papers_recipe_is_the_papers() -> None:
    paper = RECIPES["paper"]
    assert (paper.hidden, paper.rounds, paper.dagger.rounds) == (64, 2, 0)
    assert (paper.training.epochs, paper.training.batch, paper.training.learning_rate) == (200, 128, 1e-3)


def test_our_recipe_practises() -> None:
    assert RECIPES["best"].dagger.rounds > 0
    assert RECIPES["best"].training.epochs < RECIPES["paper"].training.epochs

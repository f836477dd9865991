"""Both levels are learned from demonstrations of any task by the same code, with DAgger and without."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bilevel.demonstrations.collect import collect
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.demonstrations.demonstration import Demonstration
from bilevel.experiments.evaluate import evaluate
from bilevel.learning import dagger, networks
from bilevel.learning.dagger import DaggerConfig
from bilevel.learning.learn import learn
from bilevel.learning.networks import PRESETS, LearningConfig, Progress
from bilevel.lowlevel.encoding import Encoding
from bilevel.lowlevel.network import LowLevelNetwork
from bilevel.lowlevel.training import TrainingConfig
from bilevel.policies.episode import Episode
from bilevel.policies.policy_folder import LearnedPolicy, load_policy
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Expert, Task
from tiny_demonstrations import EPISODES, QUICK, WITH_DAGGER, samples, shown
from tiny_policies import RULES
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE, act

TASKS = [TINY, TINY_DISCRETE, TINY_ACTING]


def same(first: LearnedPolicy, second: LearnedPolicy) -> bool:
    return first.digest == second.digest and first.card == second.card


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_both_levels_are_learned(task: Task, tmp_path: Path) -> None:
    learned = learn(shown(task), tmp_path, task=task, config=QUICK, seed=5)
    assert [str(rule) for rule in learned.rules] == RULES
    assert (learned.card.task, learned.card.seed, learned.card.objects) == (task.name, 5, 2)
    assert learned.card.arguments == {"slip_rate": 0.0}
    summary = learned.card.summary
    assert (summary["samples"], summary["demonstrations"]["episodes"]) == (len(samples(task)), EPISODES)
    assert (tmp_path / "training.jsonl").read_text().count("\n") == QUICK.training.epochs
    policy, env = load_policy(tmp_path, task), SceneEnv(task, 5)
    assert rollout(env, policy, 1, stop=lambda: env.steps == 20).steps == 20


def test_the_expert_is_imitated_with_more_objects_than_it_showed(tmp_path: Path) -> None:
    demonstrations = collect(TINY, tmp_path / "demonstrations", objects=2, episodes=20)
    config = LearningConfig(hidden=32, training=TrainingConfig(epochs=60, batch=64, learning_rate=5e-3))
    learn(demonstrations, tmp_path / "policy", task=TINY, config=config)
    records = evaluate(tmp_path / "policy", TINY, objects=[1, 4], episodes=5)
    assert sum(record.success for record in records) >= 7


def test_without_a_task_the_recorded_labels_are_used(tmp_path: Path) -> None:
    """The same comes of it, but there is no DAgger, whatever the settings say."""
    told: list[str] = []
    by_labels = learn(
        shown(), tmp_path / "labels", config=WITH_DAGGER, callback=lambda progress: told.append(progress.stage)
    )
    by_task = learn(shown(), tmp_path / "task", task=TINY, config=QUICK)
    assert by_labels.digest == by_task.digest
    assert set(told) == {"labelling", "training"}


@pytest.mark.parametrize("expert", [None, Expert(act=act), lambda env: Expert(act=act)], ids=["none", "acting", "made"])
def test_an_expert_that_cannot_be_asked_is_not(expert: Any, tmp_path: Path) -> None:
    task = replace(TINY, expert=expert)
    learned = learn(shown(), tmp_path / "one", task=task, config=WITH_DAGGER)
    assert learned.digest == learn(shown(), tmp_path / "two", task=TINY, config=QUICK).digest


def test_progress_is_told_stage_by_stage_and_losses_are_kept(tmp_path: Path) -> None:
    told: list[Progress] = []
    learned = learn(shown(), tmp_path, task=TINY, config=WITH_DAGGER, callback=told.append)
    assert [(progress.stage, progress.done, progress.total) for progress in told] == [
        *(("labelling", number, EPISODES) for number in range(1, EPISODES + 1)),
        *(("training", number, 2) for number in (1, 2)),
        *(("DAgger, round 1", number, 2) for number in (1, 2)),
        *(("training, round 1", number, 2) for number in (1, 2)),
    ]
    lines = [msgspec.json.decode(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [(line["round"], line.get("number")) for line in lines] == [(0, 1), (0, 2), (1, None), (1, 1), (1, 2)]
    assert learned.card.summary["samples"] >= len(samples()) + 2 * 16  # each episode goes on for that long at least
    assert learned.card.summary["validation_loss"] == min(line["validation_loss"] for line in lines[3:])


# Stopping and going on


class Stopped(Exception):
    """Somebody pulled the plug."""


def stop_after(stage: str, done: int) -> Callable[[Progress], None]:
    def pull_the_plug(progress: Progress) -> None:
        if (progress.stage, progress.done) == (stage, done):
            raise Stopped

    return pull_the_plug


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Those of all DAgger rollouts."""
    found: list[int] = []

    def noted(env: SceneEnv, policy: Any, seed: int, **options: Any) -> Episode:
        found.append(seed)
        return rollout(env, policy, seed, **options)

    monkeypatch.setattr(dagger, "rollout", noted)
    return found


@pytest.mark.parametrize(
    ("stage", "done", "rollouts"), [("training", 1, 2), ("DAgger, round 1", 1, 1), ("training, round 1", 1, 0)]
)
def test_what_was_stopped_goes_on(tmp_path: Path, seeds: list[int], stage: str, done: int, rollouts: int) -> None:
    def learned(name: str, **options: Any) -> LearnedPolicy:
        return learn(shown(), tmp_path / name, task=TINY, config=WITH_DAGGER, **options)

    never_stopped = learned("whole")
    all_seeds, checkpoints = seeds.copy(), tmp_path / "checkpoints"
    with pytest.raises(Stopped):
        learned("stopped", checkpoints=checkpoints, callback=stop_after(stage, done))
    assert not (tmp_path / "stopped" / "policy.json").exists()
    seeds.clear()
    told: list[Progress] = []
    assert same(learned("stopped", checkpoints=checkpoints, callback=told.append), never_stopped)
    assert seeds == all_seeds[2 - rollouts :]
    assert stage.startswith("DAgger") or (stage, 1) not in [(progress.stage, progress.done) for progress in told]
    seeds.clear()
    assert same(learned("again", checkpoints=checkpoints), never_stopped)
    assert seeds == []


def test_a_broken_episode_and_all_after_it_are_run_again(tmp_path: Path, seeds: list[int]) -> None:
    def learned() -> LearnedPolicy:
        return learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER, checkpoints=tmp_path / "kept")

    never_stopped, all_seeds = learned(), seeds.copy()
    (second,) = (tmp_path / "kept").glob("*-001.safetensors")
    second.write_bytes(second.read_bytes()[:-1])
    seeds.clear()
    assert same(learned(), never_stopped)
    assert seeds == all_seeds[1:]


def test_what_was_stopped_in_the_middle_of_an_epoch_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LearningConfig(hidden=8, training=TrainingConfig(epochs=2, batch=16))
    never_stopped = learn(shown(), tmp_path / "whole", task=TINY, config=config)
    monkeypatch.setattr(networks, "SAVED_EVERY", 0.0)
    steps: list[int] = []

    def pull_the_plug(progress: Progress) -> None:
        if progress.stage == "training":
            steps.append(progress.done)
            if len(steps) % 4 == 0:
                raise Stopped

    for _ in range(100):
        with suppress(Stopped):
            resumed = learn(
                shown(), tmp_path / "stopped", task=TINY, config=config, checkpoints=tmp_path, callback=pull_the_plug
            )
            break
    assert same(resumed, never_stopped)
    assert len(steps) > 4
    assert steps == sorted(steps)


def test_a_round_without_samples_is_not_taken_for_the_training_before_it(tmp_path: Path) -> None:
    config = msgspec.structs.replace(QUICK, dagger=DaggerConfig(rounds=1, episodes=0, epochs=2))
    learned = learn(shown(), tmp_path / "one", task=TINY, config=config, checkpoints=tmp_path / "kept")
    assert same(learned, learn(shown(), tmp_path / "two", task=TINY, config=config))
    lines = [msgspec.json.decode(line) for line in (tmp_path / "one" / "training.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [0, 0, 1, 1]
    assert lines[0]["training_loss"] != lines[2]["training_loss"]


# Another network


class Straight(LowLevelNetwork):
    """One layer over everything."""

    def __init__(self, encoding: Encoding, controls: Controls) -> None:
        super().__init__(encoding, controls)
        size = encoding.global_size + len(encoding.schemas) + encoding.arity * encoding.object_size
        self.layer = nn.Linear(size, controls.size)

    def forward(self, global_: Tensor, action: Tensor, objects: Tensor) -> Tensor:
        outputs: Tensor = self.layer(torch.cat([global_, action, objects.flatten(1)], dim=1))
        return outputs


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=lambda task: task.name)
def test_another_network_can_be_handed_over(task: Task, tmp_path: Path) -> None:
    learned = learn(shown(task), tmp_path, task=task, config=WITH_DAGGER, network=Straight)
    assert learned.card.network.kind == "Straight"
    assert learned.weights.keys() == {"global_scale", "object_scale", "layer.weight", "layer.bias"}
    with pytest.raises(
        BadInput, match="the policy has a network of another kind, 'Straight': hand it over, with network"
    ):
        load_policy(tmp_path, task)
    policy, env = load_policy(tmp_path, task, network=Straight), SceneEnv(task, 3)
    assert rollout(env, policy, 1, stop=lambda: env.steps == 10).steps == 10
    assert env.env.action_space.contains(policy.act(env.scene))


# What cannot be learned from


def broken_off(whole: Demonstration, steps: int = 3) -> Demonstration:
    """The same before anything has happened."""
    return replace(
        whole,
        agent=whole.agent[: steps + 1],
        features=whole.features[: steps + 1],
        visible=whole.visible[: steps + 1],
        controls=whole.controls[:steps],
        executed=whole.executed[:steps],
        actions=whole.actions[:steps],
        states=whole.states[:1],
        goals=whole.goals[:1],
        events=(),
        snapshots={},
    )


def of_tiny(*items: Demonstration) -> Demonstrations:
    return Demonstrations(items, task="tiny", spec=TINY.spec, domain=TINY.domain, controls=shown().controls)


def test_demonstrations_that_show_no_rule_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="show no rule"):
        learn(of_tiny(broken_off(shown()[0]), broken_off(shown()[1])), tmp_path, task=TINY, config=QUICK)


def test_a_single_demonstration_is_enough_to_learn_from(tmp_path: Path) -> None:
    assert learn(of_tiny(shown()[0]), tmp_path, task=TINY, config=QUICK).rules


def test_training_that_diverges_gives_no_policy(tmp_path: Path) -> None:
    wild = LearningConfig(hidden=8, training=TrainingConfig(epochs=1, learning_rate=float("inf")))
    with pytest.raises(BadInput, match="training diverged: its loss is not finite"):
        learn(shown(), tmp_path, task=TINY, config=wild)
    assert not (tmp_path / "policy.json").exists()


def test_demonstrations_in_memory_are_as_good_as_those_in_a_folder(tmp_path: Path) -> None:
    in_memory = learn(of_tiny(*shown()), tmp_path / "memory", task=TINY, config=QUICK)
    assert in_memory.digest == learn(shown(), tmp_path / "folder", task=TINY, config=QUICK).digest


# Presets


def test_the_papers_preset_is_the_papers_and_ours_has_dagger() -> None:
    paper, best = PRESETS["paper"], PRESETS["best"]
    assert (paper.hidden, paper.rounds, paper.dagger.rounds) == (64, 2, 0)
    assert (paper.training.epochs, paper.training.batch, paper.training.learning_rate) == (200, 128, 1e-3)
    assert (paper.recorded_actions, best.recorded_actions) == (False, True)
    assert best.dagger.rounds > 0
    assert best.training.epochs < paper.training.epochs
    assert (paper.relevance, paper.training.symmetries, paper.training.updates) == (False, False, 0)
    assert paper.training.hold_out_from == 2


def test_the_same_seed_gives_the_same_policy_for_any_number_of_workers(tmp_path: Path) -> None:
    one, two, other = (
        learn(shown(), tmp_path / name, task=TINY, config=WITH_DAGGER, seed=seed, workers=workers)
        for name, seed, workers in (("one", 0, 1), ("two", 0, 2), ("other", 1, 1))
    )
    assert one.digest == two.digest != other.digest
    assert np.array_equal(one.weights["object_scale"], other.weights["object_scale"])

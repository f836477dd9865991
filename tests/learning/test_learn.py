"""Both levels are learned from demonstrations of any task by the same code, with DAgger and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor, nn

from bilevel.files import folder_lock
from bilevel.learning.learn import LearningConfig, learn
from bilevel.lowlevel.encoding import Encoding
from bilevel.lowlevel.network import LowLevelNetwork
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.methods import load_policy
from bilevel.policies.folder import LearnedPolicy, read_policy
from bilevel.policies.rollout import rollout
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.controls import Controls
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_demonstrations import EPISODES, QUICK, WITH_DAGGER, samples, shown
from tiny_policies import RULES
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE

TASKS = [TINY, TINY_DISCRETE, TINY_ACTING]


replace_in = msgspec.structs.replace


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


def test_without_a_task_the_recorded_labels_are_used(tmp_path: Path) -> None:
    """The same comes of it, but there is no DAgger, whatever the settings say, and a remark about that."""
    told: list[str] = []
    by_labels = learn(
        shown(), tmp_path / "labels", config=WITH_DAGGER, callback=lambda progress: told.append(progress.stage)
    )
    by_task = learn(shown(), tmp_path / "task", task=TINY, config=QUICK)
    assert by_labels.digest == by_task.digest
    reason = "the task 'tiny' is not registered here (see --task): learned without DAgger"
    assert by_labels.card.summary["remarks"][0] == reason
    assert set(told) == {"labelling", "training"}


@pytest.mark.parametrize(("rate", "remarks"), [(1e-3, ["--updates 160"]), (1e-9, [])], ids=["falling", "level"])
def test_where_the_loss_was_still_falling_one_is_told_how_to_go_on(
    tmp_path: Path, rate: float, remarks: list[str]
) -> None:
    config = replace_in(QUICK, training=TrainingConfig(epochs=4, updates=80, learning_rate=rate))
    learned = learn(shown(), tmp_path, task=TINY, config=config)
    assert [remark.rpartition("with ")[2] for remark in learned.card.summary.get("remarks", ())] == remarks


# Stopping and going on


class Stopped(Exception):
    """Somebody pulled the plug."""


@pytest.mark.parametrize(
    ("stage", "repeated"),
    [
        ("training", {"training", "DAgger, round 1"}),
        ("DAgger, round 1", {"DAgger, round 1"}),
        ("training, round 1", {"DAgger, round 1"}),
    ],
)
def test_what_was_stopped_goes_on_from_the_last_round(tmp_path: Path, stage: str, repeated: set[str]) -> None:
    def pull_the_plug(progress: Progress) -> None:
        if progress.stage == stage:
            raise Stopped

    def learned(name: str, **options: Any) -> LearnedPolicy:
        return learn(shown(), tmp_path / name, task=TINY, config=WITH_DAGGER, **options)

    never_stopped = learned("whole")
    with pytest.raises(Stopped):
        learned("stopped", callback=pull_the_plug)
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == ["unfinished"]
    with pytest.raises(BadInput, match="not complete; run the same `bilevel learn` again"):
        read_policy(tmp_path / "stopped")
    stages: list[str] = []
    assert same(learned("stopped", callback=lambda progress: stages.append(progress.stage)), never_stopped)
    assert {*stages} == {"labelling", "training, round 1", *repeated}
    assert {path.name for path in (tmp_path / "stopped").iterdir()} == {
        path.name for path in (tmp_path / "whole").iterdir()
    }


def test_an_unfinished_policy_goes_on_only_with_its_own_options_and_a_finished_one_stays(tmp_path: Path) -> None:
    def pull_the_plug(progress: Progress) -> None:
        if progress.stage == "DAgger, round 1":
            raise Stopped

    with pytest.raises(Stopped):
        learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER, callback=pull_the_plug)
    with pytest.raises(BadInput, match="begun here with seed 0 instead of 1; give the same options again"):
        learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER, seed=1)
    with folder_lock(tmp_path / "policy" / "unfinished", "learning"), pytest.raises(BadInput, match="another process"):
        learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER)
    learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER)
    with pytest.raises(BadInput, match="already holds a policy"):
        learn(shown(), tmp_path / "policy", task=TINY, config=WITH_DAGGER)


# What is kept, recorded, or left out


def test_rules_of_the_printed_algorithm_stay_as_they_are(tmp_path: Path) -> None:
    printed = replace_in(QUICK, algorithm="printed")
    for further in ({"complete": True}, {"dagger": WITH_DAGGER.dagger}):
        with pytest.raises(BadInput, match="without completion and without DAgger"):
            learn(shown(), tmp_path / "more", task=TINY, config=replace_in(printed, **further))


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


def test_demonstrations_that_show_no_rule_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="show no rule"):
        learn(shown(), tmp_path, task=replace(TINY, label=lambda scene: ()), config=QUICK)


def test_training_that_diverges_gives_no_policy(tmp_path: Path) -> None:
    wild = LearningConfig(hidden=8, training=TrainingConfig(epochs=1, learning_rate=float("inf")))
    with pytest.raises(BadInput, match="training diverged: its loss is not finite"):
        learn(shown(), tmp_path, task=TINY, config=wild)
    assert not (tmp_path / "policy.json").exists()

"""End-to-end policies are learned from demonstrations of any task, with DAgger and without, and kept in folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bilevel.learning.learn import LearningConfig, learn
from bilevel.lowlevel.training import TrainingConfig
from bilevel.methods.end_to_end import HAS_FACTS, read_end_to_end
from bilevel.methods.methods import find_policy, load_policy
from bilevel.policies.folder import DOMAIN, POLICY, LearnedPolicy, read_policy
from bilevel.policies.rollout import rollout
from bilevel.progress import Progress
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_demonstrations import QUICK, WITH_DAGGER, shown
from tiny_policies import learned_folder
from tiny_task import TINY, TINY_ACTING, TINY_DISCRETE


def learned(output: Path, task: Task = TINY, config: LearningConfig = QUICK, **options: Any) -> LearnedPolicy:
    return learn(shown(task), output, task=task, config=config, **{"method": "pddl-nn", **options})


@pytest.mark.parametrize("method", HAS_FACTS)
@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=lambda task: task.name)
def test_a_policy_is_learned_written_read_and_runs_with_more_objects(task: Task, method: str, tmp_path: Path) -> None:
    config = LearningConfig(hidden=16, training=TrainingConfig(epochs=20, batch=32, learning_rate=3e-3))
    losses: list[float] = []

    def note(progress: Progress) -> None:
        losses.extend(value for name, value in progress.values.items() if name == "loss/training")

    made = learned(tmp_path, task, config, method=method, seed=5, callback=note)
    assert losses[-1] < losses[0] / 2
    assert made.card.summary["samples"] == sum(each.steps for each in shown(task))
    found, _ = read_end_to_end(tmp_path, method)
    assert (found.card, found.domain, found.digest) == (made.card, made.domain, made.digest)
    env, policy = SceneEnv(task, 4), load_policy(tmp_path, task)
    steps = iter(range(29))
    assert rollout(env, policy, 1, stop=lambda: next(steps, None) is None).steps == 30
    assert env.env.action_space.contains(policy.act(env.scene))
    make = find_policy(tmp_path, task=task).make
    assert make is not None
    assert np.array_equal(np.asarray(make(env).act(env.scene)), np.asarray(policy.act(env.scene)))


@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE, TINY_ACTING], ids=lambda task: task.name)
def test_dagger_adds_samples_and_what_was_stopped_goes_on(task: Task, tmp_path: Path) -> None:
    def pull_the_plug(progress: Progress) -> None:
        if progress.stage == "training, round 1":
            raise KeyboardInterrupt

    whole = learned(tmp_path / "whole", task, WITH_DAGGER)
    assert whole.card.summary["samples"] >= sum(each.steps for each in shown(task)) + 2 * 16
    with pytest.raises(KeyboardInterrupt):
        learned(tmp_path / "stopped", task, WITH_DAGGER, callback=pull_the_plug)
    assert learned(tmp_path / "stopped", task, WITH_DAGGER).digest == whole.digest
    assert learned(tmp_path / "other", task, WITH_DAGGER, seed=1).digest != whole.digest


# Folders


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    learned(tmp_path_factory.mktemp("learned") / "policy")
    return tmp_path_factory.getbasetemp() / "learned0" / "policy"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "policy"))


def test_methods_do_not_take_each_others_folders(folder: Path) -> None:
    with pytest.raises(BadInput, match="a policy of the method 'pddl-nn', not of 'bison'"):
        read_policy(folder)
    for other, method in ((folder, "pddl-nn"), (learned_folder(), "bison")):
        with pytest.raises(BadInput, match=f"{other / POLICY}: a policy of the method '{method}', not of 'pure-nn'"):
            find_policy(other, method="pure-nn")


def edit(folder: Path, **changes: Any) -> None:
    """Change keys of policy.json."""
    (folder / POLICY).write_text(json.dumps({**json.loads((folder / POLICY).read_text()), **changes}))


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {  # the file that is named, and what is said of it
    "method": (lambda f: edit(f, method="a\nb"), POLICY, r"a policy of the method 'a\nb', not of 'pddl-nn'"),
    "encoding": (lambda f: edit(f, encoding={}), DOMAIN, "not the domain that the network was trained with"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_wrong_is_one_line_that_names_the_file(name: str, folder: Path) -> None:
    damage, file, reason = DAMAGES[name]
    damage(folder)
    with pytest.raises(BadInput) as error:
        read_end_to_end(folder, "pddl-nn")
    message = str(error.value)
    assert message.startswith(f"{folder / file}: ")
    assert reason in message
    assert "\n" not in message

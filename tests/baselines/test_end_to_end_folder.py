"""End-to-end policies as folders: written and read again, and what is wrong with one is a line that names the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bilevel.baselines.end_to_end import LearnedEndToEnd, read_any, read_end_to_end
from bilevel.baselines.learning import learn_end_to_end
from bilevel.learning.learn import CURVES, learn
from bilevel.learning.networks import LearningOptions
from bilevel.policies.policy_folder import (
    DOMAIN,
    FORMAT,
    POLICY,
    RULES,
    WEIGHTS,
    LearnedPolicy,
    load_policy,
    read_policy,
)
from bilevel.symbolic.domain import BadInput
from bilevel.tasks.scene_env import SceneEnv
from bilevel.tasks.task import Task
from tiny_demonstrations import QUICK, shown
from tiny_task import TINY, TINY_DISCRETE

FILES = {POLICY, DOMAIN, WEIGHTS}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    learn_end_to_end(shown(), folder, "pddl-nn", LearningOptions(task=TINY, config=QUICK, seed=3))
    return folder


@pytest.fixture
def folder(learned: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(learned, tmp_path / "policy"))


@pytest.mark.parametrize("method", ["pure-nn", "pddl-nn"])
@pytest.mark.parametrize("task", [TINY, TINY_DISCRETE], ids=lambda task: task.name)
def test_a_policy_that_is_read_is_the_one_that_was_learned(task: Task, method: str, tmp_path: Path) -> None:
    learned = learn_end_to_end(shown(task), tmp_path, method, LearningOptions(task=task, config=QUICK, seed=3))
    assert {file.name for file in tmp_path.iterdir()} == {*FILES, CURVES}
    found = read_any(tmp_path)
    assert isinstance(found, LearnedEndToEnd)
    assert (found.card, found.domain, found.digest) == (learned.card, learned.domain, learned.digest)
    assert (found.card.method, found.card.seed, found.card.task) == (method, 3, task.name)
    found.write(tmp_path / "again")
    for file in FILES:
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / file).read_bytes()
    env = SceneEnv(task, 3)
    scene = env.reset(seed=0)
    assert np.array_equal(found.for_environment(env).act(scene), learned.bind(task.labels).act(scene))


# Beside bilevel policies


def test_whoever_needs_rules_is_told_that_there_are_none(folder: Path) -> None:
    for read in (read_policy, load_policy):
        with pytest.raises(BadInput) as error:
            read(folder)
        assert str(error.value) == f"{folder / POLICY}: a policy of the method 'pddl-nn', not of bison"


def test_a_folder_of_either_kind_is_read(folder: Path, tmp_path: Path) -> None:
    bilevel = learn(shown(), tmp_path / "bilevel", task=TINY, config=QUICK)
    assert (tmp_path / "bilevel" / RULES).exists()
    found = read_any(tmp_path / "bilevel")
    assert isinstance(found, LearnedPolicy)
    assert found.digest == bilevel.digest
    assert read_end_to_end(folder, "pddl-nn").digest == read_any(folder).digest
    for other, method in ((folder, "pddl-nn"), (tmp_path / "bilevel", "bison")):
        with pytest.raises(BadInput, match=f"{other}: a policy of the method '{method}', not of 'pure-nn'"):
            read_end_to_end(other, "pure-nn")


# What is wrong is named


def edit(folder: Path, **changes: Any) -> None:
    """Change keys of policy.json; `None` removes one."""
    about = {**json.loads((folder / POLICY).read_text()), **changes}
    (folder / POLICY).write_text(json.dumps({key: value for key, value in about.items() if value is not None}))


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def change_weights(folder: Path, **changes: Any) -> None:
    changed = {name.replace("__", "."): array for name, array in changes.items()}
    save_file({**load_file(folder / WEIGHTS), **changed}, folder / WEIGHTS)


def network(hidden: int) -> dict[str, Any]:
    return {"kind": "end-to-end", "hidden": hidden, "rounds": 2}


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {  # the file that is named, and what is said of it
    "no json": (lambda f: (f / POLICY).unlink(), "", "no policy: there is no policy.json in it"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "there is no such file"),
    "newer": (lambda f: edit(f, format=FORMAT + 1), POLICY, "of format 3, but bilevel"),
    "method": (
        lambda f: edit(f, method="a\nb"),
        POLICY,
        r"a policy of the method 'a\nb', not of bison or pure-nn or pddl-nn",
    ),
    "no method": (lambda f: edit(f, method=None), POLICY, "missing required field `method`"),
    "another method": (lambda f: edit(f, method="pure-nn"), DOMAIN, "its 'arity' would be 0, but policy.json says 2"),
    "hidden": (lambda f: edit(f, network=network(10**9)), POLICY, "'hidden' cannot be 1000000000"),
    "other hidden": (lambda f: edit(f, network=network(9)), WEIGHTS, "the tensor 'embed.fact.bias' is of shape"),
    "another domain": (
        lambda f: change(f, DOMAIN, "(:predicates", "(:predicates (by ?p ?q - parcel)"),
        DOMAIN,
        "its 'relations' would be ['at', 'by'], but policy.json says ['at']",
    ),
    "cut weights": (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]), WEIGHTS, "damaged"),
    "tensor too many": (
        lambda f: change_weights(f, more=np.zeros(1, np.float32)),
        WEIGHTS,
        "the tensor 'more' is none of this network",
    ),
    "not finite": (
        lambda f: change_weights(f, rounds__1__fact__bias=np.full(8, np.nan, np.float32)),
        WEIGHTS,
        "the tensor 'rounds.1.fact.bias' does not hold finite",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_wrong_is_one_line_that_names_the_file(name: str, folder: Path) -> None:
    damage, file, reason = DAMAGES[name]
    damage(folder)
    with pytest.raises(BadInput) as error:
        read_any(folder)
    message = str(error.value)
    assert message.startswith(str(folder / file))
    assert reason in message
    assert "\n" not in message


def test_a_loss_that_is_not_finite_is_not_saved(folder: Path, tmp_path: Path) -> None:
    found = read_any(folder)
    card = msgspec.structs.replace(found.card, summary={**found.card.summary, "validation_loss": float("inf")})
    with pytest.raises(BadInput, match="training diverged"):
        LearnedEndToEnd(card, found.domain, found.weights).write(tmp_path / "diverged")

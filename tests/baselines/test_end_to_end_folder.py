"""End-to-end policies as folders: written and read again, and what is wrong with one is a line that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_demonstrations import QUICK, dataset

from bilevel.baselines.end_to_end import EndToEndPolicy
from bilevel.baselines.end_to_end_folder import SavedEndToEnd, read_any, saved_end_to_end
from bilevel.baselines.learning import learn_end_to_end
from bilevel.learning.bilevel import learn_policies
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.policy_folder import (
    DOMAIN,
    FORMAT,
    POLICY,
    RULES,
    WEIGHTS,
    SavedPolicy,
    read_policy,
    saved_policy,
    write_policy,
)
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.tasks import find_task

FILES = (POLICY, DOMAIN, WEIGHTS)


@cache
def saved(method: str = "pddl-nn") -> SavedEndToEnd:
    (learned,) = learn_end_to_end(dataset(), method, [3], QUICK)
    return saved_end_to_end(dataset(), learned, QUICK, recipe="paper", seconds=1.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_policy(tmp_path / "policy", saved())
    return tmp_path / "policy"


def read_again(folder: Path) -> SavedEndToEnd:
    found = read_any(folder)
    assert isinstance(found, SavedEndToEnd)
    return found


@pytest.mark.parametrize("method", ["pure-nn", "pddl-nn"])
def test_a_policy_that_is_read_is_the_one_that_was_written(method: str, tmp_path: Path) -> None:
    write_policy(tmp_path, saved(method))
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)
    found = read_again(tmp_path)
    for name in ("task", "method", "arguments", "seed", "domain", "architecture", "settings", "summary", "digest"):
        assert getattr(found, name) == getattr(saved(method), name)
    write_policy(tmp_path / "again", found)
    for file in FILES:
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / file).read_bytes()


def test_its_digest_is_its_own() -> None:
    assert saved("pure-nn").digest != saved("pddl-nn").digest


def test_it_acts_as_the_one_that_was_learned(folder: Path) -> None:
    environment = find_task("blocks").make(2)
    observation, _ = environment.reset(seed=0)
    policy = read_again(folder).bind(environment.slots)
    assert isinstance(policy, EndToEndPolicy)
    policy.reset(observation)
    assert np.array_equal(policy.act(observation), saved().bind(environment.slots).act(observation))
    assert policy.state == policy.labels.state(observation)
    assert policy.action is None


# Beside bilevel policies


def test_whoever_needs_rules_is_told_that_there_are_none(folder: Path) -> None:
    for read in (read_policy, BilevelPolicy.load):
        with pytest.raises(BadInput) as error:
            read(folder)
        assert str(error.value) == f"{folder / POLICY}: a policy of the method 'pddl-nn', not of bison"


def test_a_folder_that_names_no_method_holds_a_bilevel_policy(tmp_path: Path) -> None:
    (learned,) = learn_policies(dataset(), [0], QUICK)
    bilevel = saved_policy(dataset(), learned, QUICK, recipe="paper", seconds=1.0)
    write_policy(tmp_path, bilevel)
    about = json.loads((tmp_path / POLICY).read_text())
    assert about.pop("method") == "bison"
    (tmp_path / POLICY).write_text(json.dumps(about))
    assert (tmp_path / RULES).exists()
    found = read_any(tmp_path)
    assert isinstance(found, SavedPolicy)
    assert found.digest == read_policy(tmp_path).digest == bilevel.digest


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
    changed = {name.replace("_", "."): array for name, array in changes.items()}
    save_file({**saved().weights, **changed}, folder / WEIGHTS)


DAMAGES: dict[str, tuple[Callable[[Path], object], str, str]] = {  # the file that is named, and what is said of it
    "no json": (lambda f: (f / POLICY).unlink(), "", "no policy: there is no policy.json in it"),
    "no domain": (lambda f: (f / DOMAIN).unlink(), DOMAIN, "there is no such file"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "there is no such file"),
    "newer": (lambda f: edit(f, format=FORMAT + 1), POLICY, "of format 2, but bilevel"),
    "method": (
        lambda f: edit(f, method="a\nb"),
        POLICY,
        r"a policy of the method 'a\nb', not of bison or pure-nn or pddl-nn",
    ),
    "no method": (lambda f: edit(f, method=None), POLICY, "'encoding' has no 'schemas'"),
    "bison": (lambda f: edit(f, method="bison"), POLICY, "'encoding' has no 'schemas'"),
    "another method": (lambda f: edit(f, method="pure-nn"), DOMAIN, "its 'nullary' would be []"),
    "encoding": (lambda f: edit(f, encoding={"arity": 1}), POLICY, "'encoding' has no 'types'"),
    "summary": (lambda f: edit(f, summary={"samples": 1}), POLICY, "'summary' has no 'best_epoch'"),
    "hidden": (lambda f: edit(f, hidden=10**9), POLICY, "'hidden' cannot be 1000000000"),
    "other hidden": (lambda f: edit(f, hidden=9), WEIGHTS, "the tensor 'global.0.weight' is F32 of shape"),
    "another domain": (
        lambda f: change(f, DOMAIN, "(at ?x - block ?l - place)", "(at ?x - block ?l - place) (by ?x ?y - block)"),
        DOMAIN,
        'its \'relations\' would be ["at", "by"], but policy.json says ["at"]',
    ),
    "cut weights": (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]), WEIGHTS, "damaged"),
    "tensor too many": (
        lambda f: change_weights(f, more=np.zeros(1, np.float32)),
        WEIGHTS,
        "the tensor 'more' is none of this network",
    ),
    "not finite": (
        lambda f: change_weights(f, fact_1_bias=np.full(8, np.nan, np.float32)),
        WEIGHTS,
        "the tensor 'fact.1.bias' holds numbers that are not finite",
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


def test_a_loss_that_is_not_finite_is_not_saved() -> None:
    (learned,) = learn_end_to_end(dataset(), "pure-nn", [0], QUICK)
    diverged = replace(learned, network=replace(learned.network, validation_loss=float("inf")))
    with pytest.raises(BadInput, match="training diverged"):
        saved_end_to_end(dataset(), diverged, QUICK, recipe="paper", seconds=1.0)

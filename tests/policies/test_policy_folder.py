"""Policies as folders: written and read again, and whatever is wrong with one is a line that names the file."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

import bilevel
from bilevel.lowlevel.numpy_network import Weights
from bilevel.methods.methods import load_policy
from bilevel.policies.policy_folder import (
    DOMAIN,
    FORMAT,
    POLICY,
    RULES,
    UNFINISHED,
    WEIGHTS,
    read_policy,
)
from bilevel.policies.rollout import rollout
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import parse_domain, write_domain
from bilevel.tasks import registry
from bilevel.tasks.registry import register_task
from bilevel.tasks.scene_env import SceneEnv
from tiny_policies import PICK, learned_folder, still_policy
from tiny_task import TINY, TINY_DISCRETE, goal, label

FILES = (POLICY, RULES, DOMAIN, WEIGHTS)
MUTATIONS = 60  # of each file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that may be changed."""
    still_policy().write(tmp_path / "policy")
    return tmp_path / "policy"


def edit(folder: Path, **changes: Any) -> None:
    """Change keys of policy.json; `None` removes one."""
    about = {**json.loads((folder / POLICY).read_text()), **changes}
    (folder / POLICY).write_text(json.dumps({key: value for key, value in about.items() if value is not None}))


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def weights(**changes: Any) -> Weights:
    """Those of the policy; `None` removes one."""
    found = {**still_policy().weights, **{name.replace("_", "."): array for name, array in changes.items()}}
    return {name: array for name, array in found.items() if array is not None}


# What is written is read


def test_a_policy_that_is_read_is_the_one_that_was_written(tmp_path: Path) -> None:
    found = read_policy(learned_folder())
    assert (found.card.task, found.card.seed, found.card.format) == ("tiny", 7, FORMAT)
    assert found.spec == TINY.spec
    found.write(tmp_path)
    assert all((tmp_path / file).read_bytes() == (learned_folder() / file).read_bytes() for file in FILES)
    again = read_policy(tmp_path)
    assert (again.card, again.rules, again.digest) == (found.card, found.rules, found.digest)
    assert (write_domain(again.domain), again.parameters) == (write_domain(TINY.domain), found.parameters)


def test_a_person_can_read_it_and_edit_its_rules(folder: Path) -> None:
    before = read_policy(folder)
    assert (folder / POLICY).read_text().startswith('{\n  "format": 2,\n  "task": "tiny",\n')
    text = (folder / RULES).read_text()
    assert PICK in text
    (folder / RULES).write_text(f"# mine\n{text}")
    assert read_policy(folder).digest == before.digest
    change(folder, RULES, "2: lying(?p) & ", "2: ")
    assert read_policy(folder).rules != before.rules
    assert read_policy(folder).digest != before.digest


def test_a_folder_is_complete_only_when_all_of_it_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path: Path, content: str | bytes) -> None:
        if path.name == WEIGHTS:
            raise KeyboardInterrupt

    monkeypatch.setattr("bilevel.policies.policy_folder.write_atomically", stop)
    with pytest.raises(KeyboardInterrupt):
        still_policy().write(folder)
    with pytest.raises(BadInput, match=r"no policy: there is no policy\.json in it"):
        read_policy(folder)


# What is wrong is named

Damage = Callable[[Path], object]
NETWORK = {"kind": "graph", "hidden": 4, "rounds": 1}
OLD_SUMMARY = {"demonstrations": {"command": "bilevel collect blocks --objects 3 --episodes 200 --seed 0"}}

DAMAGES: dict[str, tuple[Damage, str, str]] = {  # what is done, the file that is named, and what is said of it
    "no json": (lambda f: (f / POLICY).unlink(), "", "no policy: there is no policy.json in it"),
    "no rules": (lambda f: (f / RULES).unlink(), RULES, "there is no such file"),
    "no domain": (lambda f: (f / DOMAIN).unlink(), DOMAIN, "there is no such file"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "there is no such file"),
    "truncated json": (lambda f: (f / POLICY).write_text("{"), POLICY, "Input data was truncated"),
    "deep json": (lambda f: (f / POLICY).write_text("[" * 100_000), POLICY, "Expected `object`, got `array`"),
    "no text": (lambda f: (f / POLICY).write_bytes(b"{\xff"), POLICY, "malformed"),
    "no object": (lambda f: (f / POLICY).write_text("[]"), POLICY, "Expected `object`, got `array`"),
    "infinity": (lambda f: change(f, POLICY, "0.25", "Infinity"), POLICY, "malformed"),
    "newer": (lambda f: edit(f, format=FORMAT + 1), POLICY, "of format 3, but bilevel"),
    "older": (
        lambda f: edit(f, format=1, summary=OLD_SUMMARY),
        POLICY,
        "of bilevel 0.1, whose policies had no spec; learn it again, after: "
        "bilevel collect blocks --objects 3 --episodes 200 --seed 0 --output DIR",
    ),
    "format": (lambda f: edit(f, format="two"), POLICY, "Expected `int`, got `str` - at `$.format`"),
    "no format": (lambda f: edit(f, format=None), POLICY, "missing required field `format`"),
    "unknown key": (lambda f: edit(f, code="import os"), POLICY, "unknown field `code`"),
    "key with a line break": (lambda f: edit(f, **{"a\nb": 1}), POLICY, "unknown field `a b`"),
    "missing key": (lambda f: edit(f, seed=None), POLICY, "missing required field `seed`"),
    "type": (lambda f: edit(f, network={**NETWORK, "hidden": "64"}), POLICY, "Expected `int`, got `str`"),
    "hidden": (lambda f: edit(f, network={**NETWORK, "hidden": -1}), POLICY, "'hidden' cannot be -1"),
    "rounds": (lambda f: edit(f, network={**NETWORK, "rounds": 10**12}), POLICY, "'rounds' cannot be 1000000000000"),
    "controls": (lambda f: edit(f, controls={"type": "box", "low": [0]}), POLICY, "missing required field `high`"),
    "bounds": (
        lambda f: edit(f, controls={"type": "box", "low": [0], "high": [1, 2], "shape": [2]}),
        POLICY,
        "'low', 'high', 'shape' and 'dtype' are not those of a Box - at `$.controls`",
    ),
    "nothing to choose": (lambda f: edit(f, controls={"type": "discrete", "n": 0}), POLICY, "Expected `int` >= 1"),
    "older and damaged": (lambda f: edit(f, format=1, summary=[]), POLICY, "of bilevel 0.1"),
    "spec": (lambda f: edit(f, spec={"agent": 3}), POLICY, "no spec: "),
    "symbols": (lambda f: edit(f, encoding={"arity": 1}), DOMAIN, "not the domain that the network was trained with"),
    "versions": (lambda f: edit(f, versions={"torch": 2}), POLICY, "Expected `str`, got `int`"),
    "rule": (lambda f: change(f, RULES, "-> pick(?p)", "-> pick(?p"), f"{RULES}:", "found the end of the file"),
    "rule of another domain": (
        lambda f: change(f, RULES, "-> pick", "-> press"),
        f"{RULES}:",
        "unknown action 'press'",
    ),
    "absent fact": (lambda f: change(f, RULES, "2: lying(?p)", "2: not lying(?p)"), RULES, "tests for the absent fact"),
    "no rule": (lambda f: (f / RULES).write_text("# none\n"), RULES, "there is no rule in it"),
    "domain": (lambda f: change(f, DOMAIN, "(define", "(defin"), f"{DOMAIN}:", ""),
    "no actions": (lambda f: (f / DOMAIN).write_text("(define (domain d))"), DOMAIN, "the domain has no actions"),
    "another domain": (
        lambda f: change(f, DOMAIN, "(lying ?p - parcel)", "(lying ?p - parcel) (hot ?p - parcel)"),
        DOMAIN,
        "its 'unary' would be ['carrying', 'empty', 'hot', 'lying'], but policy.json says ['carrying', ",
    ),
    "cut weights": (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]), WEIGHTS, "damaged"),
    "tensor missing": (
        lambda f: save_file(dict(weights(readout_0_bias=None)), f / WEIGHTS),
        WEIGHTS,
        "the tensor 'readout.0.bias' is missing",
    ),
    "tensor's shape": (
        lambda f: save_file(dict(weights(readout_0_bias=np.zeros(7, np.float32))), f / WEIGHTS),
        WEIGHTS,
        "the tensor 'readout.0.bias' is of shape (7,), not (4,)",
    ),
    "not finite": (
        lambda f: save_file(dict(weights(readout_0_bias=np.full(4, np.nan, np.float32))), f / WEIGHTS),
        WEIGHTS,
        "the tensor 'readout.0.bias' does not hold finite 32-bit numbers",
    ),
    "another method": (lambda f: edit(f, method="pure-nn"), POLICY, "a policy of the method 'pure-nn', not of bison"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_wrong_is_one_line_that_names_the_file(name: str, folder: Path) -> None:
    damage, file, reason = DAMAGES[name]
    damage(folder)
    with pytest.raises(BadInput) as error:
        read_policy(folder)
    message = str(error.value)
    assert message.startswith(str(folder / file))
    assert reason in message
    assert "\n" not in message


def test_a_folder_that_is_not_there_or_not_complete_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such folder; `bilevel learn` makes one"):
        read_policy(tmp_path / "policy")
    (tmp_path / UNFINISHED).mkdir()
    with pytest.raises(BadInput, match="not complete; run the same `bilevel learn` again"):
        read_policy(tmp_path)


@pytest.mark.parametrize("file", FILES)
def test_no_bytes_at_all_make_it_crash(file: str, folder: Path) -> None:
    """A policy with some bytes changed is refused, or it acts."""
    rng, env = random.Random(0), SceneEnv(TINY, 1)
    scene, data, refused = env.reset(0), (folder / file).read_bytes(), []
    for _ in range(MUTATIONS):
        (folder / file).write_bytes(mutated(data, rng))
        try:
            load_policy(folder, TINY).act(scene)
        except BadInput as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in message for message in refused)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """With a few bytes changed, most of them near the beginning; or with a part cut out or doubled."""
    found = bytearray(data)
    start = int(len(found) * rng.random() ** 3)
    end = min(len(found), start + rng.randint(1, 20))
    kind = rng.randrange(4)
    if kind == 0:
        del found[start:end]
    elif kind == 1:
        found[start:start] = found[start:end]
    else:
        for _ in range(rng.randint(1, 3)):
            index = min(len(found) - 1, int(len(found) * rng.random() ** 3))
            found[index] = rng.choice([rng.randrange(256), found[index] ^ 1 << rng.randrange(8)])
    return bytes(found)


# Loading


def test_labels_come_from_functions_from_a_task_or_from_the_one_that_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        BadInput, match="learned on the task 'tiny', which is not registered: hand over the task, or its"
    ):
        load_policy(learned_folder())
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_task(TINY)
    env = SceneEnv(TINY, 3)
    scene = env.reset(1)
    policies = [
        load_policy(learned_folder(), label=label, goal=goal),
        load_policy(str(learned_folder()), TINY),
        bilevel.load_policy(learned_folder()),
    ]
    controls = [policy.act(scene) for policy in policies]
    assert controls[0] is not None
    assert all(control.tolist() == controls[0].tolist() for control in controls if control is not None)
    assert {str(policy.action) for policy in policies} == {"pick(parcel1)"}
    assert rollout(env, policies[0], 1, stop=lambda: env.steps == 5).steps == 5


def test_a_name_in_a_folder_is_never_imported(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')\n")
    for name in ("evil:task", "evil.py:task", "evil", "two\nlines"):
        edit(folder, task=name)
        with pytest.raises(BadInput, match=r"^[^\n]*, which is not registered: [^\n]*$"):
            load_policy(folder)


def test_a_domain_must_know_what_the_labels_say(folder: Path) -> None:
    text = write_domain(TINY.domain)
    for old, new, lacking in (
        ("(free)", "(free) (heavy ?p - parcel)", "the predicate 'heavy' with 1 arguments"),
        ("parcel spot", "heavy - parcel parcel spot", "the type 'heavy'"),
    ):
        assert old in text
        other = replace(TINY, name="other", domain=parse_domain(text.replace(old, new, 1)))
        with pytest.raises(BadInput, match=f"the policy was learned on 'tiny': its domain lacks {lacking} of 'other'"):
            load_policy(folder, other)


def test_a_domain_need_not_know_types_of_which_the_labels_say_nothing(folder: Path) -> None:
    domain = parse_domain(write_domain(TINY.domain).replace("parcel spot", "parcel spot van", 1))
    assert "van" in domain.types
    env = SceneEnv(TINY, 1)
    assert load_policy(folder, replace(TINY, name="other", domain=domain)).act(env.reset(0)) is not None


def test_rules_may_name_a_constant_that_is_not_seen(folder: Path) -> None:
    change(folder, DOMAIN, "(:predicates", "(:constants parcel9 - parcel)\n(:predicates")
    change(folder, RULES, "-> pick(?p)", "-> pick(parcel9)")
    env = SceneEnv(TINY, 1)
    assert load_policy(folder, TINY).act(env.reset(0)) is not None


def test_a_spec_that_the_weights_are_not_made_for_is_refused(folder: Path) -> None:
    spec = json.loads((folder / POLICY).read_text())["spec"]
    spec["objects"]["spot"]["radius"] = {"type": "label-only"}
    edit(folder, spec=spec)
    with pytest.raises(BadInput, match=r"'embed\.object\.weight' is of shape \(4, 12\), not \(4, 11\)"):
        load_policy(folder, TINY)


def test_a_policy_for_a_discrete_space_gives_its_controls(tmp_path: Path) -> None:
    env = SceneEnv(TINY_DISCRETE, 1)
    still_policy(TINY_DISCRETE, controls=env.controls).write(tmp_path)
    assert load_policy(tmp_path, TINY_DISCRETE).act(env.reset(0)) in env.env.action_space


def test_a_copied_folder_is_the_same_policy(tmp_path: Path) -> None:
    shutil.copytree(learned_folder(), tmp_path / "copy")
    assert read_policy(tmp_path / "copy").digest == read_policy(learned_folder()).digest


def test_the_estimation_is_kept_and_older_folders_have_none(folder: Path) -> None:
    learned = read_policy(learned_folder())
    assert learned.card.estimation is not None
    estimator = load_policy(learned_folder(), TINY).estimator
    assert estimator is not None
    assert estimator.estimation == learned.card.estimation
    edit(folder, estimation=None)
    assert load_policy(folder, TINY).estimator is None


def test_an_estimation_decides_how_a_policy_moves_so_it_is_part_of_its_digest() -> None:
    learned = read_policy(learned_folder())
    without = replace(learned, card=msgspec.structs.replace(learned.card, estimation=None))
    assert learned.digest != without.digest


def test_an_estimation_of_other_things_is_refused(folder: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(learned_folder(), folder)
    about = json.loads((folder / POLICY).read_text())
    about["estimation"]["types"]["parcel"]["carrying"]["agent"] = {"opening": [0, 1]}
    (folder / POLICY).write_text(json.dumps(about))
    with pytest.raises(BadInput, match=f"{POLICY}: the estimation does not fit the spec: 'opening'"):
        read_policy(folder)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("switches",), [0, 7], "there is no switch 7: controls have 3 numbers, from 0 on"),
        (("switches",), [10**17], "there is no switch 100000000000000000: controls have 3 numbers, from 0 on"),
        (("still",), [0.0, 1.0], "the control that is still has 2 numbers, not 3"),
        (
            ("estimation", "types", "parcel", "carrying", "offset"),
            [0.0, 0.0, 0.0],
            "the estimation does not fit the spec: the agent has another number of axes",
        ),
    ],
)
def test_numbers_of_another_robot_are_refused(
    place: tuple[str, ...], value: list[float], reason: str, folder: Path
) -> None:
    shutil.rmtree(folder)
    shutil.copytree(learned_folder(), folder)
    about = json.loads((folder / POLICY).read_text())
    holder = about
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = value
    (folder / POLICY).write_text(json.dumps(about))
    with pytest.raises(BadInput, match=f"{POLICY}: {reason}"):
        read_policy(folder)


def test_folders_with_thresholds_of_labels_are_read(folder: Path) -> None:
    before = read_policy(folder).digest
    edit(folder, thresholds={"near": 0.5})
    assert read_policy(folder).digest == before

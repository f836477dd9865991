"""Policies as folders: what is written is read, what is wrong is one line that names the file, and they stand alone."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bilevel
from bilevel.methods.methods import load_policy, usual_policy
from bilevel.policies.folder import (
    DOMAIN,
    FORMAT,
    POLICY,
    RULES,
    WEIGHTS,
    find_folder,
    pretrained_policies,
    read_policy,
)
from bilevel.symbolic.domain import BadInput
from bilevel.symbolic.pddl import parse_domain, write_domain
from bilevel.tasks import registry
from bilevel.tasks.registry import register_task
from bilevel.tasks.scene import Scene
from bilevel.tasks.scene_env import SceneEnv
from tiny_policies import PICK, learned_folder, still_folder, still_policy
from tiny_task import TINY, goal, label

FILES = (POLICY, RULES, DOMAIN, WEIGHTS)
MUTATIONS = 60  # of each file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that may be changed."""
    shutil.copytree(learned_folder(), tmp_path / "policy")
    return tmp_path / "policy"


def edit(folder: Path, *place: str, to: Any) -> None:
    """Change a value in policy.json; `None` removes it."""
    about = holder = json.loads((folder / POLICY).read_text())
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = to
    if to is None:
        del holder[place[-1]]
    (folder / POLICY).write_text(json.dumps(about))


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))


def change_weights(folder: Path, **changes: Any) -> None:
    """Change tensors; `None` removes one."""
    weights = {**load_file(folder / WEIGHTS), **{name.replace("_", "."): array for name, array in changes.items()}}
    save_file({name: array for name, array in weights.items() if array is not None}, folder / WEIGHTS)


# What is written is read


def test_a_policy_that_is_read_is_the_one_that_was_written(tmp_path: Path) -> None:
    found = read_policy(learned_folder())
    assert (found.card.task, found.card.seed, found.card.format) == ("tiny", 7, FORMAT)
    assert found.card.spec == TINY.spec
    found.write(tmp_path)
    assert all((tmp_path / file).read_bytes() == (learned_folder() / file).read_bytes() for file in FILES)
    again = read_policy(tmp_path)
    assert (again.card, again.rules, again.digest) == (found.card, found.rules, found.digest)
    estimator = load_policy(tmp_path, TINY).estimator
    assert estimator is not None
    assert estimator.estimation == found.card.estimation


def test_the_digest_says_whether_policies_decide_and_move_alike(tmp_path: Path) -> None:
    still_policy().write(tmp_path)
    before = read_policy(tmp_path)
    text = (tmp_path / RULES).read_text()
    assert PICK in text
    (tmp_path / RULES).write_text(f"# mine\n{text}")
    edit(tmp_path, "thresholds", to={"near": 0.5})  # as older folders have
    assert read_policy(tmp_path).digest == before.digest
    change(tmp_path, RULES, "2: lying(?p) & ", "2: ")
    assert read_policy(tmp_path).digest != before.digest
    learned = read_policy(learned_folder())
    without = replace(learned, card=msgspec.structs.replace(learned.card, estimation=None))
    assert learned.digest != without.digest


# What is wrong is named

DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {  # the file that is named, and what is done
    "no folder": ("", shutil.rmtree),
    "no weights": (WEIGHTS, lambda f: (f / WEIGHTS).unlink()),
    "truncated json": (POLICY, lambda f: (f / POLICY).write_text("{")),
    "deep json": (POLICY, lambda f: (f / POLICY).write_text("[" * 100_000)),
    "newer": (POLICY, lambda f: edit(f, "format", to=FORMAT + 1)),
    "unknown key": (POLICY, lambda f: edit(f, "co\nde", to="import os")),
    "negative seed": (POLICY, lambda f: edit(f, "seed", to=-1)),
    "rounds": (POLICY, lambda f: edit(f, "network", "rounds", to=10**12)),
    "still": (POLICY, lambda f: edit(f, "still", to=[0.0, 1.0])),
    "estimation": (POLICY, lambda f: edit(f, "estimation", "types", "parcel", "carrying", "offset", to=[0.0] * 3)),
    "successes": (
        POLICY,
        lambda f: edit(f, "measured", to={"successes": {"3": [11, 10]}, "seed": 0, "command": "", "versions": {}}),
    ),
    "another method": (POLICY, lambda f: edit(f, "method", to="pure-nn")),
    "symbols": (DOMAIN, lambda f: edit(f, "encoding", to={"arity": 1})),
    "rule": (RULES, lambda f: change(f, RULES, "-> pick(?p)", "-> pick(?p")),
    "absent fact": (RULES, lambda f: change(f, RULES, "2: ", "2: not free() & ")),
    "no actions": (DOMAIN, lambda f: (f / DOMAIN).write_text("(define (domain d))")),
    "another domain": (DOMAIN, lambda f: change(f, DOMAIN, "(lying ?p", "(hot ?p - parcel) (lying ?p")),
    "cut weights": (WEIGHTS, lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1])),
    "tensor missing": (WEIGHTS, lambda f: change_weights(f, readout_0_bias=None)),
    "tensor's shape": (WEIGHTS, lambda f: change_weights(f, readout_0_bias=np.zeros(999, np.float32))),
    "not finite": (WEIGHTS, lambda f: change_weights(f, readout_2_bias=np.full(3, np.nan, np.float32))),
    "spec of other weights": (WEIGHTS, lambda f: edit(f, "spec", "objects", "spot", "radius", "type", to="label-only")),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_wrong_is_one_line_that_names_the_file(name: str, folder: Path) -> None:
    file, damage = DAMAGES[name]
    damage(folder)
    with pytest.raises(BadInput) as error:
        read_policy(folder)
    assert str(error.value).startswith(str(folder / file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", FILES)
def test_no_bytes_at_all_make_it_crash(file: str, folder: Path) -> None:
    """A policy with some bytes changed is refused, or it acts."""
    rng, env = random.Random(0), SceneEnv(TINY, 1)
    scene, data, refused = env.reset(0), (folder / file).read_bytes(), []
    for _ in range(MUTATIONS):
        mutated = bytearray(data)
        start = int(len(data) * rng.random() ** 3)  # most of them near the beginning
        if rng.random() < 0.5:
            del mutated[start : start + rng.randint(1, 20)]
        else:
            mutated[start] = rng.choice([rng.randrange(256), mutated[start] ^ 1 << rng.randrange(8)])
        (folder / file).write_bytes(mutated)
        try:
            load_policy(folder, TINY).act(scene)
        except BadInput as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in message for message in refused)


# Labels and domains


def test_labels_come_from_functions_from_a_task_or_from_the_one_that_is_registered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tiny", "evil.py:task"):
        edit(folder, "task", to=name)
        with pytest.raises(BadInput, match=r"^[^\n]*: no task [^\n]* is registered: hand over the task[^\n]*$"):
            load_policy(folder)
    monkeypatch.setattr(registry, "_REGISTERED", {})
    register_task(TINY)
    scene = SceneEnv(TINY, 3).reset(1)
    policies = [
        load_policy(learned_folder(), label=label, goal=goal),
        load_policy(str(learned_folder()), TINY),
        bilevel.load_policy(learned_folder()),
    ]
    controls = [policy.act(scene) for policy in policies]
    assert controls[0] is not None
    assert all(np.array_equal(control, controls[0]) for control in controls if control is not None)
    assert {str(policy.action) for policy in policies} == {"pick(parcel1)"}


def test_a_domain_must_know_what_the_labels_say(folder: Path) -> None:
    text = write_domain(TINY.domain)
    for old, new, lacking in (
        ("(free)", "(free) (heavy ?p - parcel)", "the predicate 'heavy' with 1 arguments"),
        ("parcel spot", "heavy - parcel parcel spot", "the type 'heavy'"),
    ):
        other = replace(TINY, name="other", domain=parse_domain(text.replace(old, new, 1)))
        with pytest.raises(BadInput, match=f"the policy was learned on 'tiny': its domain lacks {lacking} of 'other'"):
            load_policy(folder, other)
    unused = parse_domain(text.replace("parcel spot", "parcel spot van", 1))
    assert load_policy(folder, replace(TINY, domain=unused)).act(SceneEnv(TINY, 1).reset(0)) is not None


# Policies that come with tasks


def test_a_pretrained_policy_is_found_by_the_name_of_its_task_unless_a_folder_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.chdir(tmp_path)
    task = register_task(replace(TINY, pretrained=still_folder()))
    assert pretrained_policies()["tiny"] == find_folder("tiny") == still_folder()
    assert load_policy("tiny").act(SceneEnv(TINY, 1).reset(0)) is not None
    assert usual_policy(task) == Path("tiny")
    assert usual_policy(replace(task, name="other", pretrained=learned_folder())) == learned_folder()
    assert usual_policy(TINY) is None
    Path("tiny").symlink_to(learned_folder())
    assert find_folder("tiny") == Path("tiny")
    assert usual_policy(task) == still_folder()
    for name in ("tinny", "file.py:task"):
        with pytest.raises(BadInput, match=f"^{name}: there is no such folder; `bilevel learn` makes one.*tiny"):
            load_policy(name)
    with pytest.raises(BadInput, match=r"^build/tiny: there is no such folder; `bilevel learn` makes one$"):
        load_policy("build/tiny")


# A folder stands alone: it acts without torch, without the simulator, and without the task's module

ALONE = """
import json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "mujoco", "gymnasium", "tiny_task", "metaworld"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Missing())
import bilevel, msgspec
from bilevel import Atom, Scene
from bilevel.tasks.spec import Spec

def label(scene):
    yield Atom("free")
    yield from (Atom("lying", (parcel.name,)) for parcel in scene.of_type("parcel"))
    yield from (Atom("empty", (spot.name,)) for spot in scene.of_type("spot"))

folder, agent, objects = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
policy = bilevel.load_policy(folder, label=label, goal=lambda scene: [Atom("at", ("parcel1", "spot1"))])
with open(f"{folder}/policy.json") as file:
    scene = Scene(msgspec.convert(json.load(file)["spec"], Spec), agent, objects)
print(json.dumps([str(policy.action), policy.act(scene).tolist(), str(policy.action)]))
"""


def as_dictionaries(scene: Scene) -> tuple[str, str]:
    agent = {name: scene.agent[name] for name in scene.spec.agent}
    objects = {
        kind: {thing.name: {name: thing[name] for name in features} for thing in scene.of_type(kind)}
        for kind, features in scene.spec.objects.items()
    }
    return json.dumps(agent), json.dumps(objects)


def test_a_folder_stands_alone() -> None:
    scene, folder = SceneEnv(TINY, 1).reset(0), learned_folder()
    command = [sys.executable, "-c", ALONE, str(folder), *as_dictionaries(scene)]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr) == (0, "")
    policy = load_policy(folder, TINY)
    control = policy.act(scene)
    assert control is not None
    assert json.loads(alone.stdout) == ["None", control.tolist(), str(policy.action)]

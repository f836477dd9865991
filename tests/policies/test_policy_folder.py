"""Policies as folders: written and read again, and whatever is wrong with one is a line that names the file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from bilevel.lowlevel.architecture import Architecture, Weights
from bilevel.lowlevel.encoding import encoding_of
from bilevel.policies.policies import BilevelPolicy
from bilevel.policies.policy_folder import (
    DOMAIN,
    FORMAT,
    POLICY,
    RULES,
    UNFINISHED,
    WEIGHTS,
    SavedPolicy,
    read_policy,
    write_policy,
)
from bilevel.policies.rollout import rollout
from bilevel.rules.rule_file import parse_rules
from bilevel.symbolic.domain import BadInput
from bilevel.tabletop.observation import Observation, Slots
from bilevel.tabletop.problems import domain_text
from bilevel.tabletop.tasks import find_task

FILES = (POLICY, RULES, DOMAIN, WEIGHTS)
MUTATIONS = 150  # of each file

RULES_TEXT = """
variables: ?x - block, ?l - place
1: holding(?x) & clear(?l) & goal at(?x, ?l) -> place(?x, ?l)
2: clear(?x) & clear(?l) & gripper-free() & goal at(?x, ?l) -> pick(?x)
"""


def random_weights(architecture: Architecture) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in architecture.layers.items():
        shapes |= {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}
    return {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def make_policy() -> SavedPolicy:
    task = find_task("blocks")
    architecture = Architecture(encoding_of(task.domain), hidden=8, rounds=1)
    return SavedPolicy(
        task="blocks",
        arguments={"objects": 2, "teleport_rate": 0.0},
        seed=7,
        domain_text=domain_text(task.domain_name),
        domain=task.domain,
        rules=parse_rules(RULES_TEXT).rules,
        architecture=architecture,
        weights=random_weights(architecture),
        settings={"recipe": "paper", "training": {"epochs": 3}, "dagger": {"rounds": 0}},
        summary={
            "samples": 100,
            "traces": 4,
            "exogenous": 0,
            "ambiguous": 0,
            "best_epoch": 2,
            "validation_loss": 0.25,
            "demonstrations": {"command": "bilevel collect blocks", "episodes": 4},
            "seconds": 1.5,
        },
        versions={"bilevel": "0.1.0"},
    )


def slots_with(objects: int) -> Slots:
    return find_task("blocks").make(objects).slots


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_policy(tmp_path / "policy", make_policy())
    return tmp_path / "policy"


def edit(folder: Path, **changes: Any) -> None:
    """Change keys of policy.json; `None` removes one."""
    about = {**json.loads((folder / POLICY).read_text()), **changes}
    text = json.dumps({key: value for key, value in about.items() if value is not None})
    (folder / POLICY).write_text(text)


def change(folder: Path, file: str, old: str, new: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def change_weights(folder: Path, weights: Weights) -> None:
    save_file(dict(weights), folder / WEIGHTS)


def without(weights: Weights, name: str) -> Weights:
    return {other: array for other, array in weights.items() if other != name}


# What is written is read


def test_a_policy_that_is_read_is_the_one_that_was_written(folder: Path, tmp_path: Path) -> None:
    saved, found = make_policy(), read_policy(folder)
    for name in ("task", "arguments", "seed", "domain", "domain_text", "rules", "architecture", "settings", "summary"):
        assert getattr(found, name) == getattr(saved, name)
    assert found.digest == saved.digest
    assert found.weights.keys() == saved.weights.keys()
    assert all(found.weights[name].tobytes() == saved.weights[name].tobytes() for name in saved.weights)
    write_policy(tmp_path / "again", found)
    for file in FILES:
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes()


def test_a_person_can_read_it_and_edit_its_rules(folder: Path) -> None:
    before = read_policy(folder)
    assert (folder / POLICY).read_text().startswith('{\n  "format": 1,\n  "task": "blocks",\n')
    text = (folder / RULES).read_text()
    (folder / RULES).write_text(f"# mine\n{text}")
    assert read_policy(folder).digest == before.digest
    change(folder, RULES, "2: clear(?x) & ", "2: ")
    assert read_policy(folder).rules != before.rules
    assert read_policy(folder).digest != before.digest


def test_a_folder_is_complete_only_when_all_of_it_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path: Path, content: str | bytes) -> None:
        if path.name == WEIGHTS:
            raise KeyboardInterrupt

    monkeypatch.setattr("bilevel.policies.policy_files.write_atomically", stop)
    with pytest.raises(KeyboardInterrupt):
        write_policy(folder, make_policy())
    with pytest.raises(BadInput, match=r"no policy: there is no policy\.json in it"):
        read_policy(folder)


def test_nothing_that_writing_left_behind_stays(folder: Path) -> None:
    (folder / f".{WEIGHTS}.abc").write_bytes(b"half")
    write_policy(folder, make_policy())
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)


# What is wrong is named

Damage = Callable[[Path], object]

DAMAGES: dict[str, tuple[Damage, str, str]] = {  # what is done, the file that is named, and what is said of it
    "no json": (lambda f: (f / POLICY).unlink(), "", "no policy: there is no policy.json in it"),
    "no rules": (lambda f: (f / RULES).unlink(), RULES, "there is no such file"),
    "no domain": (lambda f: (f / DOMAIN).unlink(), DOMAIN, "there is no such file"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "there is no such file"),
    "truncated json": (lambda f: (f / POLICY).write_text("{"), POLICY, "not JSON"),
    "deep json": (lambda f: (f / POLICY).write_text("[" * 100_000), POLICY, "not JSON"),
    "no text": (lambda f: (f / POLICY).write_bytes(b"{\xff"), POLICY, "not UTF-8 text"),
    "no object": (lambda f: (f / POLICY).write_text("[]"), POLICY, "must be a JSON object"),
    "infinity": (lambda f: change(f, POLICY, "0.25", "Infinity"), POLICY, "Infinity is no finite number"),
    "overflow": (lambda f: change(f, POLICY, "0.25", "1e999"), POLICY, "1e999 is no finite number"),
    "newer": (lambda f: edit(f, format=FORMAT + 1), POLICY, "of format 2, but bilevel"),
    "format": (lambda f: edit(f, format=0), POLICY, "'format' cannot be 0"),
    "unknown key": (lambda f: edit(f, code="import os"), POLICY, "has an unknown 'code'"),
    "key with a line break": (lambda f: edit(f, **{"a\nb": 1}), POLICY, r"has an unknown 'a\nb'"),
    "missing key": (lambda f: edit(f, seed=None), POLICY, "has no 'seed'"),
    "type": (lambda f: edit(f, hidden="64"), POLICY, "'hidden' in the policy cannot be \"64\""),
    "hidden": (lambda f: edit(f, hidden=0), POLICY, "'hidden' cannot be 0"),
    "rounds": (lambda f: edit(f, rounds=10**12), POLICY, "'rounds' cannot be 1000000000000"),
    "arguments": (lambda f: edit(f, arguments={"objects": 3, "speed": 1}), POLICY, "has an unknown 'speed'"),
    "no objects": (lambda f: edit(f, arguments={}), POLICY, "'arguments' has no 'objects'"),
    "encoding": (lambda f: edit(f, encoding={"arity": 1}), POLICY, "'encoding' has no 'nullary'"),
    "settings": (lambda f: edit(f, settings={}), POLICY, "'settings' has no 'recipe'"),
    "summary": (lambda f: edit(f, summary={}), POLICY, "'summary' has no 'samples'"),
    "versions": (lambda f: edit(f, versions={"torch": 2}), POLICY, "'torch' in 'versions' cannot be 2"),
    "rule": (lambda f: change(f, RULES, "-> pick(?x)", "-> pick(?x"), f"{RULES}:7:1: ", "found the end of the file"),
    "rule of another domain": (
        lambda f: change(f, RULES, "-> pick", "-> press"),
        f"{RULES}:6:",
        "unknown action 'press'",
    ),
    "absent fact": (lambda f: change(f, RULES, "2: clear(?x)", "2: not clear(?x)"), RULES, "tests for the absent fact"),
    "no rule": (lambda f: (f / RULES).write_text("# none\n"), RULES, "there is no rule in it"),
    "domain": (lambda f: change(f, DOMAIN, "(define", "(defin"), f"{DOMAIN}:", ""),
    "no actions": (lambda f: (f / DOMAIN).write_text("(define (domain d))"), DOMAIN, "the domain has no actions"),
    "another domain": (
        lambda f: change(f, DOMAIN, "(holding ?x - block)", "(holding ?x - block) (hot ?x - block)"),
        DOMAIN,
        'its \'unary\' would be ["clear", "holding", "hot"], but policy.json says ["clear", "holding"]',
    ),
    "cut weights": (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]), WEIGHTS, "damaged"),
    "other weights": (lambda f: (f / WEIGHTS).write_bytes(b"pickle"), WEIGHTS, "damaged"),
    "tensor missing": (
        lambda f: change_weights(f, without(make_policy().weights, "object.1.bias")),
        WEIGHTS,
        "the tensor 'object.1.bias' is missing",
    ),
    "tensor too many": (
        lambda f: change_weights(f, {**make_policy().weights, "more": np.zeros(1, np.float32)}),
        WEIGHTS,
        "the tensor 'more' is none of this network",
    ),
    "tensor's shape": (
        lambda f: change_weights(f, {**make_policy().weights, "object.1.bias": np.zeros(7, np.float32)}),
        WEIGHTS,
        "the tensor 'object.1.bias' is F32 of shape (7,), not F32 of shape (8,)",
    ),
    "tensor's type": (
        lambda f: save_file({**make_policy().weights, "object.1.bias": np.zeros(8)}, f / WEIGHTS),
        WEIGHTS,
        "the tensor 'object.1.bias' is F64",
    ),
    "not finite": (
        lambda f: change_weights(f, {**make_policy().weights, "object.1.bias": np.full(8, np.nan, np.float32)}),
        WEIGHTS,
        "the tensor 'object.1.bias' holds numbers that are not finite",
    ),
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


def test_a_task_is_looked_for_only_when_it_is_needed(folder: Path) -> None:
    for name, told in (("juggling", "'juggling'"), ("two\nlines", r"'two\\nlines'")):
        edit(folder, task=name)
        saved = read_policy(folder)
        with pytest.raises(BadInput, match=rf"policy\.json: unknown task {told}; known tasks: "):
            saved.bind(slots_with(1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {
                DOMAIN: {
                    "(at ?x - block ?l - place)": "(at ?x - block ?l - place ?i - item)",
                    "(at ?x ?l)": "(at ?x ?l ?l)",
                },
                RULES: {"at(?x, ?l)": "at(?x, ?l, ?l)"},
            },
            "the predicate 'at' with 2 arguments",
        ),
        (
            {DOMAIN: {"place - item": "site - item", "- place": "- site"}, RULES: {"- place": "- site"}},
            "the type 'place'",
        ),
        (
            {DOMAIN: {"(?x - block)\n": "(?x - block ?l - place)\n"}, RULES: {"pick(?x)": "pick(?x, ?l)"}},
            "the action 'pick' with 1 arguments",
        ),
    ],
)
def test_a_domain_must_know_what_the_labels_say(folder: Path, changes: dict[str, dict[str, str]], reason: str) -> None:
    for file, replacements in changes.items():
        for old, new in replacements.items():
            change(folder, file, old, new)
    saved = read_policy(folder)
    with pytest.raises(BadInput, match=rf"domain\.pddl of the policy lacks {reason}, which the task 'blocks' uses"):
        saved.bind(slots_with(1))


def test_rules_that_name_what_is_not_there_are_told(folder: Path) -> None:
    change(folder, DOMAIN, "(:predicates", "(:constants block9 - block)\n(:predicates")
    change(folder, RULES, "-> pick(?x)", "-> pick(block9)")
    environment = find_task("blocks").make(1)
    observation, _ = environment.reset(seed=0)
    with pytest.raises(BadInput, match=r"the rules want pick\(block9\), but no 'block9' is seen"):
        read_policy(folder).bind(environment.slots).act(observation)


@pytest.mark.parametrize("file", FILES)
def test_no_bytes_at_all_make_it_crash(file: str, folder: Path) -> None:
    """A policy with some bytes changed is refused, or it acts."""
    rng = random.Random(0)
    environment = find_task("blocks").make(1)
    observation, _ = environment.reset(seed=0)
    data = (folder / file).read_bytes()
    refused = []
    for _ in range(MUTATIONS):
        (folder / file).write_bytes(mutated(data, rng))
        try:
            read_policy(folder).bind(environment.slots).act(observation)
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


def test_a_loaded_policy_acts_the_same_with_slots_and_without(folder: Path) -> None:
    loose = BilevelPolicy.load(folder)
    for objects in (2, 1, 20):
        environment = find_task("blocks").make(objects)
        strict = BilevelPolicy.load(str(folder), environment.slots)
        observation, _ = environment.reset(seed=objects)
        strict.reset(observation)  # the other one finds out by itself that something has begun
        for _ in range(5):
            control = strict.act(observation)
            assert control is not None
            np.testing.assert_array_equal(control, np.asarray(loose.act(observation)))
            assert (loose.state, loose.goal, loose.action) == (strict.state, strict.goal, strict.action)
            observation, *_ = environment.step(control)


@pytest.mark.parametrize("knows_slots", [True, False])
def test_an_episode_that_nobody_began_is_begun(
    folder: Path, monkeypatch: pytest.MonkeyPatch, knows_slots: bool
) -> None:
    begun = []
    reset = BilevelPolicy.reset

    def counted(policy: BilevelPolicy, observation: Observation) -> None:
        begun.append(observation)
        reset(policy, observation)

    monkeypatch.setattr(BilevelPolicy, "reset", counted)
    environment = find_task("blocks").make(3)
    policy = BilevelPolicy.load(folder, environment.slots if knows_slots else None)
    observation, _ = environment.reset(seed=0)
    for _ in range(3):
        policy.act(observation)
    assert begun == [observation]


def test_a_loaded_policy_runs_in_a_rollout(folder: Path) -> None:
    environment = find_task("blocks").make(3)
    steps: list[object] = []
    rollout(environment, BilevelPolicy.load(folder), 0, watch=steps.append, stop=lambda: len(steps) == 10)
    assert len(steps) == 10


def test_an_observation_of_no_environment_of_the_task_asks_for_slots(folder: Path) -> None:
    policy = BilevelPolicy.load(folder)
    observation, _ = find_task("blocks").make(4).reset(seed=0)
    observation["objects"] = observation["objects"][:-1]
    with pytest.raises(BadInput, match=r"shows 7 rows; pass slots=env\.unwrapped\.slots"):
        policy.act(observation)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"objects": 99, "teleport_rate": 0.0}, "Blocks takes 1 to 20 objects, not 99"),
        ({"objects": 2, "draw": "empty"}, "the task 'blocks' takes no --draw"),
    ],
)
def test_arguments_that_no_environment_takes_are_refused_when_they_are_needed(
    folder: Path, arguments: dict[str, Any], reason: str
) -> None:
    edit(folder, arguments=arguments)
    with pytest.raises(BadInput, match=rf"policy\.json: {reason}"):
        BilevelPolicy.load(folder)
    assert BilevelPolicy.load(folder, slots_with(3)).action is None

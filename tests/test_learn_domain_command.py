"""Learning a domain with one command, and a policy in it, at tiny size, for a task that has no actions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bilevel
import undecided_task
from bilevel.demonstrations.dataset import Demonstrations
from bilevel.learning.learn import PRESETS
from bilevel.policies.folder import read_policy
from bilevel.symbolic.domain import Domain
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.task import Task
from command_line import run
from tiny_demonstrations import WITH_DAGGER
from tiny_task import TINY
from undecided_task import BARE, FRAMED

EPISODES = 10
BOTH = pytest.mark.parametrize("task", [BARE, FRAMED], ids=["no domain", "predicates alone"])


def place(task: Task) -> str:
    return f"{undecided_task.__file__}:{task.name.upper()}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Demonstrations of both tasks."""
    found = {task.name: tmp_path_factory.mktemp(task.name) / "data" for task in (BARE, FRAMED)}
    for task in (BARE, FRAMED):
        bilevel.collect(task, found[task.name], objects=2, episodes=EPISODES)
    return found


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A preset that takes a second, with a round of DAgger."""
    monkeypatch.setitem(PRESETS, "best", msgspec.structs.replace(WITH_DAGGER, complete=True))


def effects(domain: Domain) -> set[tuple[tuple[str, ...], ...]]:
    """The predicates that each action needs, adds and deletes."""
    return {
        tuple(
            tuple(sorted(fact.predicate for fact in facts))
            for facts in (schema.precondition, outcome.add, outcome.delete)
        )
        for schema in domain.schemas.values()
        for outcome in schema.outcomes
    }


@BOTH
def test_the_actions_are_learned_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, folders: dict[str, Path], task: Task
) -> None:
    output = tmp_path / "domain.pddl"
    code, text, _ = run(capsys, "domain", "learn", folders[task.name], "--task", place(task), "--output", output)
    assert code == 0
    learned = read_domain(output)
    assert effects(learned) == effects(TINY.domain)
    assert learned.name == task.domain.name
    assert set(learned.predicates) == set(TINY.domain.predicates)
    assert f"{learned.name}: 2 actions, 1 event, learned from 8 episodes" in text
    assert "2 episodes held out:" in text
    assert "explained: 8 (80.0%)\nby event: 2 (20.0%)\n" in text
    assert f"written to {output} in" in text


@BOTH
def test_a_policy_is_learned_in_the_learned_domain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, folders: dict[str, Path], little: None, task: Task
) -> None:
    output = tmp_path / "policy"
    arguments = "--task", place(task), "--learn-domain", "--output", output
    code, text, _ = run(capsys, "learn", folders[task.name], *arguments)
    assert code == 0
    assert "the domain was learned: " in text
    policy = read_policy(output)
    assert effects(policy.domain) == effects(TINY.domain)
    assert {rule.action.name for rule in policy.rules} <= set(policy.domain.schemas)
    asked_as = policy.card.summary["domain"]["asked_as"]
    assert sorted(call.partition("(")[0] for call in asked_as.values()) == ["deliver", "fetch"]
    assert policy.card.summary["samples"] > sum(each.steps for each in Demonstrations.read(folders[task.name]))
    records = bilevel.evaluate(output, task, objects=[1], episodes=1)
    assert all(record.reason != "no rule" for record in records)
    assert run(capsys, "run", place(task), "--policy", output, "--objects", 1, "--explain")[0] in (0, 1)


def test_without_recorded_actions_there_is_no_dagger(tmp_path: Path, little: None) -> None:
    task = replace(BARE, name="silent", expert=TINY.expert)
    data = bilevel.collect(task, tmp_path / "data", objects=2, episodes=4)
    silent = [replace(each, actions=(None,) * each.steps) for each in data]
    about: Any = {"task": "silent", "spec": data.spec, "domain": data.domain, "controls": data.controls}
    policy = bilevel.learn(
        Demonstrations(silent, **about, arguments=data.arguments), tmp_path / "policy", task=task, learn_domain=True
    )
    assert set(policy.card.summary["domain"]["asked_as"].values()) == {None}
    assert policy.card.summary["samples"] <= sum(each.steps for each in data)

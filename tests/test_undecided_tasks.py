"""Commands with a task that has no actions yet: they work, and say what is missing and how it is learned."""

from __future__ import annotations

from pathlib import Path

import pytest

import undecided_task
from bilevel.symbolic.pddl import read_domain
from bilevel.tasks.task import Task
from command_line import run
from undecided_task import BARE, FRAMED

EPISODES = 3
TASKS = pytest.mark.parametrize("task", [BARE, FRAMED], ids=["no domain", "predicates alone"])


def place(task: Task) -> str:
    return f"{undecided_task.__file__}:{task.name.upper()}"


def collected(capsys: pytest.CaptureFixture[str], task: Task, folder: Path) -> Path:
    arguments = "--objects", 2, "--episodes", EPISODES, "--output", folder
    assert run(capsys, "collect", place(task), *arguments)[0] == 0
    return folder


@TASKS
def test_a_check_advises_to_learn_what_is_missing(capsys: pytest.CaptureFixture[str], task: Task) -> None:
    code, output, _ = run(capsys, "check", place(task), "--objects", 2)
    missing = "no actions" if task is FRAMED else "no predicates and no actions"
    assert code == 0
    assert f"advice: the domain '{task.domain.name}' has {missing}: learn them from demonstrations with" in output
    assert output.count("\n") == 2


@TASKS
def test_demonstrations_are_collected_checked_shown_and_replayed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, task: Task
) -> None:
    folder = collected(capsys, task, tmp_path / "data")
    assert read_domain(folder / "domain.pddl") == task.domain
    assert not task.domain.schemas
    code, output, _ = run(capsys, "demonstrations", "check", folder)
    assert code == 0
    assert "rules: no: the domain has no actions; learn them with: bilevel domain learn" in output
    story = run(capsys, "demonstrations", "show", folder, "--episode", 0)[1]
    assert "fetch(parcel1)" in story
    assert "deliver(spot1, parcel1)" in story
    assert run(capsys, "demonstrations", "replay", folder, "--task", place(task))[0] == 0


@TASKS
def test_learning_refuses_in_a_line_that_names_the_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, task: Task
) -> None:
    folder = collected(capsys, task, tmp_path / "data")
    for method in ("bison", "pddl-nn"):
        arguments = "--task", place(task), "--method", method, "--output", tmp_path / "policy"
        code, output, error = run(capsys, "learn", folder, *arguments)
        assert (code, output) == (2, "")
        assert error.count("\n") == 1
        assert f"{folder}: its domain '{task.domain.name}' has no actions" in error
        assert "--learn-domain" in error
        assert not (tmp_path / "policy").exists()


@TASKS
def test_the_expert_runs_an_episode(capsys: pytest.CaptureFixture[str], task: Task) -> None:
    code, output, _ = run(capsys, "run", place(task), "--objects", 2)
    assert code == 0
    assert "deliver(spot2, parcel2)" in output


def test_a_label_that_pddl_could_not_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run(capsys, "check", f"{undecided_task.__file__}:SHOUTING", "--objects", 2)
    assert code == 1
    assert "label(scene) gave FREE(), whose predicate PDDL could not name so: use a lower-case word" in output
